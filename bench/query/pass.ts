import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { median } from "../../src/capacity/quantile.ts";
import type { Measure } from "../suite/benchmark.ts";
import { queryData, type DataFacts, type QueryData } from "./data.ts";
import { benchQueries, type BenchQuery } from "./queries.ts";
import { mustBeSame } from "./same-rows.ts";
import type { Row } from "./side.ts";

/** A pass over the queries: what one round of a side is, in the benchmarks that ask all of them. */

/** Stands in for the data's where only the names of queries are wanted. */
export const NO_FACTS: DataFacts = { rows: 1, traceId: "", window: { from: "", to: "" } };
const NAMES = benchQueries(NO_FACTS).map(({ name }) => name);

const count = z.coerce.number().int().positive();

export const PASS_OPTIONS = {
  rows: count.default(1_000_000).describe("of events"),
  times: count.default(5).describe("each query in one round, of which the median counts; one for first touches"),
  only: z
    .string()
    .refine((text) => NAMES.some((name) => name.includes(text)), `no query has it in its name: ${NAMES.join("; ")}`)
    .optional()
    .describe("takes the queries that have it in their names"),
  each: z
    .stringbool()
    .default(true)
    .describe("false leaves out what single queries take, whose noise then does not count either"),
  keep: z.string().optional().describe("a folder that keeps data, extents and tables for the next run"),
};
export type PassOptions = z.output<z.ZodObject<typeof PASS_OPTIONS>>;

export const PASS_MEASURES: Readonly<Record<string, Measure>> = {
  all: { unit: "ms", better: "less", doc: "a query: geometric mean of all" },
  narrow: { unit: "ms", better: "less", doc: "the same of those that look for little, or in a narrow window of time" },
  scans: { unit: "ms", better: "less", doc: "the same of the others" },
  ...Object.fromEntries(
    NAMES.map((name): [string, Measure] => [measureOf(name), { unit: "ms", better: "less", doc: `the query ${name}` }]),
  ),
};

/** The name of a query as a measure. */
export function measureOf(name: string): string {
  return name.toLowerCase().replaceAll(/\W+/g, "-");
}

export type PassData = { folder: string; data: QueryData; queries: BenchQuery[] };

/** Makes the data, in the folder that is kept where there is one. */
export async function passData({ rows, only, keep }: PassOptions, folder: string): Promise<PassData> {
  const own = keep ?? folder;
  await mkdir(own, { recursive: true });
  const data = await queryData(join(own, `data-${rows}`), rows);
  const queries = benchQueries(data.facts).filter(({ name }) => only === undefined || name.includes(only));
  return { folder: own, data, queries };
}

/** Times every query, one after the other: the median of each, by the name of its measure. */
export async function timesOf<Q extends { name: string }>(
  queries: readonly Q[],
  times: number,
  timeOf: (query: Q) => Promise<number>,
): Promise<Record<string, number>> {
  const taken: Record<string, number> = {};
  for (const query of queries) {
    const ms: number[] = [];
    for (let i = 0; i < times; i++) ms.push(await timeOf(query));
    taken[measureOf(query.name)] = median(ms);
  }
  return taken;
}

/** The same as values of `PASS_MEASURES`. */
export async function passOver(
  queries: readonly BenchQuery[],
  { times, each }: { times: number; each: boolean },
  timeOf: (query: BenchQuery) => Promise<number>,
): Promise<Record<string, number>> {
  const taken = await timesOf(queries, times, timeOf);
  const meanOf = (measure: string, own: readonly BenchQuery[]) =>
    own.length === 0 ? {} : { [measure]: geometricMean(own.map(({ name }) => taken[measureOf(name)] ?? Number.NaN)) };
  return {
    ...meanOf("all", queries),
    ...meanOf(
      "narrow",
      queries.filter(({ kind }) => kind !== "scan"),
    ),
    ...meanOf(
      "scans",
      queries.filter(({ kind }) => kind === "scan"),
    ),
    ...(each && taken),
  };
}

export function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

/**
 * Compares the rows of all sides with those of the first that is asked, and resolves to how many there are by query.
 * Rejects where they differ.
 */
export function rowComparison(
  queries: readonly BenchQuery[],
): (name: string, rowsOf: (query: BenchQuery) => Promise<Row[]>) => Promise<Record<string, number>> {
  const first = new Map<string, { name: string; rows: Row[] }>();
  return async (name, rowsOf) => {
    const counts: Record<string, number> = {};
    for (const query of queries) {
      const actual = await rowsOf(query);
      counts[query.name] = actual.length;
      const expected = first.get(query.name);
      if (expected === undefined) first.set(query.name, { name, rows: actual });
      else {
        const what = `${query.name}, ${name} against ${expected.name}`;
        mustBeSame(what, { actual, expected: expected.rows, ordered: query.ordered });
      }
    }
    return counts;
  };
}
