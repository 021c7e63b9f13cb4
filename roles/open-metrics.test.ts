import { FEATURES } from "./features.ts";
import { registerMetrics } from "../src/feature/collect.ts";
import { QUERY_METRICS } from "../src/query/metrics.ts";
import { INGEST_METRICS } from "../src/ingest/metrics.ts";
import { expect, test } from "vitest";
import { createMetrics } from "../src/core/metrics.ts";
import { openMetricsOf } from "../src/core/open-metrics.ts";
import { JOB_METRICS } from "../src/fabric/metrics.ts";

const samplesIn = (text: string) => text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));

test("says everything that the whole exposition says where there are no names, in the same words", async () => {
  const metrics = createMetrics({ process: true });
  metrics.buildInfo.set({ version: '1 "a"\\\n', roles: "all_in_one" }, 1);
  metrics.httpDuration.observe({ method: "GET", route: "/v1/query", status: 200 }, 0.2);
  JOB_METRICS.of(metrics).jobsUnfinished.set({ kind: "query.export", status: "queued" }, 3);
  metrics.edgePeerUsable.set({ upstream: "query", peer: "http://a:1" }, 0);
  metrics.diskFree.watch({ folder: "home" }, () => Promise.resolve(0.5));
  QUERY_METRICS.of(metrics).queryHeldSnapshot.watch({}, () => Promise.resolve(Number.NaN));
  // What the process measures differs from one moment to the next.
  const steady = (text: string) => samplesIn(text).filter((line) => !/^engine_(?:process|nodejs|cpu)_/.test(line));
  const whole = await metrics.registry.metrics();
  const open = await openMetricsOf(metrics.registry);
  expect(steady(open).toSorted()).toEqual(
    steady(whole)
      .map((line) => line.replace(/ Nan$/, " NaN"))
      .toSorted(),
  );
  const names = (text: string) => samplesIn(text).map((line) => line.replace(/ [^ ]+$/, "").replace(/pid="\d+"/, ""));
  expect(names(open).filter((name) => name.startsWith("engine_nodejs_eventloop"))).toEqual(
    names(whole).filter((name) => name.startsWith("engine_nodejs_eventloop")),
  );
  const comments = (text: string) => text.split("\n").filter((line) => line.startsWith("#"));
  expect(comments(open)).toEqual(comments(whole));
});

test("counts what has a caller's name under one, and says no gauge of it", async () => {
  const metrics = createMetrics();
  INGEST_METRICS.of(metrics).ingestRows.inc({ database: "secret-a" }, 3);
  INGEST_METRICS.of(metrics).ingestRows.inc({ database: "secret-b" }, 4);
  JOB_METRICS.of(metrics).jobRunDuration.observe({ kind: "x.secret" }, 1);
  JOB_METRICS.of(metrics).jobRunDuration.observe({ kind: "x.secret.too" }, 2);
  JOB_METRICS.of(metrics).jobRunDuration.observe({ kind: "query.export" }, 4);
  JOB_METRICS.of(metrics).jobsUnfinished.set({ kind: "x.secret", status: "queued" }, 5);
  const text = await openMetricsOf(metrics.registry);
  expect(text).not.toContain("secret");
  const lines = samplesIn(text);
  expect(lines.filter((line) => line.startsWith("engine_ingest_rows_total"))).toEqual([
    'engine_ingest_rows_total{database="_other"} 7',
  ]);
  expect(lines).toContain('engine_job_run_duration_seconds_sum{kind="_other"} 3');
  expect(lines).toContain('engine_job_run_duration_seconds_count{kind="_other"} 2');
  expect(lines).toContain('engine_job_run_duration_seconds_count{kind="query.export"} 1');
  expect(lines.filter((line) => line.startsWith("engine_jobs_unfinished"))).toEqual([]);
});

test("every label is known for words of ours, or for names", async () => {
  const metrics = createMetrics();
  await registerMetrics(FEATURES, metrics);
  const hidden = new Set<string>();
  for (const { name } of metrics.registry.getMetricsAsArray()) {
    const labels: unknown = Reflect.get(metrics.registry.getSingleMetric(name) ?? {}, "labelNames");
    for (const label of labels as string[]) hidden.add(label);
  }
  // A new label is hidden until it is listed with the words; then this says that it was looked at.
  for (const label of hidden) {
    const registry = createMetrics().registry;
    registry.clear();
    const { Counter } = await import("prom-client");
    new Counter({ name: "engine_probe_total", help: "A probe.", labelNames: [label], registers: [registry] }).inc({
      [label]: "word",
    });
    if ((await openMetricsOf(registry)).includes(`${label}="word"`)) hidden.delete(label);
  }
  expect([...hidden].toSorted()).toEqual(["database", "partition", "prefix", "table", "topic"]);
});
