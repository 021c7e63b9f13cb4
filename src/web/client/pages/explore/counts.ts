import { requestJson } from "../../base/api.ts";
import { countedFields, fieldProblem, pathOf, type FieldPath } from "./fields.ts";
import { placedInCondition } from "./place.ts";
import type { Scope } from "./queries.ts";
import { written } from "./sql.ts";

/** What the page shows beside the rows, by one request: `POST /v1/explore`. */

/** A value as text, so that it has all its digits; null where rows have none. */
export type ValueCount = {
  value: string | null;
  rows: number;
  /** The value is longer than what was sent of it. */
  cut?: true;
};

/** What was read where the budget did not allow for everything. Counts are lower bounds then, and not scaled up. */
export type Sample = { rows_read: number; rows_total: number; extents_read: number; extents_total: number };

export type HistogramCounts = {
  /** A number: steps are round, and draw and name the bars only. The exact edges are texts. */
  step_ns: number;
  by: { distinct: number; series: ValueCount[] } | null;
  /** `by` has the rows of each series; the rest of `rows` are those of other values. */
  buckets: { from: string; rows: number; by?: number[] }[];
};

export type FacetCounts = { field: string[]; rows: number; nulls: number; distinct: number; values: ValueCount[] };

export type FieldCounts = {
  field: string[];
  /** Rows that have it. */
  rows: number;
  /** Of dynamic ones: the most frequent keys of the objects in it, and how many keys there are. */
  keys?: { distinct: number; values: { key: string; rows: number }[] };
};

export type Counts = {
  rows: number;
  sampled: Sample | null;
  histogram: HistogramCounts;
  facets: FacetCounts[];
  fields: FieldCounts[];
};

/** What is counted of a scope: the column that splits the bars, the open facets, and the open keys of dynamic columns. */
export type Counted = { by: string | undefined; facets: readonly FieldPath[]; open: readonly FieldPath[] };

export const MOST_BUCKETS = 60;
export const FACET_VALUES = 10;
/** Values of the level that have a colour of their own. */
export const LEVEL_VALUES = 7;

/** The body of the request. What the table cannot count is left out: it would fail everything else. */
export function countsRequest(database: string, scope: Scope, { by, facets, open }: Counted): Record<string, unknown> {
  const { table, columns, moments, condition } = scope;
  const isCountable = (field: FieldPath): boolean => fieldProblem(field, columns) === undefined;
  return {
    database,
    table,
    from: new Date(moments.fromMs).toISOString(),
    to: new Date(moments.toMs).toISOString(),
    ...(condition !== undefined && { where: written(condition), language: "sql" }),
    histogram: { buckets: MOST_BUCKETS, ...(by !== undefined && { by: [by], values: LEVEL_VALUES }) },
    facets: facets.filter(isCountable).map((field) => ({ field: pathOf(field), values: FACET_VALUES })),
    fields: countedFields(columns, open).map(pathOf),
  };
}

/** Rejects with an `ApiError`, whose place is one in the condition that the user typed. */
export async function readCounts(body: Record<string, unknown>, signal: AbortSignal): Promise<Counts> {
  return await placedInCondition(requestJson<Counts>("/v1/explore", { json: body, signal }));
}
