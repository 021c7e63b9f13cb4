import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pid } from "node:process";
import { z } from "zod";
import { MAX_TASKS, mergeInProcess, SpareProcess } from "../../src/compaction/merge-process.ts";
import type { MergedFile } from "../../src/compaction/merge.ts";
import { TARGET_BYTES } from "../../src/compaction/pick.ts";
import { systemClock } from "../../src/core/clock.ts";
import { loadDuckDb, quoteText, runSql } from "../../src/io/duckdb/duckdb.ts";
import { tlmToParquet } from "../../src/io/duckdb/parquet.test-kit.ts";
import { median } from "../../src/capacity/quantile.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { duckdbAnswersSql, expectedAnswers, mustAgree, type Answers } from "../support/answers.ts";
import { DATASET_NAMES, requiredDataset } from "../support/data-file.ts";
import { cpuSecondsOf } from "../support/process-stats.ts";
import { MIB } from "../support/report.ts";
import type { Dataset } from "../support/shapes.ts";
import { startCopier, type Copier, type CopyJob, type CopySource } from "./copy.ts";
import { delayed, writeExtents, type Extents } from "./extents.ts";

/** What COPY reads: `table` is the strictest, for everything that reading rows costs is left out. */
const SOURCES = {
  table: "its own table in memory, loaded before the time counts",
  parquet: "the extents as Parquet files of as many rows",
  ndjson: "the rows as they were sent",
} as const;
type Source = keyof typeof SOURCES;

/**
 * The engine's side is a whole merge as compaction does it: checksums of all inputs checked, rows sorted by `at` and those
 * of one time by arrival, Parquet with field ids written, the output read again for statistics of every column and for
 * filters, its checksum taken. What counts is the CPU of its process and of ours meanwhile. DuckDB's side is one
 * `COPY (SELECT … ORDER BY at) TO 'x.parquet'` with zstd and row groups of as many rows, on one thread like a merge, in
 * a process that has long started.
 */
export const benchmark = defineBenchmark({
  name: "compaction/merge",
  question: "How many megabytes of tlm does a merge take per CPU second, against DuckDB's own COPY of the same rows?",
  notMeasured:
    "Syncs, and what a merge does beyond COPY: statistics for the catalog, filters, checksums. COPY has the options that a " +
    "user would give it, a merge its own (other encodings, a lower level of zstd). Run from its source a process takes a " +
    "tenth of a second longer to start than released, for the types that Node takes out.",
  options: z.strictObject({
    data: z.enum(DATASET_NAMES).default("logs").describe(DATASET_NAMES.join(", ")),
    rows: z.coerce.number().int().positive().default(640_000).describe("in all extents"),
    extentRows: z.coerce.number().int().positive().default(8_000).describe("in one extent"),
    late: z.coerce
      .number()
      .int()
      .nonnegative()
      .default(20_000)
      .describe("rows that a row may be behind its place in time"),
    process: z
      .enum(["own", "kept", "turn"])
      .default("kept")
      .describe(
        `own: the first merge of a process, with its start; kept: later ones (up to ${MAX_TASKS} share one); turn: an ` +
          "average one of as many as share a process, from its start to its end",
      ),
  }),
  measures: {
    cpu: { unit: "MB/CPU-s", better: "more", doc: "of tlm, per CPU second" },
    wall: { unit: "MB/s", better: "more", doc: "of tlm" },
    size: { unit: "MB", better: "less", doc: "of the Parquet that was written" },
  },
  rounds: 5,
  hasPeers: true,
  open: async ({ data, rows, extentRows, late, process }, { folder }) => {
    const sorted = requiredDataset(data, rows);
    const dataset = delayed(sorted, late);
    const extents = await writeExtents(dataset, join(folder, "extents"), extentRows);
    const spare = new SpareProcess();
    const bench: Bench = { folder, dataset, extents, expected: expectedAnswers(dataset), spare };
    const copiers: Copier[] = [];
    const close = async () => {
      await spare.end();
      for (const copier of copiers) await copier.stop();
    };
    try {
      // The first merge says how large the row groups are.
      const rowGroupRows = await withMerged(bench, "own", async ({ files }) => {
        await mustHaveAll("the merge", bench, files);
        return await rowGroupRowsOf(files);
      });
      const sides = [mergeSide(bench, process)];
      for (const source of Object.keys(SOURCES) as Source[]) {
        const copier = startCopier();
        copiers.push(copier);
        const target = join(folder, `${source}.parquet`);
        const job = { source: await sourceOf(source, bench), columns: extents.columns, target, rowGroupRows };
        sides.push(copySide(bench, source, copier, job));
      }
      if (process === "kept") await startKept(bench);
      return { sides, close };
    } catch (error) {
      await close();
      throw error;
    }
  },
});

const LIMITS = { memoryBytes: 512 * MIB, spillBytes: 32 * 1024 * MIB, threads: 1 };

type Bench = { folder: string; dataset: Dataset; extents: Extents; expected: Answers; spare: SpareProcess };
type Run = { seconds: number; cpuSeconds: number; sizeBytes: number };

function mergeSide(bench: Bench, process: "own" | "kept" | "turn"): Side {
  const once = () => (process === "turn" ? turnOf(bench) : withMerged(bench, process, async ({ run }) => run));
  return { name: "merge", round: async () => valuesOf(bench, await once()) };
}

/** Its rows are checked before any time counts. */
function copySide(bench: Bench, source: Source, copier: Copier, job: CopyJob): Side {
  return {
    name: `COPY, ${source}`,
    answers: async () => {
      await copier.copy(job);
      await mustHaveAll(`COPY from ${source}`, bench, [{ path: job.target }]);
    },
    round: async () => {
      const copied = await copier.copy(job);
      return valuesOf(bench, { ...copied, sizeBytes: (await stat(job.target)).size });
    },
  };
}

function valuesOf({ extents }: Bench, { seconds, cpuSeconds, sizeBytes }: Run): Record<string, number> {
  const megabytes = extents.sizeBytes / 1e6;
  return { cpu: megabytes / cpuSeconds, wall: megabytes / seconds, size: sizeBytes / 1e6 };
}

/** Makes what COPY is to read. */
async function sourceOf(kind: Source, { folder, dataset, extents }: Bench): Promise<CopySource> {
  const path = join(folder, "rows.ndjson");
  if (kind === "table" || kind === "ndjson") {
    await writeFile(path, dataset.ndjson);
    return { kind, path };
  }
  const paths: string[] = [];
  for (const input of extents.inputs) {
    const file = `${input.path}.parquet`;
    await writeFile(file, await tlmToParquet(await readFile(input.path)));
    paths.push(file);
  }
  return { kind, paths };
}

/** Has a new process, which has done one merge, be kept for the next. */
async function startKept(bench: Bench): Promise<void> {
  await bench.spare.end();
  await withMerged(bench, "kept", async () => {});
}

/** A merge of a whole turn, on average: of as many as share a process. */
async function turnOf(bench: Bench): Promise<Run> {
  await bench.spare.end();
  const cpuBefore = cpuSecondsOf(pid);
  const runs: Run[] = [];
  for (let i = 0; i < MAX_TASKS; i++) runs.push(await withMerged(bench, "kept", async ({ run }) => run));
  await bench.spare.end();
  const cpuSeconds = (cpuSecondsOf(pid) - cpuBefore) / MAX_TASKS;
  return { seconds: median(runs.map(({ seconds }) => seconds)), cpuSeconds, sizeBytes: runs[0]?.sizeBytes ?? 0 };
}

/** Merges all extents, shows what came out, and deletes it. */
async function withMerged<T>(
  { folder, extents: { columns, inputs }, spare }: Bench,
  process: "own" | "kept",
  use: (merged: { files: MergedFile[]; run: Run }) => Promise<T>,
): Promise<T> {
  const own = await mkdtemp(join(folder, "merge-"));
  try {
    const task = { columns, inputs, clusterBy: [], folder: own, targetBytes: TARGET_BYTES, limits: LIMITS };
    const cpuBefore = cpuSecondsOf(pid);
    const startedMs = systemClock.monotonicMs();
    const files = await mergeInProcess(task, {
      clock: systemClock,
      share: () => 1,
      signal: new AbortController().signal,
      codeCache: join(folder, "code"),
      ...(process === "kept" ? { spare } : {}),
    });
    const seconds = (systemClock.monotonicMs() - startedMs) / 1_000;
    const cpuSeconds = cpuSecondsOf(pid) - cpuBefore;
    const sizeBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0);
    return await use({ files, run: { seconds, cpuSeconds, sizeBytes } });
  } finally {
    await rm(own, { recursive: true });
  }
}

async function rowGroupRowsOf([first]: readonly MergedFile[]): Promise<number> {
  if (first === undefined) throw new Error("a merge without a file");
  const [rows] = await ask(`SELECT max(row_group_num_rows) FROM parquet_metadata(${quoteText(first.path)})`);
  return Number(rows);
}

async function mustHaveAll(side: string, { dataset, expected }: Bench, files: readonly { path: string }[]) {
  const from = `read_parquet([${files.map(({ path }) => quoteText(path)).join(", ")}])`;
  const [rows, sum, hash] = await ask(duckdbAnswersSql(dataset.checks, from));
  mustAgree(side, { rows: Number(rows), sum: Number(sum), hash: Number(hash) }, expected);
  for (const { path } of files) {
    const before = `SELECT "at", lag("at") OVER () AS before FROM read_parquet(${quoteText(path)})`;
    const [late] = await ask(`SELECT count(*) FILTER ("at" < before) FROM (${before})`);
    if (late !== "0") throw new Error(`${side}: ${late} rows are out of order`);
  }
}

async function ask(sql: string): Promise<(string | null)[]> {
  const duckdb = await loadDuckDb();
  const database = await duckdb.open(":memory:");
  const connection = await duckdb.connect(database);
  try {
    await duckdb.query(connection, "SET threads = 1");
    return (await runSql(duckdb, connection, sql))[0] ?? [];
  } finally {
    duckdb.disconnect_sync(connection);
    duckdb.close_sync(database);
  }
}
