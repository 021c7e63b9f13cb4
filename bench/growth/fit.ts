import type { GrowthPromise } from "./curve.ts";

export type Point = { x: number; y: number; interval: { low: number; high: number } };

/** A figure may be so many times what was promised before it counts as more: machines are not quiet. */
export const SLACK = 1.25;

/** `b` of y = a · x^b by least squares in log-log. NaN of fewer than two different x. */
export function exponentOf(points: readonly Pick<Point, "x" | "y">[]): number {
  const logs = points.map(({ x, y }) => [Math.log(x), Math.log(y)] as const);
  const mean = (at: 0 | 1) => logs.reduce((sum, pair) => sum + pair[at], 0) / logs.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  const sum = (of: (x: number, y: number) => number) =>
    logs.reduce((total, [x, y]) => total + of(x - meanX, y - meanY), 0);
  return sum((x, y) => x * y) / sum((x) => x * x);
}

export const GROWTH_VERDICTS = ["holds", "unclear", "exceeds"] as const;
export type GrowthVerdict = (typeof GROWTH_VERDICTS)[number];

/**
 * Whether the largest size costs at most what was promised, going by the smallest: `exceeds` where even the intervals'
 * nearer ends are further apart, `unclear` where the medians are. What takes less at the largest size holds.
 */
export function verdictOf(points: readonly Point[], promise: GrowthPromise): GrowthVerdict {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) return "unclear";
  const allowed = (promise === "flat" ? 1 : nLogN(last.x) / nLogN(first.x)) * SLACK;
  if (last.interval.low / first.interval.high > allowed) return "exceeds";
  return last.y / first.y > allowed ? "unclear" : "holds";
}

/** Of one thing it is 1. */
function nLogN(n: number): number {
  return n * Math.log2(n + 1);
}
