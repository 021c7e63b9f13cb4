import { expect, test } from "vitest";
import { ManualClock, systemClock } from "../../src/core/clock.ts";
import { seededRandom } from "../../src/core/random.ts";
import { delay } from "../../src/core/waiting.test-kit.ts";
import { evenArrivals, poissonArrivals, type Arrivals } from "./arrivals.ts";
import { runOpenLoop } from "./open-loop.ts";

function firstTimes(arrivals: Arrivals, count: number): number[] {
  return Array.from({ length: count }, () => arrivals());
}

test("even arrivals of two generators are even together", () => {
  const [one, other] = [evenArrivals(100, 0), evenArrivals(100, 0.5)];
  const both = [...firstTimes(one, 3), ...firstTimes(other, 3)].toSorted((a, b) => a - b);
  expect(both).toEqual([0, 5, 10, 15, 20, 25]);
});

test("arrivals of a Poisson process have their rate, vary as exponential times do, and are those of their seed", () => {
  const times = firstTimes(poissonArrivals(1_000, seededRandom(5)), 20_000);
  expect(times).toEqual(firstTimes(poissonArrivals(1_000, seededRandom(5)), 20_000));
  const gaps = times.slice(1).map((time, i) => time - (times[i] ?? 0));
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  const variance = gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length;
  expect(mean).toBeGreaterThan(0.97);
  expect(mean).toBeLessThan(1.03);
  expect(Math.sqrt(variance) / mean).toBeCloseTo(1, 1);
});

/** Runs a loop in manual time: each request takes `serviceMs(count of those before)`. */
async function simulated(options: { perSecond: number; durationMs: number; drainMs: number; connections: number }) {
  const clock = new ManualClock(0);
  const sent: { dueMs: number; sentMs: number }[] = [];
  const done = runOpenLoop({
    ...options,
    clock,
    startMs: 0,
    arrivals: evenArrivals(options.perSecond),
    connections: Array.from({ length: options.connections }, (_, i) => i),
    send: (connection, dueMs) => {
      sent.push({ dueMs, sentMs: clock.monotonicMs() });
      return new Promise((resolve) => clock.after(100, () => resolve(connection)));
    },
  });
  for (let nowMs = 0; nowMs < options.durationMs + options.drainMs + 200; nowMs++) {
    clock.advance(1);
    // What a step makes due is sent before the next one.
    for (let turns = 0; turns < 10; turns++) await Promise.resolve();
  }
  return { ...(await done), sent };
}

test("requests that find no idle connection wait in turn, and keep the time at which they fell due", async () => {
  // One connection takes 10 a second, 20 fall due.
  const { sent, offered, backlog, abandonedMs } = await simulated({
    perSecond: 20,
    durationMs: 1_000,
    drainMs: 300,
    connections: 1,
  });
  expect(offered).toBe(20);
  expect(sent.map(({ dueMs }) => dueMs)).toEqual(sent.map((_, i) => i * 50));
  for (const [i, { sentMs }] of sent.entries()) expect(Math.abs(sentMs - i * 100)).toBeLessThan(i * 2 + 3);
  expect(backlog).toBeGreaterThanOrEqual(9);
  expect(sent.length + abandonedMs.length).toBe(20);
  expect(abandonedMs.length).toBeGreaterThan(4);
  // The first that was given up fell due at half of the time.
  expect(Math.max(...abandonedMs)).toBeGreaterThan(550);
});

test("with enough connections nothing waits", async () => {
  const { offered, backlog, abandonedMs, latenessMs, sent } = await simulated({
    perSecond: 20,
    durationMs: 1_000,
    drainMs: 0,
    connections: 4,
  });
  expect({ offered, backlog, abandoned: abandonedMs.length, sent: sent.length }).toEqual({
    offered: 20,
    backlog: 0,
    abandoned: 0,
    sent: 20,
  });
  expect(latenessMs).toHaveLength(20);
  expect(Math.max(...latenessMs)).toBeLessThanOrEqual(2);
});

test("an error of the sender ends the loop with it", async () => {
  const sending = runOpenLoop({
    clock: systemClock,
    startMs: systemClock.monotonicMs(),
    arrivals: evenArrivals(100),
    durationMs: 10_000,
    drainMs: 0,
    connections: [1],
    send: async () => {
      await delay(1);
      throw new Error("the wire is cut");
    },
  });
  await expect(sending).rejects.toThrow("the wire is cut");
});
