import type { Column } from "../../base/schema.ts";
import type { Moments } from "../../time/time-range.ts";
import { integer, joined, name, sql, type Sql } from "./sql.ts";

/** What the page is about: rows of a table in a range of time, under a condition. */
export type Scope = {
  table: string;
  columns: readonly Column[];
  moments: Moments;
  condition: Sql | undefined;
  /** How many times it was asked for anew. */
  run: number;
};

/** Rows that are read at once. */
export const PAGE_ROWS = 500;
/** Of rows with one and the same time, where they are more than a page. */
export const SAME_TIME_ROWS = 5_000;

function timesSql({ fromMs, toMs }: Moments): Sql {
  return sql`"at" >= ${new Date(fromMs).toISOString()} AND "at" < ${new Date(toMs).toISOString()}`;
}

function whereSql({ moments, condition }: Scope, more: readonly Sql[] = []): Sql {
  return joined([timesSql(moments), ...(condition === undefined ? [] : [condition]), ...more], " AND ");
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
