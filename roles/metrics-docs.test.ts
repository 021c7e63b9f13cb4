import { expect, test } from "vitest";
import { createMetrics } from "../src/core/metrics.ts";
import { registerMetrics } from "../src/feature/collect.ts";
import { FEATURES } from "./features.ts";
import { referenceDocs } from "./reference.ts";

test("every metric has its row, a unit in its name where it has one, and a sentence", async () => {
  const rows = (await referenceDocs(FEATURES))["metrics.md"]
    ?.split("\n")
    .filter((line) => line.startsWith("| `engine_"));
  const { registry } = createMetrics();
  await registerMetrics(FEATURES, { registry });
  const metrics = registry.getMetricsAsArray();
  expect(metrics.length).toBeGreaterThan(100);
  expect(rows).toHaveLength(metrics.length);
  for (const { name, help } of metrics) {
    expect(rows?.filter((row) => row.startsWith(`| \`${name}\` |`))).toHaveLength(1);
    expect(help).toMatch(/^[A-Z0-9].*\.$/);
    const type: unknown = Reflect.get(registry.getSingleMetric(name) ?? {}, "type");
    expect([name, type === "counter"]).toEqual([name, name.endsWith("_total")]);
    expect([name, type === "histogram"]).toEqual([name, /_(duration|freshness)_seconds$/.test(name)]);
  }
});
