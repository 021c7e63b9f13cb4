import { z } from "zod";
import { sleep, type Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { parseMetrics, type Sample } from "./metrics-text.ts";

/** What the servers of a cluster did in a span of time: each counter's growth, and gauges as they were at its end. */
export type ObservedNode = {
  /** Address, as it is known to whoever was asked. */
  name: string;
  roles: readonly string[];
  cores: number;
  cpuSeconds: number;
  /** Growth of all other counters that `COUNTERS` names, added up over their labels. */
  growth: ReadonlyMap<string, number>;
  /** Rows and bytes of ingest by database. */
  rows: ReadonlyMap<string, number>;
  bytes: ReadonlyMap<string, number>;
};

export type Observed = { seconds: number; nodes: readonly ObservedNode[] };

/** Fetches a text; throws for anything but an answer of 200. */
export type FetchText = (url: string) => Promise<string>;

type At = { atMs: number; samples: readonly Sample[] };

const CPU = "engine_cpu_seconds_total";
const INFO = "engine_build_info";
const CORES = "engine_cpu_cores";
const ROWS = "engine_ingest_rows_total";
const BYTES = "engine_ingest_bytes_total";
/** Of these, all that a plan asks for. */
const COUNTERS = [
  "engine_ingest_requests_total",
  "engine_query_duration_seconds_count",
  "engine_query_cache_hits_total",
  "engine_query_cache_misses_total",
  "engine_job_attempts_ended_total",
] as const;
const WANTED = [CPU, INFO, CORES, ROWS, BYTES, ...COUNTERS];

/**
 * Of servers' own `/metrics`, read twice with the span between; or of one Prometheus that scrapes them, at once. Throws a
 * sentence with the address where there is neither.
 */
export async function observe(
  urls: readonly string[],
  spanSeconds: number,
  { fetchText, clock }: { fetchText: FetchText; clock: Clock },
): Promise<Observed> {
  const [first = ""] = urls;
  if (urls.length === 1 && (await isPrometheus(first, fetchText)))
    return await ofPrometheus(first, spanSeconds, { fetchText, clock });
  const read = () => Promise.all(urls.map((url) => readServer(url, { fetchText, clock })));
  const before = await read();
  await sleep(clock, spanSeconds * 1_000);
  const after = await read();
  const nodes = after.map((then, i) => nodeOf(urls[i] ?? "", before[i]?.samples ?? [], then.samples));
  const elapsed = after.map(({ atMs }, i) => atMs - (before[i]?.atMs ?? atMs));
  return { seconds: Math.max(...elapsed) / 1_000, nodes };
}

async function readServer(url: string, { fetchText, clock }: { fetchText: FetchText; clock: Clock }): Promise<At> {
  const samples = parseMetrics(await fetched(`${withoutSlash(url)}/metrics`, fetchText));
  if (!samples.some(({ name }) => name === INFO)) throw new Error(`${url} is no server of engine, and no Prometheus`);
  return { atMs: clock.monotonicMs(), samples };
}

async function fetched(url: string, fetchText: FetchText): Promise<string> {
  try {
    return await fetchText(url);
  } catch (error) {
    throw new Error(`cannot read ${url}: ${messageOf(error)}`, { cause: error });
  }
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, "");
}

async function isPrometheus(url: string, fetchText: FetchText): Promise<boolean> {
  try {
    const answer: unknown = JSON.parse(await fetchText(`${withoutSlash(url)}/api/v1/status/buildinfo`));
    return z.object({ status: z.literal("success") }).safeParse(answer).success;
  } catch {
    // Servers of engine answer 404 there. What is neither is refused when its metrics are read.
    return false;
  }
}

const vectorSchema = z.object({
  data: z.object({
    resultType: z.literal("vector"),
    result: z.array(z.object({ metric: z.record(z.string(), z.string()), value: z.tuple([z.number(), z.string()]) })),
  }),
});

async function ofPrometheus(
  url: string,
  spanSeconds: number,
  { fetchText, clock }: { fetchText: FetchText; clock: Clock },
): Promise<Observed> {
  const now = clock.nowMs() / 1_000;
  const query = `{__name__=~"${WANTED.join("|")}"}`;
  const at = async (seconds: number): Promise<Map<string, Sample[]>> => {
    const asked = new URLSearchParams({ query, time: seconds.toFixed(3) });
    const text = await fetched(`${withoutSlash(url)}/api/v1/query?${asked.toString()}`, fetchText);
    const answer = vectorSchema.safeParse(JSON.parse(text));
    if (!answer.success) throw new Error(`${url} answers no vector of series; is it a Prometheus?`);
    const byInstance = new Map<string, Sample[]>();
    for (const { metric, value } of answer.data.data.result) {
      const { __name__: name = "", instance = "", ...labels } = metric;
      const samples = byInstance.get(instance) ?? [];
      samples.push({ name, labels, value: Number(value[1]) });
      byInstance.set(instance, samples);
    }
    return byInstance;
  };
  const [before, after] = [await at(now - spanSeconds), await at(now)];
  if (before.size === 0)
    throw new Error(
      `${url} has no metrics of engine of ${spanSeconds} s ago; take a shorter --span, or scrape the servers`,
    );
  const nodes = [...after].map(([name, samples]) => nodeOf(name, before.get(name) ?? [], samples));
  return { seconds: spanSeconds, nodes };
}

function nodeOf(name: string, before: readonly Sample[], after: readonly Sample[]): ObservedNode {
  const info = after.find((each) => each.name === INFO)?.labels ?? {};
  return {
    name,
    roles: (info["roles"] ?? "").split(",").filter((role) => role !== ""),
    cores: after.find((each) => each.name === CORES)?.value ?? Number.NaN,
    cpuSeconds: total(growthOf(CPU, undefined, before, after)),
    growth: new Map(COUNTERS.map((counter) => [counter, total(growthOf(counter, undefined, before, after))])),
    rows: growthOf(ROWS, "database", before, after),
    bytes: growthOf(BYTES, "database", before, after),
  };
}

/** By the value of a label. A counter that is smaller than before has begun anew. */
function growthOf(
  counter: string,
  label: string | undefined,
  before: readonly Sample[],
  after: readonly Sample[],
): Map<string, number> {
  const sums = (samples: readonly Sample[]) => {
    const byLabel = new Map<string, number>();
    for (const { name, labels, value } of samples) {
      const key = label === undefined ? "" : (labels[label] ?? "");
      if (name === counter) byLabel.set(key, (byLabel.get(key) ?? 0) + value);
    }
    return byLabel;
  };
  const earlier = sums(before);
  return new Map(
    [...sums(after)].map(([key, value]) => {
      const then = earlier.get(key) ?? 0;
      return [key, value >= then ? value - then : value];
    }),
  );
}

function total(values: ReadonlyMap<string, number>): number {
  return [...values.values()].reduce((sum, each) => sum + each, 0);
}
