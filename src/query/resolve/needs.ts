import { foldName } from "../../core/names.ts";
import { Evaluator } from "./evaluator.ts";
import { operandsOf, predicateOf, type Constant, type Operand, type Predicate } from "./predicates.ts";
import type { CheckedQuery } from "./check.ts";
import type { SqlContext } from "../parse/sql-tree.ts";
import { QueryRefused } from "../parse/tree.ts";
import type { SystemTableName } from "../system-tables/system-tables.ts";
import type { Listing } from "./listings.ts";
import type { Bound, TableUse } from "./table-use.ts";
import type { Top } from "./top.ts";

/** What a query needs of the catalog, as found in its process: names that nobody has looked up yet. */
export type Needs = {
  tables: readonly NeededTable[];
  listings: readonly Listing[];
  system: readonly SystemTableName[];
  /** The snapshot of `system.extents`, where it is not the newest. */
  extentsTravel?: Travel | undefined;
};

export type NeededTable = {
  name: string;
  /** Where it is another one than the query's own. */
  database?: string;
  /** What `AT (VERSION => n)` or `AT (TIMESTAMP => moment)` asks for; the newest snapshot without. */
  travel?: Travel;
  /** A row matters when it matters to one of them. */
  mentions: readonly Mention[];
  /** Names of columns that the query can touch, folded (and other names); absent when it can touch all. */
  columns?: readonly string[];
  /** A common table expression that may have been meant, where there is no such table. */
  cte?: string;
  /** Where the query first mentions it. */
  line?: number;
  column?: number;
};

export type Travel = { version: bigint } | { atNs: bigint };

/** What every row satisfies that matters to one mention of a table. */
export type Mention = {
  range: { minNs?: bigint; maxNs?: bigint };
  predicates: readonly Predicate[];
  /** So many rows of the range matter, those with the newest or oldest `at`. */
  top?: Top;
};

/** A table that the query needs, at one snapshot, with every mention of it. */
export type Need = { table: NeededTable; uses: TableUse[] };

/** Of one query; each costs a small statement. */
const MAX_EVALUATIONS = 64;

/** Joins the mentions of one table at one snapshot, and evaluates snapshots, bounds on `at` and other constants. */
export async function neededTables(
  context: SqlContext,
  { tables, names }: Pick<CheckedQuery, "tables" | "names">,
  database: string,
): Promise<Need[]> {
  const evaluator = new Evaluator(context, MAX_EVALUATIONS);
  const groups = new Map<string, { travel: Travel | undefined; uses: TableUse[] }>();
  for (const use of tables) {
    const travel = await travelOf(evaluator, use);
    const key = JSON.stringify([travelKey(travel), databaseOf(use, database) ?? "", foldName(use.name)]);
    const group = groups.get(key) ?? { travel, uses: [] };
    group.uses.push(use);
    groups.set(key, group);
  }
  const values = await evaluateAll(evaluator, tables);
  return [...groups.values()].map(({ travel, uses }) => {
    const [first] = uses;
    const table: NeededTable = { name: first?.name ?? "", mentions: uses.map((use) => mentionOf(use, values)) };
    if (first !== undefined && databaseOf(first, database) !== undefined) table.database = first.schema;
    if (travel !== undefined) table.travel = travel;
    if (!uses.some((use) => use.needsAllColumns)) table.columns = [...names];
    return { table, uses };
  });
}

/** The folded name of the database that the mention says, where it is not the query's own. */
function databaseOf({ schema }: TableUse, own: string): string | undefined {
  const folded = foldName(schema);
  return folded === "" || folded === foldName(own) ? undefined : folded;
}

export function travelKey(travel: Travel | undefined): string {
  if (travel === undefined) return "";
  return "version" in travel ? `version ${travel.version}` : `at ${travel.atNs}`;
}

export async function travelOf(evaluator: Evaluator, use: TableUse): Promise<Travel | undefined> {
  if (use.travel === undefined) return undefined;
  const { unit, expression } = use.travel;
  if (unit.toUpperCase() === "VERSION") {
    const version = await evaluator.bigint(expression);
    if (version !== undefined) return { version };
    throw new QueryRefused("AT (VERSION => …) takes the number of a snapshot", use.position);
  }
  const moment = await evaluator.moment(expression);
  if (moment !== undefined) return { atNs: moment };
  throw new QueryRefused("AT (TIMESTAMP => …) takes a moment, such as TIMESTAMP '2026-01-31 12:00:00'", use.position);
}

type Values = {
  bounds: ReadonlyMap<Bound, bigint>;
  operands: ReadonlyMap<Operand, Constant>;
};

const NONE: Values = { bounds: new Map(), operands: new Map() };

/** The values of all expressions, or of none: one that failed took the moment with it that `now()` meant. */
async function evaluateAll(evaluator: Evaluator, uses: readonly TableUse[]): Promise<Values> {
  const bounds = new Map<Bound, bigint>();
  const operands = new Map<Operand, Constant>();
  for (const bound of uses.flatMap((use) => use.bounds)) {
    const value = await evaluator.moment(bound.expression);
    if (value !== undefined) bounds.set(bound, value);
  }
  for (const operand of uses.flatMap((use) => use.conditions.flatMap(operandsOf))) {
    const value = await evaluator.constant(operand);
    if (value !== undefined) operands.set(operand, value);
  }
  return evaluator.hasFailed ? NONE : { bounds, operands };
}

function mentionOf(use: TableUse, { bounds, operands }: Values): Mention {
  const valueOf = (operand: Operand): Constant | undefined =>
    operands.get(operand) ?? (operand.kind === "expression" ? undefined : operand);
  const predicates = use.conditions.flatMap((condition) => predicateOf(condition, valueOf) ?? []);
  const mention: Mention = { range: rangeOf(use.bounds, bounds), predicates };
  // With a bound whose value is not known here, the range is wider than what the query looks at.
  if (use.top !== undefined && use.bounds.every((bound) => bounds.has(bound))) mention.top = use.top;
  return mention;
}

/** Bounds as a range. A bound of another type or NULL says nothing. */
function rangeOf(bounds: readonly Bound[], values: ReadonlyMap<Bound, bigint>): Mention["range"] {
  const range: Mention["range"] = {};
  for (const bound of bounds) {
    const { operator } = bound;
    const value = values.get(bound);
    if (value === undefined) continue;
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
