import type { Column } from "../../base/schema.ts";
import { offsetMs, type Zone } from "../../time/calendar.ts";
import type { Moments } from "../../time/time-range.ts";
import { textSql } from "./filters.ts";
import type { FieldPath } from "./fields.ts";
import { integer, joined, name, sql, type Sql } from "./sql.ts";

/** What the page is about: rows of a table in a range of time, under a condition. */
export type Scope = {
  table: string;
  columns: readonly Column[];
  moments: Moments;
  condition: Sql | undefined;
};

/** Rows that are read at once. */
export const PAGE_ROWS = 500;
/** Of rows with one and the same time, where they are more than a page. */
export const SAME_TIME_ROWS = 5_000;
export const FACET_VALUES = 10;
/** Values of the level that have a colour of their own. */
export const LEVEL_VALUES = 7;

const STEPS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000, 172_800_000, 604_800_000,
  1_209_600_000, 2_592_000_000, 7_776_000_000, 31_536_000_000, 157_680_000_000, 315_360_000_000,
] as const;
const MOST_BUCKETS = 60;

/** Buckets of a histogram: the number of the first and the last, and by how much they are moved for the zone's days. */
export type Buckets = { stepMs: number; shiftMs: number; first: number; last: number };

/** At most 60 buckets of a length that people count in. */
export function bucketsOf({ fromMs, toMs }: Moments, zone: Zone): Buckets {
  const stepMs = STEPS_MS.find((step) => (toMs - fromMs) / step <= MOST_BUCKETS - 1) ?? 315_360_000_000;
  const shiftMs = stepMs < 3_600_000 ? 0 : offsetMs(fromMs, zone);
  const number = (ms: number) => Math.floor((ms - shiftMs) / stepMs);
  return { stepMs, shiftMs, first: number(fromMs), last: number(toMs - 1) };
}

function timesSql({ fromMs, toMs }: Moments): Sql {
  return sql`"at" >= ${new Date(fromMs).toISOString()} AND "at" < ${new Date(toMs).toISOString()}`;
}

function whereSql({ moments, condition }: Scope, more: readonly Sql[] = []): Sql {
  return joined([timesSql(moments), ...(condition === undefined ? [] : [condition]), ...more], " AND ");
}

/** Rows for each bucket and value of `by`; values beyond the most frequent ones are one, `is_other`. */
export function histogramSql(scope: Scope, by: string | undefined, { stepMs, shiftMs }: Buckets): Sql {
  const bucket = sql`CAST(floor((epoch_ms("at") - (${integer(shiftMs)})) / ${integer(stepMs)}) AS BIGINT)`;
  const from = sql`FROM ${name(scope.table)} WHERE ${whereSql(scope)}`;
  if (by === undefined) return sql`SELECT ${bucket} AS bucket, count(*) AS n ${from} GROUP BY 1`;
  const value = textSql({ column: by, keys: [] }, scope.columns);
  const most = integer(LEVEL_VALUES);
  return sql`WITH counts AS (
  SELECT ${bucket} AS bucket, ${value} AS value, count(*) AS n ${from} GROUP BY 1, 2
), places AS (
  SELECT value, row_number() OVER (ORDER BY sum(n) DESC, value) AS place FROM counts GROUP BY value
)
SELECT bucket, CASE WHEN place <= ${most} THEN counts.value END AS value, place > ${most} AS is_other, sum(n) AS n
FROM counts JOIN places ON counts.value IS NOT DISTINCT FROM places.value
GROUP BY 1, 2, 3`;
}

/** The newest rows of the scope; older than a time, or exactly of one. */
export function rowsSql(scope: Scope, where: { upTo?: string; at?: string } = {}, limit = PAGE_ROWS): Sql {
  const { upTo, at } = where;
  const more = [
    ...(upTo === undefined ? [] : [sql`"at" <= ${upTo}`]),
    ...(at === undefined ? [] : [sql`"at" = ${at}`]),
  ];
  return sql`SELECT * FROM ${name(scope.table)} WHERE ${whereSql(scope, more)} ORDER BY "at" DESC LIMIT ${integer(limit)}`;
}

/** The most frequent values of a field, NULL among them. */
export function facetSql(scope: Scope, field: FieldPath): Sql {
  const value = textSql(field, scope.columns);
  return sql`SELECT ${value} AS value, count(*) AS n FROM ${name(scope.table)}
WHERE ${whereSql(scope)} GROUP BY 1 ORDER BY n DESC, value LIMIT ${integer(FACET_VALUES)}`;
}

/** What lies around one moment, whatever the range: the rows before it, of it, and after it. */
export function aroundSql(
  { table, condition }: Pick<Scope, "table" | "condition">,
  at: string,
  count: number,
): { before: Sql; same: Sql; after: Sql } {
  const and = condition === undefined ? sql`` : sql` AND ${condition}`;
  const rows = sql`SELECT * FROM ${name(table)} WHERE`;
  return {
    before: sql`${rows} "at" < ${at}${and} ORDER BY "at" DESC LIMIT ${integer(count)}`,
    same: sql`${rows} "at" = ${at}${and} LIMIT ${integer(SAME_TIME_ROWS)}`,
    after: sql`${rows} "at" > ${at}${and} ORDER BY "at" LIMIT ${integer(count)}`,
  };
}
