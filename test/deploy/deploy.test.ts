import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { FEATURES } from "../../roles/features.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import { registerMetrics } from "../../src/feature/collect.ts";
import { readsOf } from "./promql.test-kit.ts";

const pathOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const read = (path: string) => readFileSync(pathOf(path), "utf8");

/** All that a server shows: names of samples, each with its labels. */
const samples = new Map<string, readonly string[]>();
const { registry } = createMetrics({ process: true });
await registerMetrics(FEATURES, { registry });
for (const metric of registry.getMetricsAsArray()) {
  const labels = z.array(z.string()).parse(Reflect.get(metric, "labelNames"));
  const type: unknown = Reflect.get(metric, "type");
  if (type === "histogram")
    for (const suffix of ["_bucket", "_sum", "_count"]) samples.set(metric.name + suffix, labels);
  else samples.set(metric.name, labels);
}
/** Labels that Prometheus adds, by `prometheus.yml`. */
const TARGET_LABELS = ["job", "instance", "role"];

/** What is wrong with an expression, in sentences. */
function problemsOf(expression: string): string[] {
  const { selectors, groupings } = readsOf(expression);
  const known = new Set(selectors.flatMap(({ metric }) => samples.get(metric) ?? []));
  const unknownLabel = (metric: string, label: string) =>
    !TARGET_LABELS.includes(label) && !(label === "le" && metric.endsWith("_bucket")) && !known.has(label);
  return [
    ...(selectors.length === 0 ? [`reads nothing: ${expression}`] : []),
    ...selectors.flatMap(({ metric, labels }) => {
      if (metric === "up") return [];
      const own = samples.get(metric);
      if (own === undefined) return [`there is no ${metric}`];
      return labels.flatMap((label) =>
        [...TARGET_LABELS, "le", ...own].includes(label) ? [] : [`${metric} has no label ${label}`],
      );
    }),
    ...groupings.flatMap((label) =>
      unknownLabel(selectors.map(({ metric }) => metric).join(" "), label) ? [`nothing has the label ${label}`] : [],
    ),
  ];
}

/** The anchors of a page, as GitHub makes them. */
function anchorsOf(markdown: string): Set<string> {
  const headings = markdown.replaceAll(/```[^]*?```/g, "").matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, title = ""]) =>
      title
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

const rule = z.strictObject({
  alert: z.string().regex(/^Engine[A-Za-z]+$/),
  expr: z.string(),
  for: z.string().regex(/^\d+[mhd]$/),
  labels: z.strictObject({ severity: z.enum(["critical", "warning", "info"]) }),
  annotations: z.strictObject({
    summary: z.string().min(10),
    description: z.string().min(40),
    runbook: z.string().regex(/^docs\/operations\.md#[a-z-]+$/),
  }),
});
const rulesFile = z.strictObject({ groups: z.array(z.strictObject({ name: z.string(), rules: z.array(rule) })) });

describe("alerts", () => {
  const { groups } = rulesFile.parse(parseYaml(read("deploy/prometheus/alerts.yml")));
  const rules = groups.flatMap(({ rules }) => rules);

  it("read metrics that there are", () => {
    expect(rules.length).toBeGreaterThan(20);
    expect(rules.flatMap(({ alert, expr }) => problemsOf(expr).map((problem) => `${alert}: ${problem}`))).toEqual([]);
  });

  it("have names of their own, and a section of the operations guide that says more", () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    const anchors = anchorsOf(read("docs/operations.md"));
    const missing = rules.filter(({ annotations }) => !anchors.has(annotations.runbook.split("#")[1] ?? ""));
    expect(missing.map(({ alert, annotations }) => `${alert}: ${annotations.runbook}`)).toEqual([]);
  });

  it("speak only of labels that their expression leaves", () => {
    const wrong = rules.flatMap(({ alert, expr, annotations }) => {
      const used = [...annotations.description.matchAll(/\$labels\.(\w+)/g)].map(([, label = ""]) => label);
      const isGrouped = /\bby \(/.test(expr);
      const left = isGrouped ? readsOf(expr).groupings : [...TARGET_LABELS, ...labelsOf(expr)];
      return used.filter((label) => !left.includes(label)).map((label) => `${alert}: ${label}`);
    });
    expect(wrong).toEqual([]);
  });
});

const labelsOf = (expr: string) => readsOf(expr).selectors.flatMap(({ metric }) => samples.get(metric) ?? []);

test("the scrape configuration loads the alerts, and names the roles", () => {
  const config = z
    .strictObject({
      global: z.record(z.string(), z.string()),
      rule_files: z.tuple([z.literal("alerts.yml")]),
      scrape_configs: z.tuple([
        z.strictObject({
          job_name: z.literal("engine"),
          metrics_path: z.literal("/metrics"),
          authorization: z.strictObject({ type: z.literal("Bearer"), credentials_file: z.string().regex(/^\//) }),
          static_configs: z.array(
            z.strictObject({
              targets: z.array(z.string().regex(/^[a-z0-9-]+:8080$/)),
              labels: z.strictObject({ role: z.string() }),
            }),
          ),
        }),
      ]),
    })
    .parse(parseYaml(read("deploy/prometheus/prometheus.yml")));
  const roles = config.scrape_configs[0].static_configs.map(({ labels }) => labels.role);
  expect(roles).toEqual(["edge", "query", "ingest", "committer", "compaction", "worker"]);
});

const place = z.object({ h: z.number(), w: z.number(), x: z.number(), y: z.number() });
const dashboard = z.object({
  schemaVersion: z.number().min(38),
  templating: z.object({ list: z.array(z.object({ name: z.string(), type: z.string() })) }),
  panels: z.array(
    z.object({
      id: z.number(),
      type: z.enum(["row", "timeseries", "stat"]),
      title: z.string(),
      gridPos: place,
      targets: z
        .array(z.object({ expr: z.string(), datasource: z.object({ uid: z.literal("${datasource}") }) }))
        .default([]),
    }),
  ),
});

describe("the dashboard", () => {
  const { panels, templating } = dashboard.parse(JSON.parse(read("deploy/grafana/engine.json")));

  it("has its variables, and a row for each part of a cluster", () => {
    expect(templating.list.map(({ name, type }) => `${name} ${type}`)).toEqual([
      "datasource datasource",
      "role query",
      "instance query",
    ]);
    expect(panels.filter(({ type }) => type === "row").length).toBeGreaterThanOrEqual(9);
  });

  it("reads metrics that there are, of the servers that are chosen", () => {
    const wrong = panels.flatMap(({ title, targets }) =>
      targets.flatMap(({ expr }) => {
        const isChosen = expr.includes('role=~"$role",instance=~"$instance"');
        const problems = [...problemsOf(expr), ...(isChosen ? [] : ["does not look at the variables"])];
        return problems.map((problem) => `${title}: ${problem}`);
      }),
    );
    expect(wrong).toEqual([]);
    for (const { type, title, targets } of panels) expect([title, targets.length > 0]).toEqual([title, type !== "row"]);
  });

  it("shows every metric of the program", async () => {
    const shown = new Set(panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => namesIn(expr))));
    const { registry: own } = createMetrics();
    await registerMetrics(FEATURES, { registry: own });
    const missing = own
      .getMetricsAsArray()
      .map(({ name }) => name)
      .filter((name) => !shown.has(name));
    expect(missing.filter((name) => !NOT_SHOWN.has(name))).toEqual([]);
  });

  it("has panels that lie beside each other", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)} ${y + Math.floor(i / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBeLessThanOrEqual(24);
  });
});

/** What others on the dashboard say better, or what only alerts and people look at. */
const NOT_SHOWN = new Set([
  "engine_build_info",
  "engine_compaction_backlog_bytes",
  "engine_compaction_input_extents_total",
  "engine_compaction_io_wait_seconds_total",
  "engine_compaction_unpublished_table_age_seconds",
  "engine_compaction_unpublished_table_bytes",
  "engine_compaction_unpublished_table_rows",
  "engine_deletion_oldest_snapshot",
  "engine_duty_fence",
  "engine_ingest_queued_requests",
  "engine_ledger_last_sweep_timestamp_seconds",
  "engine_ledger_sweep_failures_total",
  "engine_query_held_snapshot",
  "engine_staged_damaged_objects",
  "engine_staged_written_bytes_total",
]);

const namesIn = (expr: string) =>
  readsOf(expr).selectors.map(({ metric }) => metric.replace(/_(bucket|sum|count)$/, ""));

test("the guides name only metrics that there are", () => {
  const names = new Set([...samples.keys()].flatMap((name) => [name, name.replace(/_(bucket|sum|count)$/, "")]));
  // Claims of tokens begin like metrics, but speak of other things.
  const subjects = new Set([...names].map(subjectOf));
  const guides = [...globSync("docs/*.md"), "README.md"];
  const wrong = guides.flatMap((path) =>
    [...read(path).matchAll(/`(engine_[a-z0-9_]+[a-z0-9])\b(?!_?…)/g)]
      .map(([, name = ""]) => name)
      .filter((name) => subjects.has(subjectOf(name)) && !names.has(name))
      .map((name) => `${path}: ${name}`),
  );
  expect(wrong).toEqual([]);
});

const subjectOf = (name: string) => name.split("_")[1] ?? "";

describe("the reader of this test", () => {
  it.each([
    ['sum by (job) (rate(a_total{x=~"y|z",w!="by (q)"}[5m])) > 0.5', [{ metric: "a_total", labels: ["x", "w"] }]],
    ["time() - max by (a, b) (c)", [{ metric: "c", labels: [] }]],
    [
      "a and on (job) b == 1",
      [
        { metric: "a", labels: [] },
        { metric: "b", labels: [] },
      ],
    ],
    ["histogram_quantile(0.99, sum by (le) (rate(h_bucket[5m])))", [{ metric: "h_bucket", labels: [] }]],
  ])("finds what %s reads", (expression, selectors) => {
    expect(readsOf(expression).selectors).toEqual(selectors);
  });

  it("finds what is wrong", () => {
    expect(problemsOf("rate(engine_nonsense_total[5m])")).toEqual(["there is no engine_nonsense_total"]);
    expect(problemsOf('engine_duty_held{dutty="x"}')).toEqual(["engine_duty_held has no label dutty"]);
    expect(problemsOf("sum by (dutty) (engine_duty_held)")).toEqual(["nothing has the label dutty"]);
    expect(problemsOf("engine_http_request_duration_seconds > 1")).toHaveLength(1);
    expect(() => readsOf("rate(a[5m)")).toThrow(SyntaxError);
  });
});

describe.skipIf(lacks("promtool"))("promtool", () => {
  // It ends with what is wrong in the message, where something is.
  const promtool = (...args: string[]) => execFileSync("promtool", args, { encoding: "utf8", stdio: "pipe" });

  it("takes the scrape configuration and the alerts, their templates too", () => {
    // The file with the token is the operator's.
    promtool("check", "config", "--syntax-only", pathOf("deploy/prometheus/prometheus.yml"));
    const found = promtool("check", "rules", "--lint=all", "--lint-fatal", pathOf("deploy/prometheus/alerts.yml"));
    expect(found).toContain("SUCCESS");
  });

  it("takes each expression of the dashboard, as rules that record it", () => {
    const { panels } = dashboard.parse(JSON.parse(read("deploy/grafana/engine.json")));
    const expressions = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    expect(checkRules(expressions)).toContain(`${expressions.length} rules found`);
    expect(() => checkRules(["rate(up)"])).toThrow("expected type range vector");
  });

  function checkRules(expressions: readonly string[]): string {
    const rules = expressions.map((expr, i) => ({
      record: `dashboard:${i}`,
      expr: expr.replaceAll("$__rate_interval", "5m"),
    }));
    const folder = mkdtempSync(join(tmpdir(), "engine-rules-"));
    try {
      const file = join(folder, "rules.yml");
      // JSON is YAML.
      writeFileSync(file, JSON.stringify({ groups: [{ name: "dashboard", rules }] }));
      return promtool("check", "rules", file);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
});
