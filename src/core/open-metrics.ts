import type { MetricObjectWithValues, MetricValue, Registry } from "prom-client";
import { OTHER_NAMES } from "./bounded-label.ts";

/**
 * The exposition for those who show no token: all metrics, without names that callers chose. A label whose values are
 * this program's own words is listed here; any other one is taken for names, so a new label tells nothing until somebody
 * has looked at it. Names become `_other`, and what they counted becomes one series; a gauge of a name means nothing
 * without it and is left out.
 */
const OWN_WORDS: ReadonlySet<string> = new Set([
  "after",
  "budget",
  "client",
  "code",
  "direction",
  "duty",
  "folder",
  "for",
  "kind",
  "le",
  "method",
  "outcome",
  "peer",
  "pool",
  "reason",
  "relation",
  "result",
  "roles",
  "route",
  "stage",
  "state",
  "status",
  "tool",
  "type",
  "upstream",
  "version",
]);

/** Kinds of jobs that users make up begin so. */
const USERS_KIND = /^x\./;
/** What the library says of the process, with labels of its own. */
const OF_THE_PROCESS = /^engine_(?:nodejs|process)_/;

export async function openMetricsOf(registry: Registry): Promise<string> {
  const metrics = await registry.getMetricsAsJSON();
  return `${metrics.map((metric) => blockOf(metric as MetricObjectWithValues<Value>)).join("\n\n")}\n`;
}

/** Of a histogram there are several samples, each with a name of its own. */
type Value = MetricValue<string> & { metricName?: string };

function blockOf({ name, help, type, values }: MetricObjectWithValues<Value>): string {
  const series = new Map<string, number>();
  for (const { value, labels, metricName = name } of values) {
    const open = OF_THE_PROCESS.test(name) ? labels : withoutNames(labels);
    if (String(type) === "gauge" && open !== labels) continue;
    const key = `${metricName}${textOf(open)}`;
    series.set(key, (series.get(key) ?? 0) + value);
  }
  const head = [`# HELP ${name} ${escaped(help)}`, `# TYPE ${name} ${String(type)}`];
  return [...head, ...[...series].map(([key, value]) => `${key} ${numberOf(value)}`)].join("\n");
}

type Labels = MetricValue<string>["labels"];

/** The same object where there is no name in it. */
function withoutNames(labels: Labels): Labels {
  const entries = Object.entries(labels);
  if (!entries.some(isName)) return labels;
  return Object.fromEntries(entries.map((entry) => (isName(entry) ? [entry[0], OTHER_NAMES] : entry)));
}

function isName([label, value]: [string, string | number | undefined]): boolean {
  return !OWN_WORDS.has(label) || (label === "kind" && USERS_KIND.test(String(value)));
}

function textOf(labels: Labels): string {
  const pairs = Object.entries(labels).map(
    ([label, value]) => `${label}="${escaped(String(value)).replaceAll('"', '\\"')}"`,
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function numberOf(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}
