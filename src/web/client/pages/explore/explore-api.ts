import { request } from "../../base/api.ts";
import { readLines } from "../../base/ndjson.ts";
import { parseExactly } from "../../base/exact-number.ts";
import { readPage, type Page, type Row } from "./paging.ts";
import { placedInCondition } from "./place.ts";
import { aroundSql, rowsSql, type Scope } from "./queries.ts";
import { prepared, type Sql } from "./sql.ts";

/** The rows that the page asks for: by plain queries, whose values are parameters. */

export function readRows(database: string, scope: Scope, upTo?: string, signal?: AbortSignal): Promise<Page> {
  return readPage((where, limit) => placedInCondition(ask(database, rowsSql(scope, where, limit), signal)), upTo);
}

/** Oldest first, as they were written. */
export type Around = { before: readonly Row[]; same: readonly Row[]; after: readonly Row[] };

export async function readAround(
  database: string,
  scope: Pick<Scope, "table" | "condition">,
  at: string,
  count: number,
  signal: AbortSignal,
): Promise<Around> {
  const texts = aroundSql(scope, at, count);
  const [before, same, after] = await Promise.all(
    [texts.before, texts.same, texts.after].map((text) => ask(database, text, signal)),
  );
  return { before: (before ?? []).toReversed(), same: same ?? [], after: after ?? [] };
}

/** In JSON: headers, the other way for parameters, have no place for most letters of the world. */
async function ask(database: string, text: Sql, signal: AbortSignal | undefined): Promise<Row[]> {
  const response = await request("/v1/query", {
    json: prepared(text),
    headers: { Accept: "application/x-ndjson", "X-Database": database },
    signal,
  });
  const rows: Row[] = [];
  if (response.body === null) return rows;
  for await (const lines of readLines(response.body)) for (const line of lines) rows.push(parseExactly(line) as Row);
  return rows;
}
