import { request } from "../../base/api.ts";
import { readLines } from "../../base/ndjson.ts";
import { parseExactly } from "../../base/exact-number.ts";
import type { FieldPath } from "./fields.ts";
import { readPage, type Page, type Row } from "./paging.ts";
import { aroundSql, facetSql, histogramSql, rowsSql, type Buckets, type Scope } from "./queries.ts";
import { prepared, type Sql } from "./sql.ts";

/** What the page asks the server, all of it: by plain queries, whose values are parameters. */

export type HistogramCount = { bucket: number; value?: string | null; is_other?: boolean; n: number };
export type FacetValue = { value: string | null; n: number };

export async function readHistogram(
  database: string,
  scope: Scope,
  by: string | undefined,
  buckets: Buckets,
  signal: AbortSignal,
): Promise<HistogramCount[]> {
  return (await ask(database, histogramSql(scope, by, buckets), signal)) as HistogramCount[];
}

export async function readFacet(
  database: string,
  scope: Scope,
  field: FieldPath,
  signal: AbortSignal,
): Promise<FacetValue[]> {
  return (await ask(database, facetSql(scope, field), signal)) as FacetValue[];
}

export function readRows(database: string, scope: Scope, upTo?: string, signal?: AbortSignal): Promise<Page> {
  return readPage((where, limit) => ask(database, rowsSql(scope, where, limit), signal), upTo);
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
