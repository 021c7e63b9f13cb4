import { fileURLToPath } from "node:url";
import { z } from "zod";
import { median, quantile } from "../../src/capacity/quantile.ts";
import { systemClock } from "../../src/core/clock.ts";
import { KqlRefused, type KqlTable } from "../../src/query/kql/contract.ts";
import { namesOf, translate } from "../../src/query/kql/translate.ts";
import { defineBenchmark, type Side } from "../suite/benchmark.ts";
import { shapesOf } from "./kql/shapes.ts";
import { textsIn } from "./kql/texts.ts";

const count = z.coerce.number().int().positive();

/**
 * Public queries are in the repositories `Azure/Azure-Sentinel`, `microsoft/Microsoft-365-Defender-Hunting-Queries`,
 * `microsoft/AzureMonitorCommunity`, `reprise99/Sentinel-Queries` and `Bert-JanP/Hunting-Queries-Detection-Rules`.
 */
export const benchmark = defineBenchmark({
  name: "query/kql-corpus",
  question:
    "How long does a query in KQL that others wrote take to be translated, warm; what share of them is, and why are the " +
    "others refused?",
  notMeasured:
    "The way to the process that translates, and back. The tables that a query names get the columns that it mentions. " +
    "This repository has the few queries of its documents: name folders of public ones.",
  options: z.strictObject({
    folders: z
      .string()
      .optional()
      .describe("of .kql files, Markdown and YAML, separated by commas; the documents of this repository unless given"),
    most: count.default(1_000).describe("queries, from all over the folders"),
    times: count.default(3).describe("each query in one round, of which the median counts"),
    reasons: count.default(40).describe("why queries are refused: how many of these are told, the most frequent first"),
  }),
  measures: {
    share: { unit: "of 1", better: "more", doc: "of the queries that is translated" },
    p50: { unit: "ms", better: "less", doc: "of a query" },
    p90: { unit: "ms", better: "less", doc: "of a query" },
    p99: { unit: "ms", better: "less", doc: "of a query" },
    max: { unit: "ms", better: "less", doc: "of a query" },
  },
  rounds: 3,
  open: async ({ folders, most, times, reasons }) => {
    const texts = spread(await textsIn(folders?.split(",") ?? [DOCUMENTS]), most);
    if (texts.length === 0) throw new Error(`there is no query in ${folders ?? DOCUMENTS}`);
    const queries = texts.map((text): Query => {
      const tables = shapesOf(text);
      return { text, tables, reason: reasonOf(text, tables) };
    });
    const translated = queries.filter(({ reason }) => reason === undefined);
    const all: Side = {
      name: "all",
      round: async () => ({ share: translated.length / queries.length, ...timesOf(queries, times) }),
    };
    const own: Side = { name: "translated", round: async () => timesOf(translated, times) };
    return { sides: translated.length === 0 ? [all] : [all, own], marks: () => refusalsOf(queries, reasons) };
  },
});

const DOCUMENTS = fileURLToPath(new URL("../../docs", import.meta.url));

/** `reason`: why it is refused. */
type Query = { text: string; tables: readonly KqlTable[]; reason: string | undefined };

/** So many, from all over the list. */
function spread<T>(list: readonly T[], most: number): T[] {
  const step = Math.max(1, list.length / most);
  return Array.from({ length: Math.min(list.length, most) }, (_, i) => list[Math.floor(i * step)] as T);
}

function translateOnce(text: string, tables: readonly KqlTable[]): void {
  namesOf(text);
  translate({ text, tables, tableNames: tables.map(({ name }) => name), nowNs: 1_700_000_000_000_000_000n, keys: [] });
}

/** Why it is refused; undefined where it is translated. */
function reasonOf(text: string, tables: readonly KqlTable[]): string | undefined {
  try {
    translateOnce(text, tables);
    return undefined;
  } catch (error) {
    if (error instanceof KqlRefused) return error.failure.message;
    return `NO REFUSAL: ${String(error)}`;
  }
}

function timesOf(queries: readonly Query[], times: number): Record<string, number> {
  const taken = queries.map((query) => median(Array.from({ length: times }, () => millis(query))));
  const sorted = Float64Array.from(taken).toSorted();
  const at = (share: number) => quantile(sorted, share);
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) };
}

function millis({ text, tables }: Query): number {
  const startedMs = systemClock.monotonicMs();
  reasonOf(text, tables);
  return systemClock.monotonicMs() - startedMs;
}

/** In sentences, the most frequent reason first. */
function refusalsOf(queries: readonly Query[], most: number): string[] {
  const counts = new Map<string, number>();
  for (const { reason } of queries) {
    if (reason === undefined) continue;
    const kind =
      reason.startsWith("the name '") && !reason.includes("function") ? reason.replaceAll(/'[^']*'/g, "…") : reason;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return [...counts]
    .toSorted((a, b) => b[1] - a[1])
    .slice(0, most)
    .map(([reason, number]) => `${number} of ${queries.length} are refused: ${reason}`);
}
