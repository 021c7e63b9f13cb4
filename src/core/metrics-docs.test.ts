import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { renderMetricsDoc } from "./metrics-docs.ts";
import { createMetrics } from "./metrics.ts";

test("docs/metrics.md is what the definitions say (npm run docs writes it)", () => {
  const written = readFileSync(new URL("../../docs/metrics.md", import.meta.url), "utf8");
  expect(written).toBe(renderMetricsDoc());
});

test("every metric has its row, a unit in its name where it has one, and a sentence", () => {
  const rows = renderMetricsDoc()
    .split("\n")
    .filter((line) => line.startsWith("| `engine_"));
  const metrics = createMetrics().registry.getMetricsAsArray();
  expect(rows).toHaveLength(metrics.length);
  for (const { name, help } of metrics) {
    expect(rows.filter((row) => row.startsWith(`| \`${name}\` |`))).toHaveLength(1);
    expect(help).toMatch(/^[A-Z0-9].*\.$/);
    const type: unknown = Reflect.get(createMetrics().registry.getSingleMetric(name) ?? {}, "type");
    expect([name, type === "counter"]).toEqual([name, name.endsWith("_total")]);
    expect([name, type === "histogram"]).toEqual([name, /_(duration|freshness)_seconds$/.test(name)]);
  }
});
