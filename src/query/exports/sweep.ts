import type { Log } from "../../core/log.ts";
import { objectKeys, type ObjectStore } from "../../io/objectstore/objectstore.ts";

/** How long the result of an export can be fetched, from when its job was done. */
export const EXPORT_KEPT_MS = 7 * 86_400_000;

const BATCH_OBJECTS = 1_000;

export type ExportSweepPorts = {
  /** The catalog's time. */
  nowMs: () => Promise<number>;
  store: Pick<ObjectStore, "list" | "delete">;
  log: Log;
};

/**
 * Deletes results of exports the grace after they have expired, whether their job still knows of them or not: also those
 * that holders left behind who had lost their job. Nothing else is touched, whatever lies there. The grace is for whoever
 * has just begun to fetch one, and for clocks: the time of an object is the store's, and that of its job the catalog's.
 */
export function createExportSweep(
  { nowMs, store, log }: ExportSweepPorts,
  { keyPrefix, graceMs }: { keyPrefix: string; graceMs: number },
): (turn: { signal: AbortSignal }) => Promise<void> {
  const prefix = objectKeys.allExports(keyPrefix);
  return async ({ signal }) => {
    const writtenBeforeMs = (await nowMs()) - EXPORT_KEPT_MS - graceMs;
    let deleted = 0;
    let old: string[] = [];
    const sweep = async (): Promise<void> => {
      signal.throwIfAborted();
      if (old.length > 0) await store.delete(old);
      deleted += old.length;
      old = [];
    };
    for await (const { key, modifiedAtMs } of store.list(prefix)) {
      signal.throwIfAborted();
      if (modifiedAtMs >= writtenBeforeMs || !RESULT.test(key.slice(prefix.length))) continue;
      old.push(key);
      if (old.length === BATCH_OBJECTS) await sweep();
    }
    await sweep();
    if (deleted > 0) log.info({ deleted }, "old results of exports are deleted");
  };
}

/** `<database>/<job id>/<fence>.parquet` */
const RESULT = /^[^/]+\/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\/\d+\.parquet$/;
