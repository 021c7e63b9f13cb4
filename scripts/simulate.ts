/**
 * The long form of `test/simulation`: as many seeds as one likes, on all cores.
 *
 *     node scripts/simulate.ts [count] [seed]    that many seeds from that one on (100,000, from a random one)
 *
 * Stops at the first seed that fails, with what happened in it and exit code 1. A seed is run again by
 * `node scripts/simulate.ts 1 <seed>`, which does the same, step by step, as long as the program is the same.
 */
import { availableParallelism } from "node:os";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { systemClock } from "../src/core/clock.ts";
import { systemRandom } from "../src/core/random.ts";
import { simulate, type Outcome } from "../test/simulation/simulate.ts";

type Share = { from: number; to: number; stride: number };
type Report = Pick<Outcome, "seed" | "steps" | "tally"> & { failure: string | undefined };

const PROGRESS_MS = 10_000;
const SHOWN_LINES = 200;

if (isMainThread) process.exitCode = await main();
else await runShare(workerData as Share);

async function main(): Promise<number> {
  const [count = 100_000, first = Math.floor(systemRandom.next() * 2 ** 31)] = process.argv.slice(2).map(argument);
  const threads = Math.min(availableParallelism(), count);
  console.log(`${count} seeds from ${first} on ${threads} threads`);
  const startedMs = systemClock.monotonicMs();
  const sum = { runs: 0, steps: 0, tally: new Map<string, number>() };
  const progress = systemClock.every(PROGRESS_MS, () => {
    const perSecond = (sum.runs * 1000) / (systemClock.monotonicMs() - startedMs);
    console.log(`${sum.runs} seeds, ${perSecond.toFixed(1)} per second`);
  });
  const shares = Array.from({ length: threads }, (_, i) => ({ from: first + i, to: first + count, stride: threads }));
  const failed = await firstFailure(shares, (report) => {
    sum.runs++;
    sum.steps += report.steps;
    for (const [what, times] of Object.entries(report.tally)) sum.tally.set(what, (sum.tally.get(what) ?? 0) + times);
  });
  progress.cancel();
  if (failed !== undefined) return await explain(failed);
  console.log(`${sum.runs} seeds, none failed; ${sum.steps} steps`);
  console.log([...sum.tally].map(([what, times]) => `${what} ${times}`).join(", "));
  return 0;
}

/** Runs the shares until one fails, or all are done. */
async function firstFailure(shares: readonly Share[], onReport: (report: Report) => void): Promise<number | undefined> {
  const failed = Promise.withResolvers<number | undefined>();
  const workers = shares.map((share) => new Worker(new URL(import.meta.url), { workerData: share }));
  const ends = workers.map((worker) => {
    let lastSeed: number | undefined;
    worker.on("message", (report: Report) => {
      lastSeed = report.seed;
      onReport(report);
      if (report.failure !== undefined) failed.resolve(report.seed);
    });
    return new Promise<void>((resolve) => {
      worker.on("error", (error) => failed.reject(new Error(`a thread died after seed ${lastSeed}`, { cause: error })));
      worker.on("exit", () => resolve());
    });
  });
  void Promise.all(ends).then(() => failed.resolve(undefined));
  try {
    return await failed.promise;
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

async function runShare({ from, to, stride }: Share): Promise<void> {
  for (let seed = from; seed < to; seed += stride) {
    const { steps, tally, failure } = await simulate({ seed });
    const report: Report = { seed, steps, tally, failure: failure?.message };
    parentPort?.postMessage(report);
    // Messages leave when the event loop comes round.
    await new Promise<void>((resolve) => void systemClock.after(0, resolve));
  }
}

/** Does it again, with its trace. */
async function explain(seed: number): Promise<number> {
  const { trace, failure } = await simulate({ seed, keepTrace: true });
  for (const line of trace.slice(-SHOWN_LINES)) console.log(line);
  console.error(failure?.stack ?? "it does not fail when it is run again: something real is in it");
  console.error(`\nseed ${seed} fails; again: node scripts/simulate.ts 1 ${seed}`);
  return 1;
}

function argument(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new Error(`${text} is no count; usage: simulate.ts [count] [seed]`);
  return value;
}
