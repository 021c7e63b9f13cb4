import type { Log } from "../core/log.ts";
import { objectKeys, type ObjectStore } from "../io/objectstore/objectstore.ts";

/** How long the result of an export can be fetched, from when its job was done. */
export const EXPORT_KEPT_MS = 7 * 86_400_000;

/**
 * Results stay somewhat longer than it is said of them: so that one is not deleted under whoever has just begun to fetch
 * it, and because the time of an object is the store's, and that of its job the catalog's.
 */
const LEEWAY_MS = 6 * 3_600_000;
const BATCH_OBJECTS = 1_000;

export type ExportSweepPorts = {
  /** The catalog's time. */
  nowMs: () => Promise<number>;
  store: Pick<ObjectStore, "list" | "delete">;
  log: Log;
};

/**
 * Deletes old results of exports, whether their job still knows of them or not: also those that holders left behind who
 * had lost their job. Nothing else is touched, whatever lies there.
 */
export function createExportSweep(
  { nowMs, store, log }: ExportSweepPorts,
  { keyPrefix }: { keyPrefix: string },
): (turn: { signal: AbortSignal }) => Promise<void> {
  const prefix = objectKeys.allExports(keyPrefix);
  return async ({ signal }) => {
    const writtenBeforeMs = (await nowMs()) - EXPORT_KEPT_MS - LEEWAY_MS;
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
