import { describe, expect, it } from "vitest";
import { seededRandom } from "../../core/random.ts";
import { waitProbability, waitQuantile } from "./queueing.ts";

describe("a line before servers", () => {
  it("is Erlang's: tables have 0.5 for one server half busy, 0.3333 for two", () => {
    expect(waitProbability({ servers: 1, utilization: 0.5 })).toBeCloseTo(0.5, 6);
    expect(waitProbability({ servers: 2, utilization: 0.5 })).toBeCloseTo(1 / 3, 6);
    expect(waitProbability({ servers: 10, utilization: 0.8 })).toBeCloseTo(0.4092, 4);
  });

  it.each([
    [1, 0.5],
    [2, 0.8],
    [8, 0.9],
  ])("waits as long as a simulated one, %i servers %f busy", (servers, utilization) => {
    const waits = simulatedWaits(servers, utilization);
    for (const q of [0.5, 0.9, 0.99]) {
      const expected = waitQuantile({ servers, utilization, serviceSeconds: 1 }, q);
      const seen = waits[Math.floor(q * waits.length)] ?? Number.NaN;
      expect(Math.abs(expected - seen)).toBeLessThan(0.15 * Math.max(0.3, seen));
    }
  });

  it("waits without end once more comes than goes", () => {
    expect(waitQuantile({ servers: 4, utilization: 1, serviceSeconds: 1 }, 0.5)).toBe(Infinity);
  });
});

/** Ascending, of exponential arrivals and services of mean 1. */
function simulatedWaits(servers: number, utilization: number): number[] {
  const random = seededRandom(11);
  const exponential = (mean: number) => -Math.log(1 - random.next()) * mean;
  const free = Array.from({ length: servers }, () => 0);
  const waits: number[] = [];
  let now = 0;
  for (let i = 0; i < 400_000; i++) {
    now += exponential(1 / (servers * utilization));
    const next = free.indexOf(Math.min(...free));
    const start = Math.max(now, free[next] ?? 0);
    free[next] = start + exponential(1);
    waits.push(start - now);
  }
  return waits.sort((a, b) => a - b);
}
