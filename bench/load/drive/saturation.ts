import type { LoadRun } from "./load-run.ts";

/** Bounds that a rate holds within. */
export type Bounds = {
  /** Of the latency from when requests fell due, in milliseconds. */
  p99Ms: number;
  /** Most of the offered requests that may be refused or fail, as a share. */
  errorShare: number;
  /** Most of the offered requests that may be waiting in the end, as a share. */
  backlogShare: number;
};

export const BOUNDS: Bounds = { p99Ms: 1_000, errorShare: 0.001, backlogShare: 0.01 };

/** What of a run the bounds are about. */
export type Measured = Pick<LoadRun, "offered" | "accepted" | "refused" | "failed" | "backlog"> & {
  latencyMs: Pick<LoadRun["latencyMs"], "p99">;
};

/** A rate that was tried. `broken` says which bound it broke; undefined when it held. */
export type Trial = { perSecond: number; broken: string | undefined };

export type Saturation<Run extends Measured> = {
  perSecond: number;
  /** The run that confirmed it. */
  run: Run;
  /** In the order in which they were tried. */
  trials: readonly Trial[];
};

export type SaturationOptions<Run extends Measured> = {
  /** `confirms` is the last, which may be told to run longer than the others. */
  run: (perSecond: number, purpose: "searches" | "confirms") => Promise<Run>;
  bounds: Bounds;
  /** Requests a second; also a poor guess is found from. */
  startPerSecond: number;
  /** How close to each other a rate that holds and one that does not must be, as a share. */
  precision?: number;
  signal?: AbortSignal;
};

const PRECISION = 0.03;
/** As a share of the start; a server that does not hold this holds nothing. */
const LEAST = 1 / 4_096;
const MOST_DOUBLINGS = 24;

/**
 * The highest rate that holds within the bounds: doubles until one does not hold, bisects, and confirms the highest that
 * did; where the confirmation fails, a lower one. Rejects when no rate holds, or none is too high.
 */
export async function findSaturation<Run extends Measured>(options: SaturationOptions<Run>): Promise<Saturation<Run>> {
  const { bounds, precision = PRECISION, signal } = options;
  const trials: Trial[] = [];
  const tried = async (perSecond: number, purpose: "searches" | "confirms") => {
    signal?.throwIfAborted();
    const run = await options.run(perSecond, purpose);
    const broken = brokenBound(run, bounds);
    trials.push({ perSecond, broken });
    return { run, holds: broken === undefined };
  };
  const holds = async (perSecond: number) => (await tried(perSecond, "searches")).holds;
  const least = options.startPerSecond * LEAST;
  const range = await rangeAround(options.startPerSecond, holds);
  if (range === undefined) throw nothingHolds(trials);
  for (let rate = await bisect(range, precision, holds); rate >= least; rate /= 1 + precision) {
    const { run, holds: isConfirmed } = await tried(rate, "confirms");
    if (isConfirmed) return { perSecond: rate, run, trials };
  }
  throw nothingHolds(trials);
}

type Holds = (perSecond: number) => Promise<boolean>;
type Range = { holds: number; fails: number };

/** A rate that holds and one that does not: by doubling, or by halving when the first does not hold. */
async function rangeAround(start: number, holds: Holds): Promise<Range | undefined> {
  if (!(await holds(start))) return await rangeBelow(start, holds);
  for (let rate = start, doublings = 0; doublings < MOST_DOUBLINGS; rate *= 2, doublings++) {
    if (!(await holds(rate * 2))) return { holds: rate, fails: rate * 2 };
  }
  throw new Error(`every rate up to ${start * 2 ** MOST_DOUBLINGS} requests/s holds: make the bounds narrower`);
}

async function rangeBelow(start: number, holds: Holds): Promise<Range | undefined> {
  for (let rate = start / 2; rate >= start * LEAST; rate /= 2) {
    if (await holds(rate)) return { holds: rate, fails: rate * 2 };
  }
  return undefined;
}

async function bisect(range: Range, precision: number, holds: Holds): Promise<number> {
  let { holds: low, fails: high } = range;
  while (high / low > 1 + precision) {
    const middle = (low + high) / 2;
    if (await holds(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/** Which bound a run broke, as a reader is told; undefined when it held. */
export function brokenBound(run: Measured, bounds: Bounds): string | undefined {
  const errors = run.refused + run.failed;
  if (run.accepted === 0) return "no request was accepted";
  if (errors > bounds.errorShare * run.offered) return `${errors} of ${run.offered} requests failed or were refused`;
  if (run.backlog > bounds.backlogShare * run.offered) return `${run.backlog} of ${run.offered} requests were waiting`;
  if (run.latencyMs.p99 > bounds.p99Ms) return `the p99 was ${run.latencyMs.p99.toFixed(0)} ms`;
  return undefined;
}

function nothingHolds(trials: readonly Trial[]): Error {
  const last = trials.at(-1);
  return new Error(`no rate holds: at ${last?.perSecond.toPrecision(3)} requests/s ${last?.broken}; widen the bounds`);
}
