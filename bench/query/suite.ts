import { mkdir } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { ExtentFormat } from "../../src/format/types.ts";
import { installPeers } from "../peers/install.ts";
import { readArguments, type Arguments } from "../support/arguments.ts";
import { withTemporaryFolder } from "../support/data-file.ts";
import type { Cut } from "../support/load-plan.ts";
import { machine, MIB, shown } from "../support/report.ts";
import { queryData, type QueryData } from "./data.ts";
import { measureUnderIngest } from "./half-fresh.ts";
import { dropPageCache, measureFirst, measureWarm, printTimes } from "./measure.ts";
import { benchQueries, type BenchQuery } from "./queries.ts";
import { FRESH_ROWS, seedHome, type ExtentPlan, type SeededHome } from "./seed.ts";
import { engineSide, librarySide, type LibraryName } from "./side.ts";

/**
 * Question: how long does a query take over HTTP, against DuckDB in process over the very same Parquet extents, DuckDB
 * over its own table, and ClickHouse over a MergeTree table; and what does it cost when rows are fresh?
 *
 *     node bench/query/suite.ts [--format parquet] [--extent-rows N] [--no-chdb]     against the libraries
 *     node bench/query/suite.ts --format tlm                                         all rows fresh, against all in Parquet
 *     node bench/query/suite.ts --half-fresh                                         half of them, during ingest, against idle
 *
 * See `bench/README.md` for the options and how to read the figures.
 */
const OPTIONS = {
  rows: { type: "string", default: "1000000" },
  rounds: { type: "string", default: "5" },
  "cold-rounds": { type: "string", default: "3" },
  format: { type: "string", default: "parquet" },
  "extent-rows": { type: "string" },
  "half-fresh": { type: "boolean" },
  "ingest-mb": { type: "string", default: "10" },
  "no-cold": { type: "boolean" },
  "no-chdb": { type: "boolean" },
  only: { type: "string" },
  keep: { type: "string" },
} as const;

/** What a large body is cut into at ingest. */
const CUT_BYTES = 16 * MIB;
const COMPACTED_ROWS = 1_000_000;

type Bench = { options: Arguments; folder: string; data: QueryData; queries: readonly BenchQuery[] };

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  const format = formatOf(options.text("format") ?? "");
  console.log(machine());
  await withFolder(options.text("keep"), async (folder) => {
    const rows = options.count("rows");
    const data = await queryData(join(folder, `data-${rows}`), rows);
    console.log(`${rows} rows, ${shown(data.sizeBytes / 1e6)} MB of NDJSON`);
    const bench = { options, folder, data, queries: chosen(benchQueries(data.facts), options.text("only")) };
    if (options.has("half-fresh")) await runHalfFresh(bench);
    else if (format === "tlm") await runFresh(bench);
    else await runParquet(bench);
  });
}

function formatOf(name: string): ExtentFormat {
  if (name !== "parquet" && name !== "tlm")
    throw new Error(`${name} is no format of extents; there are parquet and tlm`);
  return name;
}

function chosen(queries: readonly BenchQuery[], only: string | undefined): BenchQuery[] {
  const found = queries.filter(({ name }) => only === undefined || name.includes(only));
  if (found.length > 0) return found;
  throw new Error(`no query has ${only} in its name; there are ${queries.map(({ name }) => name).join("; ")}`);
}

async function withFolder(kept: string | undefined, task: (folder: string) => Promise<void>): Promise<void> {
  if (kept === undefined) return withTemporaryFolder(task);
  await mkdir(kept, { recursive: true });
  await task(kept);
}

/** Extents as ingest of large bodies makes them, unless their rows are given. */
function parquetPlan({ options }: Bench): ExtentPlan {
  const cut: Cut =
    options.text("extent-rows") === undefined ? { sizeBytes: CUT_BYTES } : { rows: options.count("extent-rows") };
  return { format: "parquet", cut };
}

async function seeded({ folder, data }: Bench, name: string, plan: ExtentPlan): Promise<SeededHome> {
  const cut = "rows" in plan.cut ? `${plan.cut.rows}-rows` : `${plan.cut.sizeBytes}-bytes`;
  const home = await seedHome(join(folder, `home-${name}-${plan.format}-${cut}-${data.facts.rows}`), data, plan);
  console.log(`${name}: ${home.extents} extents, ${shown(home.sizeBytes / 1e6)} MB`);
  return home;
}

async function runParquet(bench: Bench): Promise<void> {
  const { options, folder, data, queries } = bench;
  const home = await seeded(bench, "engine", parquetPlan(bench));
  const names: LibraryName[] = ["raw", "table"];
  if (!options.has("no-chdb")) {
    installPeers();
    names.push("chdb");
  }
  const threads = availableParallelism();
  const peers = join(folder, `peers-${data.facts.rows}`);
  const libraries = names.map((name) => librarySide(name, { folder: peers, data, files: home.files, threads }));
  const sides = [engineSide("engine", home), ...libraries];
  printTimes("warm", queries, await measureWarm(sides, queries, options.count("rounds")));
  if (options.has("no-cold") || !dropPageCache()) return;
  const rounds = options.count("cold-rounds");
  const forget = { beforeStart: () => home.forgetCaches(), beforeQuery: () => void dropPageCache() };
  printTimes(
    "cold (page cache dropped, new process)",
    queries,
    await measureFirst(sides, queries, { rounds, ...forget }),
  );
}

async function runFresh(bench: Bench): Promise<void> {
  const { options, queries } = bench;
  const rows = options.text("extent-rows") === undefined ? FRESH_ROWS : options.count("extent-rows");
  const fresh = await seeded(bench, "fresh", { format: "tlm", cut: { rows } });
  const parquet = await seeded(bench, "parquet", { format: "parquet", cut: { sizeBytes: CUT_BYTES } });
  const sides = [engineSide("fresh", fresh), engineSide("parquet", parquet)];
  const warm = await measureWarm(sides, queries, options.count("rounds"));
  printTimes("warm", queries, warm);
  if (options.has("no-cold")) return;
  const forget = async () => {
    for (const home of [fresh, parquet]) await home.forgetCaches();
  };
  const first = { rounds: options.count("cold-rounds"), beforeStart: forget, beforeQuery: () => {} };
  const times = await measureFirst(sides, queries, first);
  printTimes("first touch (new process, no local caches, files in the page cache)", queries, times);
}

async function runHalfFresh(bench: Bench): Promise<void> {
  const { options, data, folder, queries } = bench;
  const cut = options.text("extent-rows") === undefined ? COMPACTED_ROWS : options.count("extent-rows");
  const plan: ExtentPlan = { format: "parquet", cut: { rows: cut }, freshFrom: data.facts.rows >> 1 };
  const home = await seeded(bench, "half-fresh", plan);
  const load = { folder, megabytesPerSecond: options.count("ingest-mb"), rounds: options.count("rounds") };
  printTimes("half of the rows fresh", queries, await measureUnderIngest(home, queries, load));
}

if (import.meta.main) await main(process.argv.slice(2));
