import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readArguments, type Arguments } from "../support/arguments.ts";
import { withTemporaryFolder } from "../support/data-file.ts";
import type { IngestRun } from "../support/ingest-run.ts";
import type { Cut } from "../support/load-plan.ts";
import { printProfile, summarizeProfiles } from "../support/profile.ts";
import { median } from "../../src/capacity/quantile.ts";
import { machine, MIB, printTable, shown } from "../support/report.ts";
import { PRESETS, type LoadCase } from "./cases.ts";
import { runOverload } from "./overload.ts";
import { startSide, type Side } from "./side.ts";
import { stageOf } from "./stages.ts";

/**
 * Question: how much NDJSON does durable and visible HTTP ingest take per second, and per CPU-second of the server; how
 * long does a client wait for its acknowledgement, and what does it cost in memory and disk?
 *
 *     node bench/load/ingest.ts [PRESET…] [options]
 *
 * See `bench/README.md` for the presets and how to read the figures.
 */
const OPTIONS = {
  rows: { type: "string" },
  rounds: { type: "string", default: "5" },
  data: { type: "string" },
  "body-bytes": { type: "string" },
  "rows-per-request": { type: "string" },
  connections: { type: "string" },
  tables: { type: "string" },
  "extra-columns": { type: "string" },
  extents: { type: "string" },
  undeclared: { type: "boolean" },
  seconds: { type: "string", default: "60" },
  factor: { type: "string", default: "4" },
  profile: { type: "boolean" },
} as const;

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  console.log(machine());
  for (const name of options.positionals.length === 0 ? ["mib"] : options.positionals) {
    console.log(`\n${name}`);
    const preset = PRESETS[name === "overload" ? "mib" : name];
    if (preset === undefined) {
      throw new Error(`${name} is no preset; there are ${[...Object.keys(PRESETS), "overload"].join(", ")}`);
    }
    // The base of a comparison stays without extents.
    const seedsAll = preset.every(({ extents }) => extents === 0);
    const cases = preset.map((loadCase) => adjusted(loadCase, options, seedsAll));
    if (name === "overload") await overload(cases, options);
    else if (options.has("profile")) await profile(cases, options);
    else await measure(cases, options.count("rounds"));
  }
}

/** The case with what the command line says otherwise. */
function adjusted(loadCase: LoadCase, options: Arguments, seedsAll: boolean): LoadCase {
  const count = (name: string, otherwise: number) =>
    options.text(name) === undefined ? otherwise : options.count(name);
  return {
    ...loadCase,
    data: options.text("data") ?? loadCase.data,
    rows: count("rows", loadCase.rows),
    cut: adjustedCut(loadCase.cut, options),
    connections: count("connections", loadCase.connections),
    tables: count("tables", loadCase.tables),
    extraColumns: count("extra-columns", loadCase.extraColumns),
    extents: seedsAll || loadCase.extents > 0 ? count("extents", loadCase.extents) : 0,
    types: options.has("undeclared") ? "text" : loadCase.types,
  };
}

function adjustedCut(cut: Cut, options: Arguments): Cut {
  if (options.text("rows-per-request") !== undefined) return { rows: options.count("rows-per-request") };
  return options.text("body-bytes") === undefined ? cut : { sizeBytes: options.count("body-bytes") };
}

async function measure(cases: readonly LoadCase[], rounds: number): Promise<void> {
  const names = ["warm_up", ...Array.from({ length: rounds }, (_, i) => `round_${i}`)];
  await withSides(cases, names, [], async (sides) => {
    const runs = new Map<Side, IngestRun[]>(sides.map((side) => [side, []]));
    for (const round of names) {
      for (const side of sides) {
        const run = await side.run(round);
        if (round !== "warm_up") runs.get(side)?.push(run);
      }
    }
    report(sides, runs);
  });
}

async function withSides(
  cases: readonly LoadCase[],
  rounds: readonly string[],
  nodeArgs: readonly string[],
  task: (sides: readonly Side[]) => Promise<void>,
): Promise<void> {
  await withTemporaryFolder(async (folder) => {
    const sides: Side[] = [];
    try {
      for (const loadCase of cases) {
        const side = await startSide(loadCase, { folder, rounds, nodeArgs });
        if (side !== undefined) sides.push(side);
      }
      for (const side of sides) describe(side);
      await task(sides);
    } finally {
      for (const side of sides) await side.stop();
    }
  });
}

function describe({ case: loadCase, data }: Side): void {
  const { cut, connections, tables, extraColumns, extents, types } = loadCase;
  const bodies = "rows" in cut ? `${cut.rows} rows` : `${shown(cut.sizeBytes / MIB)} MiB`;
  const more = [
    tables > 1 ? `${tables} tables` : "",
    extraColumns > 0 ? `${extraColumns} columns more than the rows have` : "",
    extents > 0 ? `${extents} extents before` : "",
    types === "declared" ? "" : DESCRIBED[types],
  ].filter((text) => text !== "");
  console.log(
    [
      `${loadCase.name}: ${data.rows} rows of ${data.name}, ${shown(data.sizeBytes / 1e6)} MB`,
      `${bodies} per request, ${connections} connections, keyed`,
      ...more,
    ].join("; "),
  );
}

const DESCRIBED: Readonly<Record<Exclude<LoadCase["types"], "declared">, string>> = {
  settled: "columns that were inferred before",
  inferred: "columns inferred by the first request",
  text: "undeclared columns",
};

/** Every figure is the median of the rounds but memory and the longest wait, which are the worst. */
function report(sides: readonly Side[], runs: ReadonlyMap<Side, IngestRun[]>): void {
  const columns: [string, (side: Side, of: Summary) => number][] = [
    ["wall MB/s", ({ data }, of) => data.sizeBytes / 1e6 / of.median((run) => run.wallSeconds)],
    ["MB/CPU-s", ({ data }, of) => data.sizeBytes / 1e6 / of.median((run) => run.serverCpuSeconds)],
    ["k rows/s", ({ data }, of) => data.rows / 1e3 / of.median((run) => run.wallSeconds)],
    ["acks/s", (_, of) => of.median((run) => run.accepted / run.wallSeconds)],
    ["p50 ms", (_, of) => of.median((run) => run.latencyMs.p50)],
    ["p99 ms", (_, of) => of.median((run) => run.latencyMs.p99)],
    ["max ms", (_, of) => of.worst((run) => run.latencyMs.max)],
    ["loop p99 ms", (_, of) => of.median((run) => run.loopP99Ms)],
    ["idle MiB", ({ idleBytes }) => idleBytes / MIB],
    ["peak MiB", (_, of) => of.worst((run) => run.peakBytes) / MIB],
    ["disk MB", (_, of) => of.median((run) => run.diskBytes) / 1e6],
    ["refused", (_, of) => of.worst((run) => run.refused)],
    ["client CPU-s", (_, of) => of.median((run) => run.cpuSeconds)],
    ["server CPU-s", (_, of) => of.median((run) => run.serverCpuSeconds)],
  ];
  printTable(
    ["", ...columns.map(([name]) => name)],
    sides.map((side) => {
      const of = summaryOf(runs.get(side) ?? []);
      return [side.case.name, ...columns.map(([, figure]) => shown(figure(side, of)))];
    }),
  );
  reportRatios(sides, runs);
}

type Figure = (run: IngestRun) => number;
type Summary = Record<"median" | "worst", (figure: Figure) => number>;

function summaryOf(runs: readonly IngestRun[]): Summary {
  return {
    median: (figure) => median(runs.map(figure)),
    worst: (figure) => Math.max(...runs.map(figure)),
  };
}

/** MB per CPU-second against the first case, round by round. */
function reportRatios([base, ...others]: readonly Side[], runs: ReadonlyMap<Side, IngestRun[]>): void {
  if (base === undefined) return;
  const rate = (side: Side, round: number) => side.data.sizeBytes / (runs.get(side)?.[round]?.serverCpuSeconds ?? 0);
  for (const side of others) {
    const ratios = (runs.get(side) ?? []).map((_, round) => rate(side, round) / rate(base, round));
    console.log(`${side.case.name}: ${shown(median(ratios))}× the MB/CPU-s of ${base.case.name}`);
  }
}

async function overload(cases: readonly LoadCase[], options: Arguments): Promise<void> {
  await withSides(cases, ["warm_up", "capacity", "overload"], [], async (sides) => {
    for (const side of sides) {
      await runOverload(side, { seconds: options.count("seconds"), factor: options.count("factor") });
    }
  });
}

/** Where the CPU of the server's JavaScript goes. */
async function profile(cases: readonly LoadCase[], options: Arguments): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "engine-profile-"));
  const rounds = Array.from({ length: options.count("rounds") }, (_, i) => `round_${i}`);
  await withSides(cases.slice(0, 1), rounds, ["--cpu-prof", `--cpu-prof-dir=${folder}`], async (sides) => {
    for (const round of rounds) for (const side of sides) await side.run(round);
  });
  printProfile(summarizeProfiles(folder, stageOf));
  await rm(folder, { recursive: true });
}

if (import.meta.main) await main(process.argv.slice(2));
