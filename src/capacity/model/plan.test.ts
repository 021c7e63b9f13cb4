import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { costModel } from "../costs/cost-model.ts";
import { SAMPLE_COSTS } from "../costs/samples.test-kit.ts";
import { WORKLOAD } from "../workload/samples.test-kit.ts";
import { parseWorkload, type Workload } from "../workload/workload.ts";
import { busyCores, demandOf } from "./demand.ts";
import { planFor } from "./plan.ts";

const model = costModel(SAMPLE_COSTS);
const workload = parseWorkload("w.toml", WORKLOAD);
const plan = planFor(workload, model);

const cores = (of: Workload) => planFor(of, model).roles.reduce((sum, role) => sum + role.nodes * role.cores, 0);
const withRate = (factor: number): Workload => ({
  ...workload,
  ingest: workload.ingest.map((each) => ({ ...each, rows: each.rows * factor })),
});

describe("a plan", () => {
  it("has every role of a cluster, and none of one process", () => {
    const roles = ["edge", "ingest", "query", "committer", "compaction", "worker"];
    expect(plan.roles.map(({ role }) => role)).toEqual(roles);
    const single = planFor(
      { ...workload, deployment: { ...workload.deployment, mode: "single", survive: "nothing" } },
      model,
    );
    expect(single.roles.map(({ role, nodes }) => [role, nodes])).toEqual([["server", 1]]);
    expect(single.postgres).toBeNull();
    expect(single.requestsPerMonth).toBeNull();
  });

  it("keeps what it is asked to keep", () => {
    const rawBytes = 147_000 * 340 * 90 * 86_400;
    expect(plan.storage.rawBytes).toBeCloseTo(rawBytes, -6);
    expect(plan.storage.storedBytes / rawBytes).toBeCloseTo(25 / 340, 4);
  });

  it("needs no fewer cores for more rows, and no fewer for a loss", () => {
    fc.assert(
      fc.property(fc.double({ min: 0.01, max: 3, noNaN: true }), fc.double({ min: 1, max: 3, noNaN: true }), (a, b) => {
        expect(cores(withRate(a * b))).toBeGreaterThanOrEqual(cores(withRate(a)));
      }),
      { numRuns: 30 },
    );
    const bare = planFor({ ...workload, deployment: { ...workload.deployment, survive: "nothing" } }, model);
    for (const [i, { nodes, cores: each }] of plan.roles.entries()) {
      const { nodes: bareNodes = 0, cores: bareCores = 0 } = bare.roles[i] ?? {};
      expect(nodes * each).toBeGreaterThanOrEqual(bareNodes * bareCores);
    }
  });

  it("names what runs out first, where it does", () => {
    const [first] = plan.bottlenecks;
    expect(plan.bottlenecks.map(({ factor }) => factor)).toEqual(
      plan.bottlenecks.map(({ factor }) => factor).toSorted((a, b) => a - b),
    );
    expect(first?.name).toBe("cores of query");
    const nodes = plan.roles.find(({ role }) => role === "query");
    const demand = demandOf(workload, model, { at: "peak", factor: first?.factor ?? 0 }, { ingestNodes: 3 });
    expect(demand.cores.query / ((nodes?.nodes ?? 0) * (nodes?.cores ?? 0))).toBeCloseTo(1, 3);
  });

  it("says what it cannot keep", () => {
    const wanted = { ...workload, deployment: { ...workload.deployment, freshness: 0.1, max_cores: 1 } };
    const impatient = { ...wanted, ingest: wanted.ingest.map((each) => Object.assign({}, each, { p99: 0.001 })) };
    const { unreached } = planFor(impatient, model);
    expect(unreached.join("\n")).toMatch(
      /query needs .* busy cores at the peak: more than the nodes within bounds have/,
    );
    expect(unreached.join("\n")).toMatch(/logs: p99 is expected at .* ms at the peak, 1 ms are wanted/);
    expect(unreached.join("\n")).toContain("mode sync shows them at once");
  });

  it("says where it goes beyond what was measured, and what was only given", () => {
    expect(plan.assumptions.join("\n")).toContain("dashboards: 2.25 GB are extrapolated, up to 300 MB were measured");
    const given = planFor(workload, costModel({ ...SAMPLE_COSTS, given: { storePutMs: 30 } }));
    expect(given.assumptions).toContain("storePutMs = 30 is given, not measured");
    expect(given.ingest[0]?.p50).toBeCloseTo((plan.ingest[0]?.p50 ?? 0) + 0.03, 3);
  });

  it("waits longer the busier nodes are", () => {
    const busy = {
      ...workload,
      deployment: { ...workload.deployment, max_utilization: 0.95, survive: "nothing" as const },
    };
    expect(planFor(busy, model).queries[0]?.p99).toBeGreaterThan(plan.queries[0]?.p99 ?? Infinity);
  });

  it("has nodes for sandboxes by their memory", () => {
    const asked = { ...workload, sandboxes: { at_once: 100, created: 0.1, memory: 2 ** 30 } };
    const nodes = planFor(asked, model).roles.find(({ role }) => role === "sandbox");
    const left = (nodes?.nodes ?? 0) - Math.ceil((nodes?.nodes ?? 0) / 3);
    expect(left * (nodes?.cores ?? 0) * 4 * 2 ** 30).toBeGreaterThan(100 * 2 ** 30);
  });

  it("and by how many a node runs at once", () => {
    const asked = { ...workload, sandboxes: { at_once: 2_000, created: 0.1, memory: 2 ** 20 } };
    const nodes = planFor(asked, model).roles.find(({ role }) => role === "sandbox")?.nodes ?? 0;
    expect(nodes - Math.ceil(nodes / 3)).toBe(2_000 / 250);
  });
});

describe("a node that is short of CPU", () => {
  it("takes what its load takes in a crowd, and no less than it has", () => {
    expect(busyCores({ usual: 0.5, crowded: 0.2, cores: 1 })).toBe(0.5);
    expect(busyCores({ usual: 1.5, crowded: 0.2, cores: 1 })).toBe(0.9);
    expect(busyCores({ usual: 2, crowded: 1.3, cores: 1 })).toBe(1.3);
  });
});
