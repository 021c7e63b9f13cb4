import { availableParallelism } from "node:os";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { systemClock } from "../src/core/clock.ts";
import { systemRandom } from "../src/core/random.ts";

/** What a simulation of one seed comes to. */
export type SeedOutcome = {
  steps: number;
  /** How often things happened. */
  tally: Readonly<Record<string, number>>;
  failure: Error | undefined;
  trace: readonly string[];
};

export type SeedRuns = {
  /** The script that calls this: threads run it again. */
  script: URL;
  /** As one calls it, for messages. */
  name: string;
  /** Must do the same for the same seed. */
  simulate: (options: { seed: number; keepTrace?: boolean }) => Promise<SeedOutcome>;
  /** How many seeds, unless the command line says so. */
  count: number;
};

type Share = { from: number; to: number; stride: number };
type Report = Pick<SeedOutcome, "steps" | "tally"> & { seed: number; failure: string | undefined };

const PROGRESS_MS = 10_000;
const SHOWN_LINES = 200;
const SEEDS_PER_THREAD = 500;

/**
 * The command line `[count] [seed]`: that many seeds from that one on, on all cores; stops at the first that fails, with
 * what happened in it and exit code 1.
 */
export async function runSeeds(runs: SeedRuns): Promise<void> {
  if (isMainThread) process.exitCode = await main(runs);
  else await runShare(runs, workerData as Share);
}

async function main(runs: SeedRuns): Promise<number> {
  const numbers = process.argv.slice(2).map((text) => argument(text, runs));
  const [count = runs.count, first = Math.floor(systemRandom.next() * 2 ** 31)] = numbers;
  const threads = Math.min(availableParallelism(), count);
  console.log(`${count} seeds from ${first} on ${threads} threads`);
  const startedMs = systemClock.monotonicMs();
  const sum = { runs: 0, steps: 0, tally: new Map<string, number>() };
  const progress = systemClock.every(PROGRESS_MS, () => {
    const perSecond = (sum.runs * 1000) / (systemClock.monotonicMs() - startedMs);
    console.log(`${sum.runs} seeds, ${perSecond.toFixed(1)} per second`);
  });
  const shares = Array.from({ length: threads }, (_, i) => ({ from: first + i, to: first + count, stride: threads }));
  const failed = await firstFailure(runs, shares, (report) => {
    sum.runs++;
    sum.steps += report.steps;
    for (const [what, times] of Object.entries(report.tally)) sum.tally.set(what, (sum.tally.get(what) ?? 0) + times);
  });
  progress.cancel();
  if (failed !== undefined) return await explain(runs, failed);
  console.log(`${sum.runs} seeds, none failed; ${sum.steps} steps`);
  console.log([...sum.tally].map(([what, times]) => `${what} ${times}`).join(", "));
  return 0;
}

/** Runs the shares until one fails, or all are done. */
async function firstFailure(
  { script }: SeedRuns,
  shares: readonly Share[],
  onReport: (report: Report) => void,
): Promise<number | undefined> {
  const failed = Promise.withResolvers<number | undefined>();
  const running = new Set<Worker>();
  const runPart = (part: Share): Promise<void> => {
    const worker = new Worker(script, { workerData: part });
    running.add(worker);
    let lastSeed: number | undefined;
    worker.on("message", (report: Report) => {
      lastSeed = report.seed;
      onReport(report);
      if (report.failure !== undefined) failed.resolve(report.seed);
    });
    return new Promise((resolve) => {
      worker.on("error", (error) => failed.reject(new Error(`a thread died after seed ${lastSeed}`, { cause: error })));
      worker.on("exit", () => {
        running.delete(worker);
        resolve();
      });
    });
  };
  let isOver = false;
  const runAll = async (share: Share): Promise<void> => {
    for (const part of partsOf(share)) if (!isOver) await runPart(part);
  };
  void Promise.all(shares.map(runAll)).then(() => failed.resolve(undefined));
  try {
    return await failed.promise;
  } finally {
    isOver = true;
    await Promise.all([...running].map((worker) => worker.terminate()));
  }
}

/** A thread's worth of seeds each: what SQLite and V8 keep of a few thousand worlds is gigabytes. */
function* partsOf({ from, to, stride }: Share): Generator<Share> {
  const length = stride * SEEDS_PER_THREAD;
  for (let start = from; start < to; start += length) {
    yield { from: start, to: Math.min(to, start + length), stride };
  }
}

async function runShare({ simulate }: SeedRuns, { from, to, stride }: Share): Promise<void> {
  for (let seed = from; seed < to; seed += stride) {
    const { steps, tally, failure } = await simulate({ seed });
    const report: Report = { seed, steps, tally, failure: failure?.message };
    parentPort?.postMessage(report);
    // Messages leave when the event loop comes round.
    await new Promise<void>((resolve) => void systemClock.after(0, resolve));
  }
}

/** Does it again, with its trace. */
async function explain({ simulate, name }: SeedRuns, seed: number): Promise<number> {
  const { trace, failure } = await simulate({ seed, keepTrace: true });
  for (const line of trace.slice(-SHOWN_LINES)) console.log(line);
  console.error(failure?.stack ?? "it does not fail when it is run again: something real is in it");
  console.error(`\nseed ${seed} fails; again: node ${name} 1 ${seed}`);
  return 1;
}

function argument(text: string, { name }: SeedRuns): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${text} is no count; usage: ${name} [count] [seed]`);
  return value;
}
