import { createReadStream } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ExtentSummary, NewExtent, TableRecord } from "../catalog/catalog.ts";
import type { Clock } from "../core/clock.ts";
import type { IdSource } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import { RunningChecksum } from "../format/checksum.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import type { IoBudget } from "./io-budget.ts";
import { mergeInProcess } from "./merge-process.ts";
import type { MergedFile, MergeLimits, MergeTask } from "./merge.ts";
import { dayOf, TARGET_BYTES } from "./pick.ts";
import { discard, extentOf } from "./publish.ts";

/**
 * Extents written again without some of their rows: the rows that stay come as one Parquet file, which is made into
 * extents as every merge makes them (sorted, cut at midnight, described), in its process and under its limits.
 */
export type RewritePorts = {
  store: Pick<ObjectStore, "putFile" | "delete">;
  clock: Clock;
  newId: IdSource;
  log: Log;
  budget: IoBudget;
};

export type RewriteOptions = {
  keyPrefix: string;
  /** Of the caller alone. */
  tempDir: string;
  limits: MergeLimits;
  encodings?: MergeTask["encodings"];
  /** Of a core that its process may take. */
  cpuShare: number;
};

export type Rewrite = {
  inputs: readonly ExtentSummary[];
  /** Rows that stay; some. */
  rows: number;
  /** Writes them to the path, where nothing is; resolves to how many they were. */
  writeRows: (path: string) => Promise<number>;
  /** The table, asked once the rows are there: it has all columns that they have. */
  table: () => Promise<TableRecord>;
  signal: AbortSignal;
};

/** The rows that were to stay are others than those that were written. */
export class RowsDiffer extends Error {}

/** Resolves to the new extents, whose bytes are in the store and which nobody points to. Leaves nothing when it fails. */
export async function rewriteExtents(
  ports: RewritePorts,
  options: RewriteOptions,
  { rows, writeRows, table, signal }: Rewrite,
): Promise<{ table: TableRecord; outputs: NewExtent[] }> {
  const folder = await mkdtemp(join(options.tempDir, "rewrite-"));
  try {
    const path = join(folder, "rows.parquet");
    const written = await writeRows(path);
    if (written !== rows) throw new RowsDiffer(`${rows} rows were to stay, and ${written} do`);
    const known = await table();
    const files = await mergeRows(ports, options, { folder, path, rows, table: known, signal });
    const outputs = await upload(ports, options, { files, table: known, signal });
    return { table: known, outputs };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function mergeRows(
  { clock, budget }: RewritePorts,
  { limits, encodings, cpuShare }: RewriteOptions,
  {
    folder,
    path,
    rows,
    table,
    signal,
  }: Pick<Rewrite, "rows" | "signal"> & {
    folder: string;
    path: string;
    table: TableRecord;
  },
): Promise<MergedFile[]> {
  const merged = join(folder, "merged");
  await mkdir(merged, { mode: 0o700 });
  const checksum = new RunningChecksum();
  for await (const piece of createReadStream(path)) checksum.add(piece as Uint8Array);
  const task = {
    columns: table.columns.map(({ id, name, type }) => ({ id, name, type })),
    inputs: [{ id: "rows", path, format: "parquet" as const, rows, checksum: checksum.toString() }],
    clusterBy: table.clusterBy,
    folder: merged,
    targetBytes: TARGET_BYTES,
    limits,
    encodings,
  };
  return await mergeInProcess(task, { clock, budget, share: () => cpuShare, signal });
}

async function upload(
  ports: RewritePorts,
  { keyPrefix }: RewriteOptions,
  { files, table, signal }: { files: readonly MergedFile[]; table: TableRecord; signal: AbortSignal },
): Promise<NewExtent[]> {
  const begun: NewExtent[] = [];
  try {
    for (const { path, ...file } of files) {
      const extent = extentOf(ports, { table, keyPrefix }, file);
      begun.push(extent);
      await ports.budget.take("upload", file.sizeBytes, signal);
      await ports.store.putFile(extent.key, path, { signal });
    }
    return begun;
  } catch (error) {
    await discard(ports, begun);
    throw error;
  }
}

/** Extents that are read together: a query holds as many files, and as many bytes pass through its folder. */
const GROUP_EXTENTS = 64;
const GROUP_BYTES = 64 * 1024 * 1024;

/** Extents in groups of neighbours in time, none of several days: rows of one day are written together. */
export function groupsOf(extents: readonly ExtentSummary[]): ExtentSummary[][] {
  const sorted = extents.toSorted((a, b) => (a.minAtNs < b.minAtNs ? -1 : Number(a.minAtNs > b.minAtNs)));
  const groups: ExtentSummary[][] = [];
  let [sizeBytes, day] = [0, Number.NaN];
  for (const extent of sorted) {
    const group = groups.at(-1);
    const own = dayOf(extent.minAtNs);
    const fits = own === day && sizeBytes + extent.sizeBytes <= GROUP_BYTES && (group?.length ?? 0) < GROUP_EXTENTS;
    if (group === undefined || !fits) {
      groups.push([extent]);
      [sizeBytes, day] = [extent.sizeBytes, own];
    } else {
      group.push(extent);
      sizeBytes += extent.sizeBytes;
    }
  }
  return groups;
}
