import { systemClock } from "../../src/core/clock.ts";
import { KqlRefused, type KqlTable } from "../../src/query/kql/contract.ts";
import { namesOf, translate } from "../../src/query/kql/translate.ts";
import { readArguments } from "../support/arguments.ts";
import { median, quantile } from "../../src/capacity/quantile.ts";
import { machine, printTable, shown } from "../support/report.ts";
import { shapesOf } from "./kql/shapes.ts";
import { textsIn } from "./kql/texts.ts";

/**
 * Question: how long does a query of the world take to be translated, warm, and how many are?
 *
 *     node bench/query/kql-corpus.ts FOLDER… [--most 1000] [--rounds 3] [--reasons 40]
 *
 * The folders hold queries in `.kql` files, fences of Markdown or YAML: public ones are the repositories
 * `Azure/Azure-Sentinel`, `microsoft/Microsoft-365-Defender-Hunting-Queries`, `microsoft/AzureMonitorCommunity`,
 * `reprise99/Sentinel-Queries` and `Bert-JanP/Hunting-Queries-Detection-Rules`. None is in this one. The tables that a
 * query names get the columns that it mentions. It translates in its own process: the way there and back is not counted.
 */
const OPTIONS = {
  most: { type: "string", default: "1000" },
  rounds: { type: "string", default: "3" },
  reasons: { type: "string", default: "40" },
} as const;

type Query = { text: string; tables: readonly KqlTable[]; reason: string | undefined };

export async function main(args: readonly string[]): Promise<void> {
  const options = readArguments(args, OPTIONS);
  const { positionals: folders } = options;
  if (folders.length === 0) throw new Error("name a folder of queries");
  const texts = spread(await textsIn(folders), options.count("most"));
  const queries = texts.map((text): Query => {
    const tables = shapesOf(text);
    return { text, tables, reason: reasonOf(text, tables) };
  });
  console.log(machine());
  printTimes(queries, options.count("rounds"));
  printReasons(queries, options.count("reasons"));
}

/** So many, from all over the list. */
function spread<T>(list: readonly T[], most: number): T[] {
  const step = Math.max(1, list.length / most);
  return Array.from({ length: Math.min(list.length, most) }, (_, i) => list[Math.floor(i * step)] as T);
}

function translated(text: string, tables: readonly KqlTable[]): void {
  namesOf(text);
  translate({ text, tables, tableNames: tables.map(({ name }) => name), nowNs: 1_700_000_000_000_000_000n, keys: [] });
}

/** Why it is refused; undefined where it is translated. */
function reasonOf(text: string, tables: readonly KqlTable[]): string | undefined {
  try {
    translated(text, tables);
    return undefined;
  } catch (error) {
    if (error instanceof KqlRefused) return error.failure.message;
    return `NO REFUSAL: ${String(error)}`;
  }
}

/** The median of some rounds for each, and what of these is in the middle and at the end. */
function printTimes(queries: readonly Query[], rounds: number): void {
  const kinds = { translated: queries.filter(({ reason }) => reason === undefined), all: queries };
  const rows = Object.entries(kinds).map(([name, own]) => {
    const times = own.map(({ text, tables }) => median(Array.from({ length: rounds }, () => millis(text, tables))));
    const sorted = Float64Array.from(times).toSorted();
    const quantiles = [0.5, 0.9, 0.99, 1].map((q) => shown(quantile(sorted, q)));
    return [name, String(own.length)].concat(quantiles);
  });
  printTable(["queries", "number", "p50 ms", "p90 ms", "p99 ms", "most ms"], rows);
}

function millis(text: string, tables: readonly KqlTable[]): number {
  const startedMs = systemClock.monotonicMs();
  reasonOf(text, tables);
  return systemClock.monotonicMs() - startedMs;
}

function printReasons(queries: readonly Query[], most: number): void {
  const reasons = new Map<string, number>();
  for (const { reason } of queries) {
    if (reason === undefined) continue;
    const kind =
      reason.startsWith("the name '") && !reason.includes("function") ? reason.replaceAll(/'[^']*'/g, "…") : reason;
    reasons.set(kind, (reasons.get(kind) ?? 0) + 1);
  }
  const share = (number: number): string => `${((number / queries.length) * 100).toFixed(1)} %`;
  const refused = queries.filter(({ reason }) => reason !== undefined).length;
  console.log(
    `\n${queries.length - refused} of ${queries.length} are translated: ${share(queries.length - refused)}\n`,
  );
  const rows = [...reasons].toSorted((a, b) => b[1] - a[1]).slice(0, most);
  printTable(
    ["refused because", "number", "share"],
    rows.map(([reason, number]) => [reason, String(number), share(number)]),
  );
}

if (import.meta.main) await main(process.argv.slice(2));
