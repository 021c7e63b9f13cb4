import { expect, test } from "vitest";
import type { IngestObservation } from "../../src/capacity/costs/costs.ts";
import { noiseIn, settled } from "./noise.ts";

const QUIET = { foreignShare: 0.02, clockStepMs: 1 };

test("a quiet machine on which loads cost what they cost before has no problem", () => {
  expect(noiseIn([loadOf({ cpu: 1 }), loadOf({ cpu: 1.1 })], QUIET)).toEqual([]);
});

test("other processes and a clock that was set are told", () => {
  expect(noiseIn([], { foreignShare: 0.25, clockStepMs: 3_000 })).toEqual([
    "other processes took 25 % of the machine",
    "the clock was set by 3000 ms",
  ]);
});

test("two runs of one load that differ too much are told, bodies that are cut a little otherwise included", () => {
  const runs = [loadOf({ cpu: 1 }), loadOf({ cpu: 1.5, bodyBytes: 65_000 })];
  expect(noiseIn(runs, QUIET)).toEqual([
    "ingest of logs (single, 8 clients, bodies of 62.5 KiB) took 50 % more CPU in one run than in another",
  ]);
});

test("loads of other bodies, deployments, ways and rates may cost what they like", () => {
  const runs = [
    loadOf({ cpu: 1 }),
    loadOf({ cpu: 9, bodyBytes: 1_000_000 }),
    loadOf({ cpu: 19, deployment: "sync" }),
    loadOf({ cpu: 29, deployment: "sync", viaEdge: true }),
    loadOf({ cpu: 39, offeredPerSecond: 100 }),
  ];
  expect(noiseIn(runs, QUIET)).toEqual([]);
});

test("of processes the sum counts, for each request", () => {
  const split = { ...loadOf({ cpu: 0 }), cpuSeconds: { edge: 2, ingest: 2 }, requests: 400 };
  expect(noiseIn([loadOf({ cpu: 1 }), split], QUIET)).toEqual([]);
});

test("a load whose two runs differ is run again until two agree, and those count", async () => {
  const next = [2, 1.05];
  const runAgain = (observation: IngestObservation) => {
    return { observation, again: () => Promise.resolve(loadOf({ cpu: next.shift() ?? 0 })) };
  };
  const other = loadOf({ cpu: 5, clients: 1 });
  const observations = await settled([loadOf({ cpu: 1 }), other, loadOf({ cpu: 1.5 })].map(runAgain));
  expect(observations).toEqual([loadOf({ cpu: 1 }), loadOf({ cpu: 1.05 }), other]);
  expect(next).toEqual([]);
});

test("a load that never costs the same is run twice more, and told", async () => {
  const next = [2.2, 4];
  const again = () => Promise.resolve(loadOf({ cpu: next.shift() ?? 0 }));
  const runs = [loadOf({ cpu: 1 }), loadOf({ cpu: 8 })].map((observation) => ({ observation, again }));
  expect(noiseIn(await settled(runs), QUIET)).toHaveLength(1);
});

function loadOf({ cpu, ...more }: Partial<IngestObservation> & { cpu: number }): IngestObservation {
  return {
    deployment: "single",
    viaEdge: false,
    shape: "logs",
    rows: 10_000,
    rawBytes: 6_400_000,
    requests: 100,
    bodyBytes: 64_000,
    clients: 8,
    tables: 1,
    offeredPerSecond: null,
    seconds: 3,
    commits: 10,
    cpuSeconds: { server: cpu },
    mainThreadSeconds: { server: cpu / 2 },
    walBytes: null,
    storeRequests: {},
    storedBytes: 1_000_000,
    latencyMs: { p50: 1, p99: 2 },
    peakBytes: { server: 1_000_000 },
    ...more,
  };
}
