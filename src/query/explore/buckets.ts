/**
 * Buckets of time with edges that people read: multiples of a step of 1, 2 or 5 of a decimal unit, or of a common part of
 * a minute, an hour, a day or longer, counted from 1970 in UTC. Those of weeks begin on Mondays.
 */
export type Buckets = {
  stepNs: bigint;
  /** The edge at or before the beginning of the range. */
  firstNs: bigint;
  count: number;
};

const SECOND = 1_000_000_000n;
const MINUTE = 60n * SECOND;
const HOUR = 60n * MINUTE;
const DAY = 24n * HOUR;

/** Below a second: 1, 2 and 5 of each power of ten. */
const FRACTIONS = Array.from({ length: 9 }, (_, i) => [1n, 2n, 5n].map((n) => n * 10n ** BigInt(i))).flat();

const STEPS: readonly bigint[] = [
  ...FRACTIONS,
  ...[1n, 2n, 5n, 10n, 15n, 30n].map((n) => n * SECOND),
  ...[1n, 2n, 5n, 10n, 15n, 30n].map((n) => n * MINUTE),
  ...[1n, 2n, 3n, 6n, 12n].map((n) => n * HOUR),
  ...[1n, 2n, 7n, 14n, 28n, 91n, 182n, 364n, 3_640n, 36_400n].map((n) => n * DAY),
];

const WEEK = 7n * DAY;
/** 1970 began on a Thursday. */
const FIRST_MONDAY = 4n * DAY;

/** The finest of at most so many that cover the range, whose end is exclusive. */
export function bucketsOf({ fromNs, toNs }: { fromNs: bigint; toNs: bigint }, most: number): Buckets {
  for (const stepNs of STEPS) {
    const originNs = stepNs % WEEK === 0n ? FIRST_MONDAY : 0n;
    const first = floorDivide(fromNs - originNs, stepNs);
    const last = floorDivide(toNs - 1n - originNs, stepNs);
    const count = last - first + 1n;
    if (count <= BigInt(most)) return { stepNs, firstNs: first * stepNs + originNs, count: Number(count) };
  }
  // The longest step is a century.
  return { stepNs: toNs - fromNs, firstNs: fromNs, count: 1 };
}

function floorDivide(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b < 0n ? quotient - 1n : quotient;
}
