import { databaseNotFound } from "../../auth/name-not-found.ts";
import { mayUseDatabase } from "../../auth/caller.ts";
import type { Catalog, TableRecord } from "../../catalog/catalog.ts";
import { EngineError } from "../../core/errors.ts";
import { nsToRfc3339 } from "../../format/time-text.ts";
import type { QueryRequest, QuerySample, QueryService } from "../contract/query.ts";
import type { TableShape } from "../contract/tables.ts";
import { kqlCondition, type ExploreSelection } from "../parse/row-condition.ts";
import { tableAt } from "../prune/plan.ts";
import { tableNotFound } from "../resolve/not-found.ts";
import { bucketsOf, type Buckets } from "./buckets.ts";
import {
  BY_PLACE,
  exploreText,
  MAX_VALUE_CHARS,
  type Counted,
  type ExploreKind,
  type ExploreRow,
  type Plan,
} from "./explore-query.ts";
import { fieldNamed, timeColumn, type Field, type FieldName } from "./fields.ts";

/**
 * What a page that explores one table shows beside its rows, in one query: how many rows there are in a range of time,
 * how they are spread over it, the most frequent values of some fields, and how many rows have which fields.
 *
 * All counts are exact. Where the budget of bytes from the object store is too small for all extents that could matter,
 * some are read as far as the budget goes, in an order that has nothing to do with what is in them, and the answer says
 * how many rows that were of how many: its counts are those of what was read, never scaled up, since a guess would look
 * like a count, and rows of one extent are neighbours in time, so a scaled histogram would be wrong in every bar. A query
 * that takes too long ends with `budget_exceeded`: nobody knows beforehand what part would have been quick enough, and a
 * second query would take its time on top.
 */
export type Exploration = Pick<QueryRequest, "caller" | "address" | "database" | "budget" | "requestId" | "signal"> & {
  table: string;
  /** The end is exclusive. */
  fromNs: bigint;
  toNs: bigint;
  where?: string | undefined;
  language: "sql" | "kql";
  version?: number | undefined;
  histogram?: { buckets: number; by?: FieldName | undefined; values: number } | undefined;
  facets: readonly { field: FieldName; values: number }[];
  fields: readonly FieldName[];
};

/** Values are texts, so that all digits of integers and times survive, and NaN; `cut` where they are longer than sent. */
export type ValueCount = { value: string | null; rows: number; cut?: true };

export type Explored = {
  rows: number;
  /** The newest snapshot when the query began, or the one that was asked for. */
  snapshot: number;
  sample: QuerySample | undefined;
  histogram:
    | {
        stepNs: bigint;
        by: { field: FieldName; type: string; distinct: number; series: readonly ValueCount[] } | undefined;
        /** All, empty ones included; `series` are the rows of each of those of `by`, in their order. */
        buckets: readonly { fromNs: bigint; rows: number; series: readonly number[] }[];
      }
    | undefined;
  facets: readonly {
    field: FieldName;
    type: string;
    rows: number;
    nulls: number;
    distinct: number;
    values: readonly ValueCount[];
  }[];
  fields: readonly {
    field: FieldName;
    type: string;
    rows: number;
    /** Of dynamic ones: the most frequent keys of its objects, and how many keys there are. */
    keys: { distinct: number; values: readonly ValueCount[] } | undefined;
  }[];
};

export type ExploreDeps = { query: Pick<QueryService, "run">; catalog: Catalog };

/** Rejects with `EngineError`, as a query of the table does. */
export async function explore({ query, catalog }: ExploreDeps, request: Exploration): Promise<Explored> {
  const shape = await shapeOf(catalog, request);
  const plan = planOf(request, shape);
  const { where = "true", language, caller, address, database, budget, requestId, signal } = request;
  const isTranslated = language === "kql";
  const selection: ExploreSelection = { table: shape.name, rows: "explored", query: exploreText(plan), isTranslated };
  const asked = {
    caller,
    database,
    requestId,
    signal,
    ...(address !== undefined && { address }),
    ...(budget && { budget }),
  };
  const text = isTranslated ? kqlCondition(where, shape.name) : where;
  const { body, snapshot, sample } = await query
    .run({ ...asked, text, language, exploring: { selection, shape } })
    .catch((error: unknown) => {
      throw isTranslated ? withoutFirstLine(error) : error;
    });
  const rows = await rowsIn(body);
  return exploredOf(plan, rows, { snapshot: request.version ?? snapshot, sample });
}

/** The table as it is, or as it was at the version. To who may not use the database it does not exist. */
async function shapeOf(catalog: Catalog, request: Exploration): Promise<TableShape> {
  const { caller, database, table: name, version } = request;
  const mayUse = mayUseDatabase(caller, database);
  const resolution = mayUse ? await catalog.resolve(database, [name]) : undefined;
  if (resolution === undefined) {
    throw await databaseNotFound(catalog, { caller, database }, { ...(!mayUse && { refused: true }) });
  }
  const [table] = resolution.tables;
  if (table === undefined) throw await tableNotFound(catalog, database, { name, mentions: [] });
  const shown: TableRecord = version === undefined ? table : tableAt(table, version);
  return { name: shown.name, columns: shown.columns.map((column) => ({ name: column.name, type: column.type })) };
}

function planOf(request: Exploration, shape: TableShape): Plan {
  const { fromNs, toNs, version, histogram, facets, fields } = request;
  if (fromNs >= toNs) throw new EngineError("invalid_parameter", "from must be before to");
  const counted = (field: FieldName, values: number): Counted => ({
    field: countable(fieldNamed(shape, field)),
    values,
  });
  const plan: Plan = {
    table: shape.name,
    version,
    time: timeColumn(shape),
    fromNs,
    toNs,
    buckets: histogram === undefined ? undefined : bucketsOf({ fromNs, toNs }, histogram.buckets),
    by: histogram?.by === undefined ? undefined : counted(histogram.by, histogram.values),
    facets: facets.map(({ field, values }) => counted(field, values)),
    fields: fields.map((name) => fieldNamed(shape, name)),
  };
  if (plan.fields.filter(({ kind }) => kind === "dynamic").length > MAX_DYNAMIC_FIELDS) {
    throw new EngineError("invalid_parameter", `fields may name at most ${MAX_DYNAMIC_FIELDS} dynamic ones`);
  }
  return plan;
}

/** Each is a grouping of its own. */
export const MAX_DYNAMIC_FIELDS = 20;

function countable(field: Field): Field {
  if (field.kind !== "vector") return field;
  throw new EngineError(
    "invalid_parameter",
    `${JSON.stringify(field.column)} is a vector, whose values are not counted`,
  );
}

/** The condition begins in the second line of the text that is translated. */
function withoutFirstLine(error: unknown): unknown {
  if (!(error instanceof EngineError) || error.details.line === undefined) return error;
  return new EngineError(error.code, error.message, { ...error.details, line: Math.max(1, error.details.line - 1) });
}

async function rowsIn(body: AsyncIterable<Uint8Array>): Promise<ExploreRow[]> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  const lines = Buffer.concat(chunks).toString("utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as ExploreRow);
}

function exploredOf(
  plan: Plan,
  all: readonly ExploreRow[],
  { snapshot, sample }: Pick<Explored, "snapshot" | "sample">,
): Explored {
  const groups = Map.groupBy(all, ({ kind, i }) => `${kind} ${i}`);
  const of = (kind: ExploreKind, i = 0): readonly ExploreRow[] => groups.get(`${kind} ${i}`) ?? [];
  const count = (kind: ExploreKind, i = 0): number => of(kind, i)[0]?.n ?? 0;
  const rows = count("rows");
  const valuesOf = ({ field }: Counted, i: number): ValueCount[] =>
    byRows(of("value", i)).map((row) => valueOf(row, field));
  return {
    rows,
    snapshot,
    sample,
    histogram: plan.buckets && histogramOf(plan.buckets, plan.by, { of, count }),
    facets: plan.facets.map((facet, i) => {
      const { name, type } = facet.field;
      const nulls = count("nulls", i);
      const distinct = count("values", i);
      return { field: name, type, rows: rows - nulls, nulls, distinct, values: valuesOf(facet, i) };
    }),
    fields: plan.fields.map(({ name, type, kind }, i) => {
      const values = byRows(of("key", i)).map((row) => valueOf(row));
      const keys = kind === "dynamic" ? { distinct: count("keys", i), values } : undefined;
      return { field: name, type, rows: count("field", i), keys };
    }),
  };
}

/** The most frequent first; those that are equally so by their texts, with NULL at the end. */
function byRows(rows: readonly ExploreRow[]): ExploreRow[] {
  return rows.toSorted((a, b) => b.n - a.n || compare(a.value, b.value));
}

function compare(a: string | null, b: string | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return a < b ? -1 : Number(a > b);
}

type Counts = {
  of: (kind: ExploreKind, i?: number) => readonly ExploreRow[];
  count: (kind: ExploreKind, i?: number) => number;
};

function histogramOf(
  { firstNs, stepNs, count: length }: Buckets,
  by: Counted | undefined,
  { of, count }: Counts,
): NonNullable<Explored["histogram"]> {
  const top = byRows(of("value", BY_PLACE));
  const places = new Map(top.map(({ value }, i) => [value, i] as const).toReversed());
  const buckets = Array.from({ length }, (_, i) => ({
    fromNs: firstNs + BigInt(i) * stepNs,
    rows: 0,
    series: top.map(() => 0),
  }));
  for (const { bucket, n } of of("bucket")) {
    const target = buckets[bucket ?? -1];
    if (target !== undefined) target.rows = n;
  }
  for (const { bucket, value, n } of of("series")) {
    const place = places.get(value);
    const target = buckets[bucket ?? -1];
    // Values that are cut may be the same: their rows add up, at the first of them.
    if (target !== undefined && place !== undefined) target.series[place] = (target.series[place] ?? 0) + n;
  }
  if (by === undefined) return { stepNs, by: undefined, buckets };
  const { name: field, type } = by.field;
  const series = top.map((row) => valueOf(row, by.field));
  return { stepNs, by: { field, type, distinct: count("values", BY_PLACE), series }, buckets };
}

function valueOf({ value, n }: ExploreRow, field?: Field): ValueCount {
  if (value === null) return { value: null, rows: n };
  if (field?.kind === "timestamp") return { value: nsToRfc3339(BigInt(value)), rows: n };
  const characters = Array.from(value);
  if (characters.length <= MAX_VALUE_CHARS) return { value, rows: n };
  return { value: characters.slice(0, MAX_VALUE_CHARS).join(""), rows: n, cut: true };
}
