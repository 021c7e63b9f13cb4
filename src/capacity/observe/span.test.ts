import { describe, expect, it } from "vitest";
import { systemClock } from "../../core/clock.ts";
import { costModel } from "../costs/cost-model.ts";
import { SAMPLE_COSTS } from "../costs/samples.test-kit.ts";
import { planFor } from "../model/plan.ts";
import { parseWorkload } from "../workload/workload.ts";
import { parseMetrics } from "./metrics-text.ts";
import { observe, type FetchText } from "./span.ts";
import { compareRoles, workloadTextOf } from "./workload-of.ts";

const metrics = (role: string, { rows = 0, cpu = 0, queries = 0 }) => `# HELP engine_cpu_cores Cores.
engine_build_info{version="0.1.0",roles="${role}"} 1
engine_cpu_cores 2
engine_cpu_seconds_total ${cpu}
engine_ingest_rows_total{database="default"} ${rows}
engine_ingest_rows_total{database="a \\"b\\" c"} ${rows * 2}
engine_ingest_bytes_total{database="default"} ${rows * 340}
engine_ingest_bytes_total{database="a \\"b\\" c"} ${rows * 680}
engine_ingest_requests_total{outcome="committed"} ${rows / 10}
engine_query_duration_seconds_count{outcome="ok"} ${queries}
`;

/** Servers whose metrics differ from one reading to the next. */
function serving(pages: Readonly<Record<string, readonly string[]>>): FetchText {
  const read = new Map<string, number>();
  return async (url) => {
    const texts = pages[url];
    if (texts === undefined) throw new Error("it answers 404");
    const time = read.get(url) ?? 0;
    read.set(url, time + 1);
    return texts[Math.min(time, texts.length - 1)] ?? "";
  };
}

const INGEST = [metrics("ingest", { rows: 1_000, cpu: 10 }), metrics("ingest", { rows: 4_000, cpu: 10.5 })];
const QUERY = [metrics("query", { queries: 5, cpu: 3 }), metrics("query", { queries: 7, cpu: 3.2 })];

describe("watching servers", () => {
  it("counts what grew between two readings, from nothing where a server began anew", async () => {
    const fetchText = serving({ "http://i/metrics": INGEST, "http://q/metrics": QUERY.toReversed() });
    const { nodes, seconds } = await observe(["http://i/", "http://q"], 0.05, { fetchText, clock: systemClock });
    // Timers may be early by less than a millisecond.
    expect(seconds).toBeGreaterThan(0.048);
    expect(nodes[0]).toMatchObject({ roles: ["ingest"], cores: 2, cpuSeconds: 0.5 });
    expect([...(nodes[0]?.rows ?? [])]).toEqual([
      ["default", 3_000],
      ['a \\"b\\" c', 6_000],
    ]);
    expect(nodes[1]).toMatchObject({ cpuSeconds: 3 });
  });

  it("asks a Prometheus for both ends of the span at once", async () => {
    const asked: string[] = [];
    const fetchText: FetchText = async (url) => {
      asked.push(url);
      if (url.endsWith("/buildinfo")) return JSON.stringify({ status: "success" });
      const isAfter = Number(new URL(url).searchParams.get("time")) > 1_000_000_000 && asked.length > 2;
      const result = parseMetrics((isAfter ? INGEST[1] : INGEST[0]) ?? "").map(({ name, labels, value }) => ({
        metric: { __name__: name, instance: "ingest-1", ...labels },
        value: [1, String(value)],
      }));
      return JSON.stringify({ status: "success", data: { resultType: "vector", result } });
    };
    const { nodes, seconds } = await observe(["http://prometheus"], 3_600, { fetchText, clock: systemClock });
    expect(seconds).toBe(3_600);
    expect(nodes).toMatchObject([{ name: "ingest-1", cpuSeconds: 0.5 }]);
    expect(nodes[0]?.rows.get("default")).toBe(3_000);
  });

  it.each([
    ["a server that is not there", serving({}), /cannot read http:\/\/i\/metrics: it answers 404/],
    ["a server of something else", serving({ "http://i/metrics": ["up 1\n"] }), /http:\/\/i is no server of engine/],
  ])("says of %s what it is", async (_what, fetchText, expected) => {
    await expect(observe(["http://i"], 0.01, { fetchText, clock: systemClock })).rejects.toThrow(expected);
  });

  it("writes a workload that can be planned, whatever databases are called, and compares", async () => {
    const fetchText = serving({ "http://i/metrics": INGEST, "http://q/metrics": QUERY });
    const { nodes } = await observe(["http://i", "http://q"], 0.01, { fetchText, clock: systemClock });
    const observed = { seconds: 10, nodes };
    const text = workloadTextOf(observed, "logs");
    const workload = parseWorkload("seen", text);
    expect(workload.ingest).toMatchObject([
      { name: "default", rows: 300, bytes_per_row: 340, rows_per_request: 30 },
      { name: "database-2", rows: 600, bytes_per_row: 340 },
    ]);
    expect(workload.queries).toMatchObject([{ rate: 0.2, cached: 1 }]);
    const model = costModel(SAMPLE_COSTS);
    const compared = compareRoles(observed, model, workload, planFor(workload, model).roles);
    expect(compared).toMatchObject([
      { role: "ingest", nodes: 1, cores: 2, used: 0.05, verdict: "too large; 1 × 1 cores would do" },
      { role: "query", nodes: 1, cores: 2 },
    ]);
    expect(compared[0]?.expected).toBeGreaterThan(0);
  });

  it("has nothing to plan where nothing came in", () => {
    expect(() => workloadTextOf({ seconds: 60, nodes: [] }, "logs")).toThrow("no row came in within 60 s");
  });
});

describe("the text of metrics", () => {
  it("is read without what is no sample, and has no properties of its own", () => {
    const [sample, ...others] = parseMetrics('# TYPE a counter\na{b="c,d",e="f\\"g"} 1.5\nnonsense\n');
    expect(others).toEqual([]);
    expect({ ...sample?.labels }).toEqual({ b: "c,d", e: 'f\\"g' });
    expect(sample?.labels["constructor"]).toBeUndefined();
  });
});
