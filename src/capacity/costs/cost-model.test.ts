import { describe, expect, it } from "vitest";
import { costModel } from "./cost-model.ts";
import { SAMPLE_COSTS, sampleIngest, TRUE } from "./samples.test-kit.ts";

const model = costModel(SAMPLE_COSTS);

describe("what costs say of ingest", () => {
  it("finds the coefficients that the observations were made with", () => {
    const costs = model.ingest("single");
    const cpu = (amount: object) =>
      costs.cpu("server", { requests: 0, bytes: 0, commits: 0, flushes: 0, seconds: 0, shape: "logs", ...amount });
    expect(cpu({ requests: 1 })).toBeCloseTo(TRUE.perRequest, 7);
    expect(cpu({ bytes: 1e6 }) / (1e6 * TRUE.perByte)).toBeCloseTo(1, 1);
    // With one table each commit is of one flush.
    expect((cpu({ commits: 1 }) + cpu({ flushes: 1 })) / TRUE.perCommit).toBeCloseTo(1, 1);
    expect(cpu({ bytes: 1e6, shape: "wide" }) / (2e6 * TRUE.perByte)).toBeCloseTo(1, 1);
  });

  it("predicts a load that it has not seen", () => {
    const load = sampleIngest("single", { bodyBytes: 300_000, perSecond: 70, clients: 16 });
    const costs = model.ingest("single");
    const gathered = costs.gathered({
      requestsPerSecond: 70,
      bodyBytes: 300_000,
      rowsPerRequest: 880,
      tables: 1,
      clients: 16,
    });
    const cpu = costs.cpu("server", { requests: 70, bytes: 70 * 300_000, ...gathered, seconds: 1, shape: "logs" });
    expect((cpu * load.seconds) / (load.cpuSeconds.server ?? 0)).toBeCloseTo(1, 1);
  });

  it("takes what a shape costs more in one process for a cluster that was not measured with it", () => {
    const costs = model.ingest("staged");
    const of = (shape: string) =>
      costs.cpu("ingest", { requests: 0, bytes: 1e9, commits: 0, flushes: 0, seconds: 0, shape });
    expect(of("wide") / of("logs")).toBeGreaterThan(1.3);
    expect(() => of("cats")).toThrow("the costs know no rows of the shape cats; take the nearest of logs, wide");
  });

  it("refuses a mode that was not measured", () => {
    const single = costModel({ ...SAMPLE_COSTS, ingest: SAMPLE_COSTS.ingest.filter((e) => e.deployment === "single") });
    expect(() => single.ingest("sync")).toThrow("no run of the mode sync, only of single; measure it");
  });

  it("goes by the speed of cores that is given", () => {
    const faster = costModel({ ...SAMPLE_COSTS, given: { coreSpeed: 2 } });
    const amount = { requests: 1, bytes: 1e6, commits: 1, flushes: 0, seconds: 0, shape: "logs" };
    expect(faster.ingest("single").cpu("server", amount) * 2).toBeCloseTo(
      model.ingest("single").cpu("server", amount),
      9,
    );
  });
});

describe("what costs say of queries", () => {
  it("are a fixed part and one by the bytes, more where nothing is cached", () => {
    const { cpu } = model.query("window");
    expect(cpu(100e6, 1)).toBeCloseTo(0.005 + 100e6 * 1.5e-10, 4);
    expect(cpu(100e6, 0) - cpu(100e6, 1)).toBeCloseTo(0.01, 4);
  });

  it("take no less than their serial part, however many cores", () => {
    const { latency } = model.query("window");
    const [two, four, many] = [2, 4, 1_000].map((cores) => latency(300e6, 1, cores).p50);
    expect(two).toBeCloseTo(0.038, 3);
    expect(four).toBeLessThanOrEqual(two ?? 0);
    expect(many).toBeGreaterThan(0);
  });
});

describe("what gathers", () => {
  const load = { bodyBytes: 340, rowsPerRequest: 1, tables: 1, clients: 64 };

  it("is no more than clients have under way, and more in a crowd", () => {
    const costs = model.ingest("single");
    const few = costs.gathered({ ...load, clients: 1, requestsPerSecond: 10_000 });
    expect(few).toEqual({ commits: 10_000, flushes: 10_000 });
    const usual = costs.gathered({ ...load, requestsPerSecond: 300 });
    const crowded = costs.crowded({ ...load, requestsPerSecond: 300 });
    expect(crowded.commits).toBeLessThan(usual.commits);
    expect(crowded.commits).toBeGreaterThanOrEqual(300 / 64);
  });

  it("has a flush of each table, and a commit of all of them", () => {
    const costs = model.ingest("single");
    const { commits, flushes } = costs.gathered({ ...load, tables: 10, requestsPerSecond: 2_000 });
    expect(flushes).toBeGreaterThan(commits);
  });

  it("is what was counted, where it was counted", () => {
    const counted = SAMPLE_COSTS.ingest.map((each) => Object.assign({}, each, { flushes: each.requests }));
    const costs = costModel({ ...SAMPLE_COSTS, ingest: counted }).ingest("single");
    expect(costs.gathered({ ...load, requestsPerSecond: 2_000 }).flushes).toBeCloseTo(2_000, 3);
  });
});

describe("what costs nothing to do", () => {
  it("is what a process was seen to take when it was idle", () => {
    const idle = { ...SAMPLE_COSTS, memory: { ...SAMPLE_COSTS.memory, idleCores: { server: TRUE.perSecond } } };
    const amount = { requests: 0, bytes: 0, commits: 0, flushes: 0, seconds: 1, shape: "logs" };
    expect(costModel(idle).ingest("single").cpu("server", amount)).toBeCloseTo(TRUE.perSecond, 2);
  });
});

describe("bytes at rest", () => {
  it("are those of the rows, and more where each extent has few of them", () => {
    const costs = model.ingest("single");
    const stored = (flushes: number) =>
      costs.storedBytes({ requests: 0, bytes: 1e6, commits: 0, flushes, seconds: 0, shape: "logs" });
    expect(stored(0)).toBeCloseTo(1e6 / 3, -4);
    expect(stored(1_000)).toBeGreaterThanOrEqual(stored(0));
  });
});
