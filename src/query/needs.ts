import { foldName } from "../core/names.ts";
import { runSql } from "../io/duckdb/duckdb.ts";
import { isOutOfMemory, readDuckDbError } from "./duckdb-error.ts";
import type { NeededTable } from "./protocol.ts";
import { rewriteQuery } from "./rewrite.ts";
import { textOfExpression, type SqlContext } from "./sql-tree.ts";
import type { Bound, TableUse } from "./table-use.ts";
import { QueryRefused, type JsonObject } from "./tree.ts";

/** A table that the query needs, at one snapshot, with every mention of it. */
export type Need = { table: NeededTable; uses: TableUse[] };

/** Joins the mentions of one table at one snapshot, and evaluates snapshot numbers and bounds on `at`. */
export async function neededTables(context: SqlContext, mentions: readonly TableUse[]): Promise<Need[]> {
  const needs = new Map<string, Need>();
  let bounded = true;
  for (const use of mentions) {
    const version = await snapshotOf(context, use);
    const range = bounded ? await rangeOf(context, use.bounds) : undefined;
    if (range === undefined) bounded = false;
    const key = `${version ?? ""} ${foldName(use.name)}`;
    const known = needs.get(key);
    if (known !== undefined) {
      known.uses.push(use);
      known.table.range = unionOf(known.table.range, range ?? {});
      continue;
    }
    const table: NeededTable = { name: use.name, range: range ?? {} };
    if (version !== undefined) table.version = version;
    needs.set(key, { table, uses: [use] });
  }
  // An expression that failed took the transaction with it, and the moment that the other bounds were taken at.
  if (!bounded) for (const need of needs.values()) need.table.range = {};
  return [...needs.values()];
}

async function snapshotOf(context: SqlContext, use: TableUse): Promise<bigint | undefined> {
  if (use.travel === undefined) return undefined;
  if (use.travel.unit.toUpperCase() !== "VERSION") {
    throw new QueryRefused("AT (TIMESTAMP => …) is not supported; use AT (VERSION => snapshot)", use.position);
  }
  const text = await textOfExpression(context, use.travel.expression);
  const value = await evaluate(context, `SELECT TRY_CAST((${text}) AS BIGINT)`);
  const version = value?.[0] ?? undefined;
  if (version === undefined) {
    throw new QueryRefused("AT (VERSION => …) takes the number of a snapshot", use.position);
  }
  return BigInt(version);
}

/** Bounds as a range; undefined when one could not be evaluated. A bound of another type or NULL says nothing. */
async function rangeOf(context: SqlContext, bounds: readonly Bound[]): Promise<NeededTable["range"] | undefined> {
  const range: NeededTable["range"] = {};
  for (const { operator, expression } of bounds.slice(0, MAX_BOUNDS)) {
    const value = await instantOf(context, expression);
    if (value === undefined) return undefined;
    if (value === null) continue;
    if (operator !== "<" && operator !== "<=") {
      const min = operator === ">" ? value + 1n : value;
      if (range.minNs === undefined || min > range.minNs) range.minNs = min;
    }
    if (operator !== ">" && operator !== ">=") {
      const max = operator === "<" ? value - 1n : value;
      if (range.maxNs === undefined || max < range.maxNs) range.maxNs = max;
    }
  }
  return range;
}

/** Of a mention; each costs a small statement. */
const MAX_BOUNDS = 16;

const NO_TABLES = { timestampColumns: new Set<string>(), travelViews: new Map<number, string>() };

async function instantOf(context: SqlContext, expression: JsonObject): Promise<bigint | null | undefined> {
  const text = await textOfExpression(context, rewriteQuery(expression, NO_TABLES) ?? expression);
  const value = await evaluate(
    context,
    `SELECT epoch_ns(TRY_CAST(v AS TIMESTAMP_NS)), typeof(v) FROM (SELECT ${text}) AS bound(v)`,
  );
  if (value === undefined) return undefined;
  const [ns, type] = value;
  // A text that is not a plain constant may be compared as text.
  const isMoment = /^(?:TIMESTAMP|DATE)/.test(type ?? "") || (expression["class"] === "CONSTANT" && type === "VARCHAR");
  return isMoment && ns !== null && ns !== undefined ? BigInt(ns) : null;
}

/** Evaluates an expression free of columns; undefined when DuckDB cannot: the query itself will say why. */
async function evaluate({ duckdb, connection }: SqlContext, sql: string): Promise<(string | null)[] | undefined> {
  try {
    const [row] = await runSql(duckdb, connection, sql);
    return row;
  } catch (error) {
    if (isOutOfMemory(readDuckDbError(error))) throw error;
    await duckdb.query(connection, "ROLLBACK");
    await duckdb.query(connection, "BEGIN TRANSACTION");
    return undefined;
  }
}

function unionOf(a: NeededTable["range"], b: NeededTable["range"]): NeededTable["range"] {
  const union: NeededTable["range"] = {};
  if (a.minNs !== undefined && b.minNs !== undefined) union.minNs = a.minNs < b.minNs ? a.minNs : b.minNs;
  if (a.maxNs !== undefined && b.maxNs !== undefined) union.maxNs = a.maxNs > b.maxNs ? a.maxNs : b.maxNs;
  return union;
}
