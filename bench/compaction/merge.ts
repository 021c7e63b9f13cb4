import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pid } from "node:process";
import { MAX_TASKS, mergeInProcess, SpareProcess } from "../../src/compaction/merge-process.ts";
import type { MergedFile } from "../../src/compaction/merge.ts";
import { TARGET_BYTES } from "../../src/compaction/pick.ts";
import { systemClock } from "../../src/core/clock.ts";
import { loadDuckDb, quoteText, runSql } from "../../src/io/duckdb/duckdb.ts";
import { tlmToParquet } from "../../src/io/duckdb/parquet.ts";
import { duckdbAnswersSql, expectedAnswers, mustAgree, type Answers } from "../support/answers.ts";
import { readArguments } from "../support/arguments.ts";
import { datasetOf, withTemporaryFolder } from "../support/data-file.ts";
import { cpuSecondsOf } from "../support/process-stats.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, MIB, printTable, shown } from "../support/report.ts";
import type { Dataset } from "../support/shapes.ts";
import { startCopier, type Copier, type CopySource } from "./copy.ts";
import { delayed, writeExtents, type Extents } from "./extents.ts";

/**
 * Question: how many megabytes of `tlm` does a merge take per CPU-second, against DuckDB's own COPY of the same rows?
 *
 *     node bench/compaction/merge.ts [DATA…] [--rows 640000] [--extent-rows 8000] [--late 20000] [--rounds 5]
 *                                    [--against table,parquet,ndjson] [--process own,kept,turn]
 *
 * The engine's side is a whole merge as compaction does it: a process of its own started, checksums of all inputs
 * checked, rows sorted by `at` and those of one time by arrival, Parquet with field ids written, the output read again
 * for statistics of every column and for filters, its checksum taken. What counts is the CPU of that process from its
 * start to its end, and of ours meanwhile. Merges that follow each other in one turn share a process, up to eight of them:
 * `own` is the first of a turn, `kept` each of the others, and `turn` an eighth of a whole one, from the start of its
 * process to its end.
 *
 * DuckDB's side is one `COPY (SELECT … ORDER BY at) TO 'x.parquet'` with zstd and row groups of as many rows, on one
 * thread like a merge, in a process that has long started. It reads the same rows from
 *
 *     table     its own table in memory, loaded before the time counts: sort, compress and write, and nothing else
 *     parquet   the extents as Parquet files of as many rows: what it would have to read as well
 *     ndjson    the rows as they were sent
 *
 * `table` is the strictest: everything that reading rows costs is left out. Neither side syncs its files, and only the
 * merge makes statistics for the catalog and filters, takes checksums, and starts a process; run from its source, that
 * takes a tenth of a second longer than released, for the types that Node takes out. COPY has the options that a user
 * would give it, and a merge its own (other encodings, a lower level of zstd); whose files are larger the table shows.
 * `late` is how many rows a row may be behind its place in time when it arrives; with 0 the inputs follow each other.
 */
const OPTIONS = {
  rows: { type: "string", default: "640000" },
  "extent-rows": { type: "string", default: "8000" },
  late: { type: "string", default: "20000" },
  rounds: { type: "string", default: "5" },
  against: { type: "string", default: "table,parquet,ndjson" },
  process: { type: "string", default: "own,kept,turn" },
} as const;

const LIMITS = { memoryBytes: 512 * MIB, spillBytes: 32 * 1024 * MIB, threads: 1 };

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  console.log(machine());
  const names = options.positionals.length === 0 ? ["logs"] : options.positionals;
  const against = (options.text("against") ?? "").split(",");
  const processes = (options.text("process") ?? "").split(",");
  for (const name of names) {
    const sorted = datasetOf(name, options.count("rows"));
    if (sorted === undefined) continue;
    await withTemporaryFolder(async (folder) => {
      const dataset = delayed(sorted, Number(options.text("late")));
      const extents = await writeExtents(dataset, join(folder, "extents"), options.count("extent-rows"));
      const copier = startCopier();
      const spare = new SpareProcess();
      try {
        const bench = { folder, dataset, extents, expected: expectedAnswers(dataset), copier, spare };
        await compare(bench, { against, processes }, options.count("rounds"));
      } finally {
        await spare.end();
        await copier.stop();
      }
    });
  }
}

type Bench = {
  folder: string;
  dataset: Dataset;
  extents: Extents;
  expected: Answers;
  copier: Copier;
  spare: SpareProcess;
};
type Sides = { against: readonly string[]; processes: readonly string[] };
type Run = { seconds: number; cpuSeconds: number; sizeBytes: number };
type Pair = { merge: Run; copy: Run };

async function compare(bench: Bench, { against, processes }: Sides, rounds: number): Promise<void> {
  const { dataset, extents } = bench;
  // The first merge warms up, and says how large the row groups are.
  const rowGroupRows = await withMerged(bench, "own", async ({ files }) => {
    await mustHaveAll("the merge", bench, files);
    return rowGroupRowsOf(files);
  });
  const megabytes = extents.sizeBytes / 1e6;
  const rows: string[][] = [];
  for (const kind of against) {
    const source = await sourceOf(kind, bench);
    const target = join(bench.folder, "copied.parquet");
    const job = { source, columns: extents.columns, target, rowGroupRows };
    await bench.copier.copy(job);
    await mustHaveAll(`COPY from ${kind}`, bench, [{ path: target }]);
    for (const process of processes) {
      if (process === "kept") await startKept(bench);
      const pairs: Pair[] = [];
      for (let round = 0; round < rounds; round++) {
        const merge =
          process === "turn" ? await turnOf(bench) : await withMerged(bench, process, async ({ run }) => run);
        const copied = await bench.copier.copy(job);
        pairs.push({ merge, copy: { ...copied, sizeBytes: (await stat(target)).size } });
      }
      rows.push([kind, process, ...figuresOf(pairs, megabytes)]);
    }
  }
  console.log(
    `\n${dataset.name}: ${dataset.rows} rows, ${extents.inputs.length} extents of ${shown(megabytes)} MB together, ` +
      `row groups of ${rowGroupRows} rows`,
  );
  printTable(HEAD, rows);
}

const HEAD = [
  "COPY from",
  "process",
  "merge MB/CPU-s",
  "COPY MB/CPU-s",
  "merge s",
  "COPY s",
  "merge MB",
  "COPY MB",
  "ratio",
  "of",
];

function figuresOf(pairs: readonly Pair[], megabytes: number): string[] {
  const of = (figure: (pair: Pair) => number): string => shown(median(pairs.map(figure)));
  const ratios = pairs.map(({ merge, copy }) => copy.cpuSeconds / merge.cpuSeconds);
  return [
    of(({ merge }) => megabytes / merge.cpuSeconds),
    of(({ copy }) => megabytes / copy.cpuSeconds),
    of(({ merge }) => merge.seconds),
    of(({ copy }) => copy.seconds),
    of(({ merge }) => merge.sizeBytes / 1e6),
    of(({ copy }) => copy.sizeBytes / 1e6),
    `${shown(median(ratios))}×`,
    ratios.map(shown).join(" "),
  ];
}

/** Makes what COPY is to read. */
async function sourceOf(kind: string, { folder, dataset, extents }: Bench): Promise<CopySource> {
  const path = join(folder, "rows.ndjson");
  if (kind === "table" || kind === "ndjson") {
    await writeFile(path, dataset.ndjson);
    return { kind, path };
  }
  if (kind !== "parquet") throw new Error(`${kind} is nothing that COPY could read here`);
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
  process: string,
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

if (import.meta.main) await main(process.argv.slice(2));
