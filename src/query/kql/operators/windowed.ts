import { classOf, elementsOf, the, type SyntaxExpression, type SyntaxNode } from "../bind/library.ts";
import { Column, columnExpr, expr, raw, sql, type Expr, type Sql } from "../plan/expression.ts";
import type { OrderKey } from "../plan/plan.ts";
import { computed, type Rel } from "../plan/rel.ts";
import type { Scope, Translating } from "../scope.ts";
import { typeOfSymbol } from "../types/types.ts";
import { as, literal, num, str } from "../values/coerce.ts";

type CallNode = Kusto.Language.Syntax.FunctionCallExpression;

/** Columns of the rows' places. */
const PLACES = new WeakSet<Column>();

/**
 * Computes the functions over rows in order that stand in these expressions, innermost first, each in a column that
 * `scope.windows` then names. The rows are numbered first, so that all of them see one order, also among equals.
 */
export function windowed<S extends Scope & { rel: Rel }>(
  nodes: readonly SyntaxNode[],
  scope: S,
  translator: Translating,
): S {
  const calls = nodes.flatMap((node) => callsIn(node, scope));
  const [first] = calls;
  if (first === undefined) return scope;
  if (!scope.rel.isSerialized) {
    throw translator.refuse(`${nameOf(first)}() needs serialized rows: sort or serialize them first`, first);
  }
  const windows = new Map(scope.windows);
  const rows = new Rows(numbered(scope.rel));
  for (const call of calls) {
    const inner = { ...scope, rel: rows.rel, windows };
    const args = argumentsOf(call).map((node) => translator.scalar(node, inner));
    const type = typeOfSymbol(call.ResultType) ?? "dynamic";
    windows.set(call, rows.add(as(the(WINDOWS[nameOf(call)])(rows, args, type), type)));
  }
  return { ...scope, rel: rows.rel, windows };
}

function argumentsOf(call: CallNode): SyntaxExpression[] {
  return elementsOf<SyntaxExpression>(call.ArgumentList?.Expressions);
}

function nameOf(call: CallNode): string {
  return call.Name?.SimpleName ?? "";
}

function callsIn(node: SyntaxNode, scope: Scope): CallNode[] {
  const found: CallNode[] = [];
  for (let i = 0; i < node.ChildCount; i++) {
    const child = node.GetChild(i);
    if (child !== null && !child.IsToken) found.push(...callsIn(child as SyntaxNode, scope));
  }
  if (classOf(node) === "FunctionCallExpression") {
    const call = node as CallNode;
    if (WINDOWS[nameOf(call)] !== undefined && !scope.variables.has(nameOf(call))) found.push(call);
  }
  return found;
}

/** The rows with their places as their order. */
function numbered(rel: Rel): Rel {
  const [only] = rel.order;
  const by = only?.by.sql[0];
  if (rel.order.length === 1 && by instanceof Column && PLACES.has(by)) return rel;
  const value = expr("long", sql`row_number() OVER (${raw(orderBy(rel.order))})`, { nullable: false, isFixed: true });
  const { rel: made, columns } = computed(rel, [{ name: "place", value }]);
  const column = the(columns[0]);
  PLACES.add(column);
  return made.ordered([{ by: columnExpr(column), isDescending: false, nullsFirst: false }]);
}

function orderBy(order: readonly OrderKey[]): Sql {
  if (order.length === 0) return [];
  const keys = order.flatMap(({ by, isDescending, nullsFirst }, i) => [
    ...(i === 0 ? [] : [", "]),
    ...by.sql,
    ` ${isDescending ? "DESC" : "ASC"} NULLS ${nullsFirst ? "FIRST" : "LAST"}`,
  ]);
  return ["ORDER BY ", ...keys];
}

/** Rows to which columns are added. */
class Rows {
  rel: Rel;

  constructor(rel: Rel) {
    this.rel = rel;
  }

  /** A column that holds the value. */
  add(value: Expr): Column {
    const { rel, columns } = computed(this.rel, [{ name: "window", value }]);
    this.rel = rel;
    return the(columns[0]);
  }

  /** A window over the rows in order, within groups. */
  over(own: Sql, group?: Column, frame = ""): Sql {
    const partition = group === undefined ? [] : sql`PARTITION BY ${group} `;
    return sql`${raw(own)} OVER (${raw(partition)}${raw(orderBy(this.rel.order))}${frame})`;
  }

  /** The same as a column. */
  addOver(type: Expr["type"], own: Sql, group?: Column, frame = ""): Column {
    return this.add(expr(type, this.over(own, group, frame), { isFixed: true }));
  }

  /** Groups of rows that begin where the condition is true; none where there is no condition. */
  groups(restart: Expr | undefined): Column | undefined {
    if (restart === undefined) return undefined;
    return this.addOver("long", sql`count(*) FILTER (WHERE ${as(restart, "bool")})`, undefined, UNTIL_NOW);
  }
}

const UNTIL_NOW = " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW";
const ALL = " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING";

type Window = (rows: Rows, args: readonly Expr[], type: Expr["type"]) => Expr;

const WINDOWS: Readonly<Record<string, Window | undefined>> = {
  prev: (rows, args, type) => neighbour("lag", rows, args, type),
  next: (rows, args, type) => neighbour("lead", rows, args, type),
  row_number: (rows, [start, restart]) => {
    const first = start === undefined ? literal("long", 1n) : num(start, "long");
    const number = rows.over(["row_number()"], rows.groups(restart));
    return fixed("long", sql`${raw(number)} - 1 + ${first}`);
  },
  row_cumsum: cumulated,
  row_rank_dense: (rows, [term, restart]) => {
    const group = rows.groups(restart);
    const change = changes(rows, the(term), group);
    return fixed("long", rows.over(sql`count(*) FILTER (WHERE ${change})`, group, UNTIL_NOW));
  },
  row_rank_min: (rows, [term, restart]) => {
    const group = rows.groups(restart);
    const change = changes(rows, the(term), group);
    const number = rows.addOver("long", ["row_number()"], group);
    return fixed("long", rows.over(sql`max(${number}) FILTER (WHERE ${change})`, group, UNTIL_NOW));
  },
  row_window_session: sessions,
};

function fixed(type: Expr["type"], own: Sql): Expr {
  return expr(type, own, { isFixed: true });
}

/** `prev(value, offset, default)`, `next(…)`. */
function neighbour(name: "lag" | "lead", rows: Rows, args: readonly Expr[], type: Expr["type"]): Expr {
  const value = as(the(args[0]), type);
  const offset = args[1] === undefined ? literal("long", 1n) : num(args[1], "long");
  const otherwise = args[2] === undefined ? literal(type, null) : as(args[2], type);
  const own = type === "string" ? str(value) : value;
  return fixed(type, rows.over(sql`${[name]}(${own}, ${offset}, ${otherwise})`));
}

function cumulated(rows: Rows, [term, restart]: readonly Expr[], type: Expr["type"]): Expr {
  const sum = rows.over(sql`sum(${as(the(term), type)})`, rows.groups(restart), UNTIL_NOW);
  const own = sql`coalesce(${raw(sum)}, 0)`;
  if (type === "int") return fixed(type, sql`TRY_CAST(${own} AS INTEGER)`);
  return fixed(type, type === "long" || type === "timespan" ? sql`kql_wrap(${own})` : own);
}

/** Whether the value is another one than in the row before, or the row is the first of its group. */
function changes(rows: Rows, term: Expr, group: Column | undefined): Column {
  const value = rows.add(term.type === "string" ? str(term) : term);
  const before = rows.addOver(value.type, sql`lag(${value})`, group);
  const place = rows.addOver("long", ["row_number()"], group);
  return rows.add(expr("bool", sql`${place} = 1 OR ${value} IS DISTINCT FROM ${before}`, { nullable: false }));
}

/**
 * The beginning of the session of each row. Sessions end certainly where rows are far apart, or where `restart` says so;
 * only what lies between is gone through one by one, where it is long enough for more than one session.
 */
function sessions(rows: Rows, [value, fromFirst, between, restart]: readonly Expr[]): Expr {
  const time = rows.add(expr("long", sql`epoch_ns(${as(the(value), "datetime")})`));
  const before = rows.addOver("long", sql`lag(${time})`);
  const apart = sql`CAST(${time} AS HUGEINT) - ${before} >= CAST(${as(the(between), "timespan")} AS HUGEINT) * 100`;
  const asked = restart === undefined ? [] : sql` OR coalesce(${as(restart, "bool")}, false)`;
  const isBreak = sql`${time} IS NULL OR ${before} IS NULL OR ${raw(apart)}${raw(asked)}`;
  const group = rows.groups(rowValue(rows, expr("bool", isBreak, { nullable: false })));
  const first = rows.addOver("long", sql`first_value(${time})`, group, ALL);
  const last = rows.addOver("long", sql`max(${time})`, group, ALL);
  const longest = sql`CAST(${as(the(fromFirst), "timespan")} AS HUGEINT) * 100`;
  const isLong = rowValue(rows, expr("bool", sql`CAST(${last} AS HUGEINT) - ${first} >= ${longest}`));
  const times = rows.over(sql`list(CAST(${time} AS HUGEINT)) FILTER (WHERE ${isLong})`, group, UNTIL_NOW);
  const gone = rows.add(expr("dynamic", times, { isFixed: true }));
  return expr(
    "datetime",
    sql`make_timestamp_ns(CASE WHEN ${isLong} THEN kql_session(${gone}, ${longest}) ELSE ${first} END)`,
  );
}

function rowValue(rows: Rows, value: Expr): Expr {
  return columnExpr(rows.add(value));
}
