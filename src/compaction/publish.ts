import { mkdtemp, open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Catalog, ExtentSummary, Lease, NewExtent, TableRecord } from "../catalog/catalog.ts";
import { InvariantViolation } from "../catalog/invariants.ts";
import { CondemnedExtent, LeaseLost } from "../catalog/refusals.ts";
import type { Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import { FORMAT_VERSION } from "../format/types.ts";
import { objectKeys, type ObjectStore } from "../io/objectstore/objectstore.ts";
import { mergeInProcess } from "./merge-process.ts";
import type { MergedFile, MergeInput, MergeLimits, MergeTask } from "./merge.ts";
import { dayOf, TARGET_BYTES } from "./pick.ts";

/** One merge from end to end: inputs to this machine, the merging process, outputs to the store, one snapshot. */
export type PublishPorts = {
  catalog: Pick<Catalog, "mergeExtents">;
  store: ObjectStore;
  clock: Clock;
  newId: IdSource;
  log: Log;
};

export type MergeJob = {
  /** Read after the inputs, so that it has all their columns. */
  table: TableRecord;
  /** Live extents of the table. */
  inputs: readonly ExtentSummary[];
  /** A folder of this server's own; the merge works in one inside, which is gone afterwards. */
  tempDir: string;
  keyPrefix: string;
  limits: MergeLimits;
  /** See `MergeProcessOptions`. */
  share: () => number;
  lease: Lease;
  signal: AbortSignal;
};

export type Published = { outputs: number; sizeBytes: number };

/**
 * Does the merge and makes it visible; undefined when an input was no longer alive, and nothing has changed. Rejects
 * when it failed, also with nothing changed, unless the catalog itself does not know; local files are gone in any case,
 * and so are the outputs in the store wherever nobody may point to them (what cannot be deleted is left to the sweep of
 * orphans).
 */
export async function mergeAndPublish(ports: PublishPorts, job: MergeJob): Promise<Published | undefined> {
  const folder = await mkdtemp(join(job.tempDir, "merge-"));
  try {
    const inputs = await bringInputs(ports.store, folder, job);
    const files = await mergeInProcess(taskOf(folder, inputs, job), { ...job, clock: ports.clock });
    return await publish(ports, job, files);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function taskOf(folder: string, inputs: readonly MergeInput[], { table, limits }: MergeJob): MergeTask {
  const columns = table.columns.map(({ id, name, type }) => ({ id, name, type }));
  return { columns, inputs, clusterBy: [], folder, targetBytes: TARGET_BYTES, limits };
}

/** Where the store's objects are local files they are read in place. */
async function bringInputs(store: ObjectStore, folder: string, job: MergeJob): Promise<MergeInput[]> {
  const inputs: MergeInput[] = [];
  for (const extent of inCommitOrder(job.inputs)) {
    const { id, key, format, rows, checksum } = extent;
    const path = store.localPath?.(key) ?? (await download(store, extent, join(folder, id), job.signal));
    inputs.push({ id, path, format, rows, checksum });
  }
  return inputs;
}

function inCommitOrder(extents: readonly ExtentSummary[]): ExtentSummary[] {
  return extents.toSorted((a, b) => a.beginSnapshot - b.beginSnapshot || (a.id < b.id ? -1 : 1));
}

const PIECE_BYTES = 8 * 1024 * 1024;

async function download(
  store: ObjectStore,
  { key, sizeBytes }: ExtentSummary,
  path: string,
  signal: AbortSignal,
): Promise<string> {
  const file = await open(path, "wx");
  try {
    for (let offset = 0; offset < sizeBytes; offset += PIECE_BYTES) {
      await file.writeFile(await store.get(key, { offset, length: Math.min(PIECE_BYTES, sizeBytes - offset), signal }));
    }
    return path;
  } finally {
    await file.close();
  }
}

async function publish(
  ports: PublishPorts,
  job: MergeJob,
  files: readonly MergedFile[],
): Promise<Published | undefined> {
  const { table, lease } = job;
  const outputs = files.map((file) => extentOf(ports, job, file));
  let isUnknown = false;
  try {
    for (const [i, { key }] of outputs.entries()) await upload(ports.store, key, files[i], job.signal);
    isUnknown = true;
    const snapshot = await ports.catalog.mergeExtents({
      tableId: table.id,
      schemaVersion: table.schemaVersion,
      inputs: job.inputs.map(({ id }) => id),
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

function extentOf({ newId }: PublishPorts, { table, keyPrefix }: MergeJob, file: MergedFile): NewExtent {
  const { path: _path, ...described } = file;
  const id = newId();
  const day = new Date(dayOf(file.minAtNs)).toISOString().slice(0, 10);
  const place = { prefix: keyPrefix, database: table.database, table: table.name, day, id, format: "parquet" };
  const formatVersion = FORMAT_VERSION.parquet;
  return { ...described, id, key: objectKeys.extent(place), format: "parquet", formatVersion };
}

/** One whole file is in memory at a time, because a store takes whole objects. */
async function upload(
  store: ObjectStore,
  key: string,
  file: MergedFile | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (file === undefined) throw new Error("an output without a file");
  await store.put(key, await readFile(file.path, { signal }), { signal });
}

function saysNothingStored(error: unknown): boolean {
  return (
    error instanceof EngineError ||
    error instanceof InvariantViolation ||
    error instanceof LeaseLost ||
    error instanceof CondemnedExtent
  );
}

async function discard({ store, log }: PublishPorts, outputs: readonly NewExtent[]): Promise<void> {
  const keys = outputs.map(({ key }) => key);
  try {
    await store.delete(keys);
  } catch (error) {
    log.warn({ err: error, keys }, "could not delete the outputs of a merge that was not published");
  }
}
