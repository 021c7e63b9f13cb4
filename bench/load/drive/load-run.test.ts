import { expect, test } from "vitest";
import { mergeResults } from "./load-run.ts";
import type { DriveResult } from "./plan.ts";

function resultOf(latencies: readonly number[], more: Partial<DriveResult> = {}): DriveResult {
  const latencyMs = Float64Array.from(latencies);
  const { length } = latencies;
  return {
    cpuSeconds: 0.5,
    offered: length,
    backlog: 0,
    abandonedMs: new Float64Array(),
    latenessMs: new Float64Array(length),
    firstFailure: undefined,
    requests: [
      {
        accepted: length,
        acceptedInTime: length,
        refused: 0,
        failed: 0,
        latencyMs,
        serviceMs: latencyMs.map((ms) => ms / 2),
        rows: length * 10,
        bytes: length * 1_000,
      },
    ],
    ...more,
  };
}

const merged = (results: readonly DriveResult[], wallSeconds = 10) =>
  mergeResults(results, ["ingest"], { wallSeconds, cores: 2, durationMs: 10_000 });

test("percentiles are of all values of all generators, however few one has", () => {
  const quick = Array.from({ length: 990 }, () => 1);
  const slow = Array.from({ length: 10 }, (_, i) => 100 + i);
  const run = merged([resultOf(quick), resultOf(slow)]);
  // The mean of the two's medians would be 53, of their 99th percentiles 55.
  expect(run.latencyMs).toEqual({ p50: 1, p90: 1, p99: 1, max: 109, mean: (990 + 1_045) / 1_000 });
  expect(run.serviceMs.max).toBe(54.5);
  expect(run.byRequest["ingest"]).toMatchObject({ accepted: 1_000, latencyMs: run.latencyMs });
  expect(run).toMatchObject({ offered: 1_000, offeredPerSecond: 100, achievedPerSecond: 100, seconds: 10 });
  expect(run).toMatchObject({ rowsAcknowledged: 10_000, bytesAcknowledged: 1_000_000, generatorCpuSeconds: 1 });
});

test("what was never sent counts with what it had waited", () => {
  const abandonedMs = Float64Array.from([4_000, 3_000]);
  const run = merged([resultOf([1, 2], { offered: 4, backlog: 2, abandonedMs })]);
  expect(run).toMatchObject({
    backlog: 2,
    abandoned: 2,
    accepted: 2,
    latencyMs: { max: 4_000 },
    serviceMs: { max: 1 },
  });
});

test("a run is marked past 40 % of the machine, and when the generator was late itself", () => {
  expect(merged([resultOf([1])]).marks).toEqual([]);
  expect(merged([resultOf([1], { cpuSeconds: 8 })])).toMatchObject({ generatorShare: 0.4, marks: [] });
  expect(merged([resultOf([1], { cpuSeconds: 8.2 })]).marks).toEqual(["the generator took 41 % of the machine"]);
  const latenessMs = Float64Array.from([25, 25]);
  expect(merged([resultOf([1], { latenessMs })]).marks).toEqual(["the generator sent 25 ms late (p99)"]);
});

test("the first failure of any generator is told", () => {
  expect(merged([resultOf([1]), resultOf([1], { firstFailure: "broken" })]).firstFailure).toBe("broken");
});
