import { atHead } from "../catalog/at-head.ts";
import type { Catalog, ExtentSummary, Lease, NewExtent, TableRecord } from "../catalog/catalog.ts";
import { timeRangeOf } from "../catalog/extent-range.ts";
import { InvariantViolation } from "../catalog/invariants.ts";
import { ExtentPendingDeletion, LeaseLost } from "../catalog/refusals.ts";
import type { Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import { FORMAT_VERSION } from "../format/types.ts";
import { objectKeys, type ObjectStore } from "../io/objectstore/objectstore.ts";
import type { MergedFile, MergeLimits, MergeTask } from "./merge.ts";
import { dayOf } from "./pick.ts";
import { shareMisfits } from "./share-misfits.ts";

/** One merge from end to end: inputs to this machine, the merge, outputs to the store, one snapshot. */
export type PublishPorts = {
  catalog: Pick<Catalog, "extents" | "head" | "mergeExtents" | "misfits">;
  store: ObjectStore;
  merger: Merger;
  clock: Clock;
  newId: IdSource;
  log: Log;
};

export type MergeJob = {
  /** Read after the inputs, so that it has all their columns. */
  table: TableRecord;
  /** Live extents of the table. */
  inputs: readonly ExtentSummary[];
  keyPrefix: string;
  limits: MergeLimits;
  encodings?: MergeTask["encodings"];
  /** See `MergeProcessOptions`. */
  share: () => number;
  lease: Lease;
  signal: AbortSignal;
};

/** Where merges are done: in a process of its own over local files (`merge-on-disk.ts`). */
export interface Merger {
  /** To be called before the first merge: removes what an earlier process has left. */
  prepare(): Promise<void>;
  /** Merges the inputs of the job, which it reads from the store. Rejects with the signal's reason. */
  merge(store: ObjectStore, job: MergeJob): Promise<Merged>;
  /** To be called when no merge follows at once: lets go of what is kept from one to the next. */
  rest(): Promise<void>;
}

/** What came of a merge, until it is disposed of. */
export type Merged = {
  files: readonly Omit<MergedFile, "path">[];
  /** Writes the file of that index to the store, under this key. */
  put(index: number, key: string): Promise<void>;
  dispose(): Promise<void>;
};

export type Published = { outputs: number; sizeBytes: number };

/**
 * Does the merge and makes it visible; undefined when an input was no longer alive, and nothing has changed. Rejects
 * when it failed, also with nothing changed, unless the catalog itself does not know; local files are gone in any case,
 * and so are the outputs in the store wherever nobody may point to them (what cannot be deleted is left to the sweep of
 * orphans).
 */
export async function mergeAndPublish(ports: PublishPorts, job: MergeJob): Promise<Published | undefined> {
  let merged: Merged;
  try {
    merged = await ports.merger.merge(ports.store, job);
  } catch (error) {
    // The file of an input goes with it, at any point of the merge: how the merge failed then says nothing.
    if (!job.signal.aborted && (await isLate(ports, job))) return undefined;
    throw error;
  }
  try {
    return await publish(ports, job, merged);
  } finally {
    await merged.dispose();
  }
}

/** Whether an input has been replaced or deleted since it was picked. */
async function isLate({ catalog, log }: PublishPorts, { table, inputs }: MergeJob): Promise<boolean> {
  try {
    const live = await atHead(catalog, (head) => catalog.extents(table.id, head, timeRangeOf(inputs), []));
    const ids = new Set(live.map(({ id }) => id));
    return inputs.some(({ id }) => !ids.has(id));
  } catch (error) {
    log.warn({ err: error }, "cannot tell whether the inputs of a failed merge are still there");
    return false;
  }
}

async function publish(ports: PublishPorts, job: MergeJob, merged: Merged): Promise<Published | undefined> {
  const { table, lease } = job;
  const { files } = merged;
  const inputs = job.inputs.map(({ id }) => id);
  const misfits = await ports.catalog.misfits(table.id, inputs);
  const merging = files.map((file) => extentOf(ports, job, file));
  const outputs = shareMisfits(merging, table.columns, misfits);
  let isUnknown = false;
  try {
    for (const [i, { key }] of outputs.entries()) await merged.put(i, key);
    isUnknown = true;
    const snapshot = await ports.catalog.mergeExtents({
      tableId: table.id,
      schemaVersion: table.schemaVersion,
      inputs,
      outputs,
      lease,
    });
    if (snapshot !== undefined) {
      return { outputs: outputs.length, sizeBytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
    }
  } catch (error) {
    // Somebody may point to them: an object that nobody needs costs less than a pointer to nothing.
    if (isUnknown && !saysNothingStored(error)) throw error;
    await discard(ports, outputs);
    throw error;
  }
  await discard(ports, outputs);
  return undefined;
}

/** The extent that a file of a merge becomes. */
export function extentOf(
  { newId }: Pick<PublishPorts, "newId">,
  { table, keyPrefix }: Pick<MergeJob, "table" | "keyPrefix">,
  file: Omit<MergedFile, "path">,
): NewExtent {
  const id = newId();
  const day = new Date(dayOf(file.minAtNs)).toISOString().slice(0, 10);
  const place = { prefix: keyPrefix, database: table.database, table: table.name, day, id, format: "parquet" };
  const formatVersion = FORMAT_VERSION.parquet;
  return { ...file, id, key: objectKeys.extent(place), format: "parquet", formatVersion };
}

/** Whether it is certain after that error of a write to the catalog that nothing was stored. */
export function saysNothingStored(error: unknown): boolean {
  return (
    error instanceof EngineError ||
    error instanceof InvariantViolation ||
    error instanceof LeaseLost ||
    error instanceof ExtentPendingDeletion
  );
}

/** Deletes outputs that nobody points to; what cannot be deleted is left to the sweep of orphans. */
export async function discard(
  { store, log }: Pick<PublishPorts, "log"> & { store: Pick<ObjectStore, "delete"> },
  outputs: readonly NewExtent[],
): Promise<void> {
  const keys = outputs.map(({ key }) => key);
  try {
    await store.delete(keys);
  } catch (error) {
    log.warn({ err: error, keys }, "could not delete the outputs of a merge that was not published");
  }
}
