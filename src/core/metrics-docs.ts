import { Registry } from "prom-client";
import type { MetricSet } from "./metric-set.ts";
import { createMetrics } from "./metrics.ts";

/** Of the metrics that belong to no feature: headings, with the beginnings of the names below each. */
const GROUPS: readonly { title: string; prefixes: readonly string[] }[] = [
  { title: "Every node", prefixes: ["build", "cpu", "http", "grpc", "tls", "disk"] },
  { title: "Catalog", prefixes: ["catalog"] },
  { title: "Object store (S3)", prefixes: ["objstore"] },
  { title: "Background duties", prefixes: ["duty"] },
  { title: "Edge", prefixes: ["edge"] },
];

const INTRODUCTION = `# Metrics

<!-- Printed from the definitions by \`npm run docs\`; edit \`src/core/metrics.ts\` and the metrics of the features instead. -->

Every server answers \`GET /metrics\` in the Prometheus text format. Counters start at 0 with the process. A server knows
all of these names; what its roles do not do stays at 0 or has no sample. The buckets of all histograms are the same, from
1 ms to 5 minutes. Which of them to watch, and what to do then: [operations](operations.md#monitoring).

Where authentication is on, names that callers chose are shown only to a token of the role \`read\` that is not limited to
databases. Everybody else gets all metrics, with \`_other\` for such a name: databases, topics and their partitions,
prefixes of dropped files, and kinds of jobs that begin with \`x.\`. Counters and histograms of such names are added up there, and gauges of them are left out.

Besides these there are those of the process and of Node (\`engine_process_…\`, \`engine_nodejs_…\`), as the library
prom-client names them: \`engine_process_resident_memory_bytes\`, \`engine_process_cpu_seconds_total\`,
\`engine_process_open_fds\`, \`engine_nodejs_eventloop_lag_p99_seconds\` (since it was last read), and others.
`;

type Described = { name: string; type: string; help: string; labels: readonly string[] };

type OwnMetrics = { feature: { title: string }; metrics: MetricSet };

/**
 * The text of `docs/metrics.md`: what belongs to no feature, then a section for each feature.
 * Throws for a metric that belongs to no group.
 */
export function renderMetricsDoc(features: readonly OwnMetrics[] = []): string {
  const common = describeAll(createMetrics().registry);
  const homeless = common.filter(({ name }) => !GROUPS.some(({ prefixes }) => belongs(name, prefixes)));
  if (homeless.length > 0) throw new Error(`no group of the reference has ${homeless.map(({ name }) => name).join()}`);
  const sections = [
    ...GROUPS.map(({ title, prefixes }) =>
      section(
        title,
        common.filter(({ name }) => belongs(name, prefixes)),
      ),
    ),
    ...features.map(({ feature, metrics }) => {
      const registry = new Registry();
      metrics.of({ registry });
      return section(feature.title, describeAll(registry));
    }),
  ];
  return [INTRODUCTION, ...sections].join("\n");
}

function section(title: string, metrics: readonly Described[]): string {
  const head = [`## ${title}\n`, "| metric | type | labels | what it tells |", "|---|---|---|---|"];
  return [...head, ...metrics.map(rowOf), ""].join("\n");
}

function describeAll(registry: Registry): Described[] {
  return registry
    .getMetricsAsArray()
    .map(describe)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function belongs(name: string, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => name.startsWith(`engine_${prefix}_`));
}

function rowOf({ name, type, labels, help }: Described): string {
  return `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${help} |`;
}

/** The library keeps the type and the labels of a metric, but does not declare them. */
function describe(metric: { name: string; help: string }): Described {
  const labels: unknown = Reflect.get(metric, "labelNames");
  const type: unknown = Reflect.get(metric, "type");
  const own = Array.isArray(labels) ? labels.map(String).filter((label) => label !== "le") : [];
  return { name: metric.name, help: metric.help, type: String(type), labels: own };
}
