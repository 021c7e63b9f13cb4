import { isDeepStrictEqual } from "node:util";
import { join } from "node:path";
import { nextTurn } from "../../src/core/clock.ts";
import { VERSION } from "../../src/core/version.ts";
import { median } from "../../src/capacity/quantile.ts";
import {
  bytesToDiskOf,
  cpuSecondsOf,
  descendantsOf,
  memoryOf,
  resetPeak,
  threadSecondsOf,
  type ThreadSeconds,
} from "../support/process-stats.ts";
import type { Benchmark, OpenBenchmark, Side } from "./benchmark.ts";
import { loadProblems, percent, Watch, type ForeignLoad } from "./load.ts";
import { probeMachine } from "./probe.ts";
import { RESULT_SCHEMA, type Result, type SideRound, type Summary } from "./result.ts";
import { medianInterval, noiseOf, ratiosOf, type Interval } from "./statistics.ts";

export type RunOptions = {
  /** As texts, by name; what is not given has its default. */
  options: Readonly<Record<string, string>>;
  rounds: number | undefined;
  /** Whether a round goes before those that count, as it must for figures. */
  warmsUp: boolean;
  seed: number;
  /** An empty folder, which is removed by the caller. */
  folder: string;
  revision: { commit: string | null; isClean: boolean };
  signal: AbortSignal;
  /** Of the machine; another one in tests, for it takes seconds. */
  probe?: typeof probeMachine;
};

/** An effect of less than this is nothing that a benchmark is asked for. */
const EFFECT = 0.05;

/** Runs a benchmark: answers first, then a round that warms up, then rounds in which the sides take turns. */
export async function runBenchmark(benchmark: Benchmark, run: RunOptions): Promise<Result> {
  const startedAt = new Date().toISOString();
  const options = optionsOf(benchmark, run.options);
  const machine = await (run.probe ?? probeMachine)(join(run.folder, "probe"));
  const { seed, signal } = run;
  const count = run.rounds ?? benchmark.rounds;
  const opened = await benchmark.open(options, { folder: run.folder, seed, rounds: count, signal });
  try {
    await checkAnswers(opened.sides);
    const rounds: Record<string, SideRound>[] = [];
    if (run.warmsUp) await oneRound(benchmark, opened, { round: 0, signal });
    opened.marks?.();
    const watch = new Watch();
    for (let round = 1; round <= count; round++) {
      rounds.push(await oneRound(benchmark, opened, { round, signal }));
    }
    const load = watch.end();
    const [ours] = opened.sides;
    const summary = opened.sides.flatMap((side) => summaryOf(benchmark, { rounds, side, ours, seed }));
    const { name, question, notMeasured } = benchmark;
    return {
      schema: RESULT_SCHEMA,
      benchmark: name,
      question,
      notMeasured,
      options,
      seed,
      startedAt,
      ...run.revision,
      release: VERSION,
      machine,
      rounds,
      summary,
      marks: [...new Set(opened.marks?.())],
      noise: noiseIn(benchmark, { rounds, ours, seed, load, warmsUp: run.warmsUp }),
    };
  } finally {
    await opened.close?.();
  }
}

/** What a benchmark makes of texts; what is not given has its default. Throws a sentence for what it does not take. */
export function optionsOf(benchmark: Benchmark, texts: RunOptions["options"]): Record<string, unknown> {
  const parsed = benchmark.options.safeParse(texts);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const names = Object.keys(benchmark.options.shape).map((name) => `--${name}`);
  const where = issue?.path.length === 0 ? "" : `--${issue?.path.join(".")}: `;
  throw new Error(`${benchmark.name}: ${where}${issue?.message}; it takes ${names.join(", ")}`);
}

/** Throws unless all sides that answer say the same. */
async function checkAnswers(sides: readonly Side[]): Promise<void> {
  let first: { name: string; answers: unknown } | undefined;
  for (const { name, answers } of sides) {
    if (answers === undefined) continue;
    const own = await answers();
    first ??= { name, answers: own };
    if (isDeepStrictEqual(own, first.answers)) continue;
    throw new Error(`${name} answers ${JSON.stringify(own)}, ${first.name} ${JSON.stringify(first.answers)}`);
  }
}

/** The sides in turn; every other round the other way round, so that none always comes after the same one. */
async function oneRound(
  benchmark: Benchmark,
  { sides }: OpenBenchmark,
  { round, signal }: { round: number; signal: AbortSignal },
): Promise<Record<string, SideRound>> {
  const measured: Record<string, SideRound> = {};
  for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
    // Ctrl-C is not heard while a side works on this thread without ever waiting.
    await nextTurn();
    signal.throwIfAborted();
    measured[side.name] = await measure(benchmark, side);
  }
  return measured;
}

async function measure(benchmark: Benchmark, side: Side): Promise<SideRound> {
  const processes = side.processes?.() ?? {};
  for (const pid of Object.values(processes)) resetPeak(pid);
  const before = spentBy(processes);
  const startedMs = performance.now();
  const values = await side.round();
  const wallSeconds = (performance.now() - startedMs) / 1_000;
  const unknown = Object.keys(values).find((name) => !(name in benchmark.measures));
  if (unknown !== undefined)
    throw new Error(`${benchmark.name}: ${side.name} measures ${unknown}, which is not declared`);
  const endless = Object.entries(values).find(([, value]) => !Number.isFinite(value));
  if (endless !== undefined)
    throw new Error(`${benchmark.name}: ${side.name} measures ${endless.join(" as ")}, which is no figure`);
  const after = spentBy(processes);
  const spent = (count: (one: Spent) => number | undefined) => difference(before, after, count);
  const peaks = Object.entries(processes).map(([name, pid]) => [name, memoryOf(pid).peakBytes] as const);
  const [main, others] = [spent(({ threads }) => threads.main), spent(({ threads }) => threads.others)];
  const threads = Object.keys(main).map(
    (name) => [name, { main: main[name] ?? 0, others: others[name] ?? 0 }] as const,
  );
  return {
    values: { ...values },
    wallSeconds,
    cpuSeconds: spent(({ cpuSeconds }) => cpuSeconds),
    threadSeconds: Object.fromEntries(threads),
    peakBytes: Object.fromEntries(peaks),
    bytesToDisk: spent(({ bytesToDisk }) => bytesToDisk),
  };
}

type Spent = { cpuSeconds: number; threads: ThreadSeconds; bytesToDisk: number | undefined };

/** Of this process without its children, and of the others with theirs. */
function spentBy(processes: Readonly<Record<string, number>>): Map<string, Spent> {
  const { user, system } = process.cpuUsage();
  const { pid } = process;
  const own = { cpuSeconds: (user + system) / 1e6, threads: threadSecondsOf(pid), bytesToDisk: bytesToDiskOf([pid]) };
  const others = Object.entries(processes).map(([name, id]): [string, Spent] => [
    name,
    { cpuSeconds: cpuSecondsOf(id), threads: threadSecondsOf(id), bytesToDisk: bytesToDiskOf(descendantsOf(id)) },
  ]);
  return new Map([["bench", own], ...others]);
}

/** Of a count that grows, by process; without those of which it is not known. */
function difference(
  before: ReadonlyMap<string, Spent>,
  after: ReadonlyMap<string, Spent>,
  count: (one: Spent) => number | undefined,
): Record<string, number> {
  const entries = [...after].flatMap(([name, now]): [string, number][] => {
    const then = before.get(name);
    const [from, to] = [then && count(then), count(now)];
    return from === undefined || to === undefined ? [] : [[name, Math.max(0, to - from)]];
  });
  return Object.fromEntries(entries);
}

type Measured = { rounds: readonly Record<string, SideRound>[]; ours: Side | undefined; seed: number };

function summaryOf(benchmark: Benchmark, { rounds, side, ours, seed }: Measured & { side: Side }): Summary[] {
  return Object.entries(benchmark.measures).flatMap(([measure, { unit, better }]) => {
    const values = valuesOf(rounds, side.name, measure);
    if (values.length === 0) return [];
    const own = ours === undefined || side === ours ? [] : valuesOf(rounds, ours.name, measure);
    // Beside 0 there is none, as of errors where nothing failed.
    const ratios = ratiosOf(own, values).filter((each) => Number.isFinite(each));
    const ratio = ratios.length === 0 ? null : { median: median(ratios), interval: medianInterval(ratios, seed) };
    const interval = medianInterval(values, seed);
    return [{ side: side.name, measure, unit, better, median: median(values), interval, ratio }];
  });
}

function valuesOf(rounds: Measured["rounds"], side: string, measure: string): number[] {
  return rounds.flatMap((round) => round[side]?.values[measure] ?? []);
}

function noiseIn(
  benchmark: Benchmark,
  { rounds, ours, seed, load, warmsUp }: Measured & { load: ForeignLoad; warmsUp: boolean },
): Result["noise"] {
  const entries = Object.keys(benchmark.measures).map((measure): [string, Interval | null] => [
    measure,
    noiseOf(valuesOf(rounds, ours?.name ?? "", measure), seed) ?? null,
  ]);
  const problems = entries.flatMap(([measure, interval]) => {
    const width = interval === null ? 0 : (interval.high - interval.low) / 2;
    return width > EFFECT ? [`${measure} of two rounds differs from itself by ${percent(width)}`] : [];
  });
  problems.push(...loadProblems(load));
  if (!warmsUp) problems.push("no round warmed up");
  return { byMeasure: Object.fromEntries(entries), ...load, problems };
}
