import { describe, expect, it } from "vitest";
import { costModel } from "../costs/cost-model.ts";
import { SAMPLE_COSTS } from "../costs/samples.test-kit.ts";
import { planFor } from "../model/plan.ts";
import { costOf } from "../prices.ts";
import { WORKLOAD } from "../workload/samples.test-kit.ts";
import { parseWorkload } from "../workload/workload.ts";
import { htmlOf } from "./html.ts";
import { sectionsOf } from "./sections.ts";
import { tfvarsOf } from "./tfvars.ts";

const workload = parseWorkload("w.toml", WORKLOAD);
const plan = planFor(workload, costModel(SAMPLE_COSTS));

describe("for Terraform", () => {
  it("has sizes that Fargate has, and no more servers than discovery takes", () => {
    const { roles } = tfvarsOf(plan, workload);
    const memory: Record<number, [number, number]> = {
      1024: [2, 8],
      2048: [4, 16],
      4096: [8, 30],
      8192: [16, 60],
      16384: [32, 120],
    };
    expect(Object.keys(roles)).toEqual(["edge", "ingest", "query", "committer", "compaction", "worker"]);
    for (const { cpu, memory_mib: mib, min, max, disk_gib: disk } of Object.values(roles)) {
      const [least, most] = memory[cpu] ?? [Number.NaN, Number.NaN];
      expect(mib / 1_024).toBeGreaterThanOrEqual(least);
      expect(mib / 1_024).toBeLessThanOrEqual(most);
      expect(max).toBeGreaterThanOrEqual(min);
      expect(max).toBeLessThanOrEqual(8);
      expect(disk).toBeGreaterThanOrEqual(21);
      expect(disk).toBeLessThanOrEqual(200);
    }
    expect(roles["compaction"]?.disk_gib).toBeGreaterThanOrEqual(40);
    expect(roles["query"]?.env).toEqual({ ENGINE_QUERY_CACHE_BYTES: "179GiB" });
  });

  it("is not written for what the modules cannot make", () => {
    const role = plan.roles.find((each) => each.role === "query");
    const planned = (more: object) => ({ ...plan, roles: [{ ...role, ...more } as (typeof plan.roles)[number]] });
    expect(() => tfvarsOf(planned({ nodes: 9 }), workload)).toThrow("query needs 9 nodes and the modules take 8");
    expect(() => tfvarsOf(planned({ cores: 32 }), workload)).toThrow(/Fargate has 16 and 120 at most; lower max_cores/);
    expect(() => tfvarsOf({ ...plan, mode: "single", postgres: null }, workload)).toThrow(
      "one process needs no Terraform",
    );
    expect(() => tfvarsOf({ ...plan, unreached: ["query needs 99.0 busy cores"] }, workload)).toThrow(
      "there is nothing to write for Terraform: query needs 99.0 busy cores",
    );
  });
});

describe("as a page", () => {
  it("loads nothing, runs nothing, and shows every text as text", () => {
    const hostile = `</pre><script>alert(1)</script><img src=x onerror="alert('1')">`;
    const page = htmlOf(hostile, [{ title: hostile, sentences: [hostile] }, ...sectionsOf(plan, undefined)], {
      hostile,
    });
    expect(page).not.toMatch(/<script|<img|<link|https?:|url\(|@import/i);
    expect(page).not.toMatch(/ on[a-z]+="/i);
    expect(page).toContain("prefers-color-scheme: dark");
    expect(page).toContain("@media print");
  });
});

describe("the cost", () => {
  it("is of what has a price, and says what has none", () => {
    const cost = costOf(plan, { currency: "EUR", core_hour: 0.04, store_gib_month: 0.02 });
    const cores = plan.roles.reduce((sum, { nodes, cores: each }) => sum + nodes * each, 0);
    expect(cost.lines.find(({ what }) => what === "cores")?.perMonth).toBeCloseTo(cores * 730 * 0.04, 6);
    expect(cost.perMonth).toBeCloseTo(
      cost.lines.reduce((sum, line) => sum + line.perMonth, 0),
      6,
    );
    expect(cost.unpriced).toContain("PostgreSQL");
    expect(
      sectionsOf(plan, cost)
        .map(({ title }) => title)
        .join(),
    ).toContain("no price of memory");
    expect(
      sectionsOf(plan, undefined)
        .map(({ title }) => title)
        .join(),
    ).not.toContain("Cost");
  });
});
