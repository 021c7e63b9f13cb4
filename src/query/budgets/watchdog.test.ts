import { spawn } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { ManualClock, systemClock } from "../../core/clock.ts";
import { lacks } from "../../core/gates.test-kit.ts";
import { growthLimit, platformMeter, Watchdog, type MemoryMeter } from "./watchdog.ts";

const MIB = 2 ** 20;

function fake() {
  const resident = new Map<number, number>();
  let measured = 0;
  const meter: MemoryMeter = {
    periodMs: 20,
    minPeriodMs: 2,
    measure(pids, take) {
      measured++;
      for (const pid of pids) take(pid, resident.get(pid) ?? 0);
    },
  };
  const clock = new ManualClock();
  const killed: { pid: number; reason: Error }[] = [];
  const childOf = (pid: number) => ({ pid, kill: (reason: Error) => void killed.push({ pid, reason }) });
  return { resident, clock, killed, childOf, watchdog: new Watchdog({ clock, meter }), looks: () => measured };
}

test("growth is allowed the budget and a tenth of it, at least 64 MiB", () => {
  expect(growthLimit(MIB)).toBe(65 * MIB);
  expect(growthLimit(4096 * MIB)).toBe(4505.6 * MIB);
});

test("a process is killed at the first look past its budget, alone, and what it held before does not count", () => {
  const { resident, clock, killed, childOf, watchdog } = fake();
  resident.set(1, 500 * MIB).set(2, 100 * MIB);
  const watch = watchdog.watch(childOf(1), 100 * MIB);
  watchdog.watch(childOf(2), 1000 * MIB);
  resident.set(1, 664 * MIB).set(2, 900 * MIB);
  clock.advance(20);
  expect(killed).toEqual([]);
  resident.set(1, 665 * MIB);
  clock.advance(20);
  clock.advance(200);
  expect(killed.map(({ pid }) => pid)).toEqual([1]);
  expect(killed[0]?.reason).toMatchObject({
    code: "budget_exceeded",
    details: {
      headers: { "X-Engine-Budget-Limit": `memory_bytes=${100 * MIB}` },
      budget: { name: "memory_bytes", used: 165 * MIB, allowed: 100 * MIB },
    },
  });
  expect(watch.peakBytes()).toBe(165 * MIB);
});

test("it looks more often the less is left", () => {
  const { resident, clock, killed, childOf, watchdog, looks } = fake();
  watchdog.watch(childOf(1), 100 * MIB);
  const before = looks();
  clock.advance(200);
  expect(looks() - before).toBe(10);
  resident.set(1, 156 * MIB);
  clock.advance(20);
  const near = looks();
  clock.advance(20);
  expect(looks() - near).toBe(10);
  resident.set(1, 165 * MIB);
  clock.advance(2);
  expect(killed).toHaveLength(1);
});

test("it looks only while there is something to watch", () => {
  const { clock, childOf, watchdog, looks } = fake();
  clock.advance(1000);
  expect(looks()).toBe(0);
  const watch = watchdog.watch(childOf(1), MIB);
  clock.advance(100);
  watch.stop();
  watch.stop();
  const after = looks();
  expect(after).toBeGreaterThanOrEqual(5);
  clock.advance(1000);
  expect(looks()).toBe(after);
});

test("a process that has no id yet, or ended, is no trouble", async () => {
  const child = spawn(process.execPath, ["-e", "0"]);
  await new Promise((resolve) => child.once("exit", resolve));
  const watchdog = new Watchdog({ clock: systemClock });
  const watches = [undefined, child.pid].map((pid) => watchdog.watch({ pid, kill: () => expect.fail("killed") }, 1));
  await delay(60);
  for (const watch of watches) {
    expect(watch.peakBytes()).toBe(0);
    watch.stop();
  }
});

async function measureMyself(platform: "linux" | "darwin"): Promise<number> {
  const meter = platformMeter(platform);
  const seen = await new Promise<number>((resolve) => meter.measure([process.pid], (_pid, bytes) => resolve(bytes)));
  return seen / process.memoryUsage.rss();
}

test.skipIf(process.platform !== "linux")("the memory of a real process as Linux tells it", async () => {
  const share = await measureMyself("linux");
  expect(share).toBeGreaterThan(0.5);
  expect(share).toBeLessThan(2);
});

test.skipIf(lacks("ps"))("the memory of a real process as ps tells it, on macOS", async () => {
  const share = await measureMyself("darwin");
  expect(share).toBeGreaterThan(0.5);
  expect(share).toBeLessThan(2);
});
