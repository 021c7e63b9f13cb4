import { columnExpr, commaList, expr, raw, separated, sql, Subquery, type Expr } from "../plan/expression.ts";
import { computed, type Rel } from "../plan/rel.ts";
import { as, literal, str } from "../values/coerce.ts";
import { alike, compared } from "./operators.ts";
import { hasTerm } from "./string-operators.ts";

/** What stands in the parentheses of `in (…)`: values, of which arrays count by their members, or the first column of rows. */
export type List = { values: readonly Expr[] } | { rows: Rel };

/** `in`, `in~` and their negations. The library calls the one that folds case `InCs`. A null is in no list. */
export function isIn(operator: string, value: Expr, list: List): Expr {
  const isNot = operator.startsWith("Not");
  const isFolded = operator.endsWith("Cs");
  const found = "rows" in list ? inRows(value, list.rows, isFolded) : inValues(value, list.values, isFolded);
  return isNot ? expr("bool", sql`NOT ${found}`, { nullable: false }) : found;
}

function inRows(value: Expr, rows: Rel, isFolded: boolean): Expr {
  const [first] = rows.columns;
  if (first === undefined) return literal("bool", false);
  const own = columnExpr(first.column);
  // A text is compared as one, whatever the rows have.
  const isText = value.type === "string" || own.type === "string";
  const folded = isFolded && value.type === "string";
  const [member, element] = isText ? [str(value), str(own)] : [as(value, own.type), own];
  const text = folded ? sql`lower(${member})` : sql`${member}`;
  const item = folded ? expr("string", sql`lower(${element})`) : element;
  const query = oneColumn(rows, item);
  return expr("bool", sql`coalesce(${text} IN (${[query]}), false)`, { nullable: false });
}

/** A query that gives this expression over the rows. */
function oneColumn(rows: Rel, value: Expr): Subquery {
  const { rel, columns } = computed(rows, [{ name: "value", value }]);
  const [column] = columns;
  if (column === undefined) throw new Error("a column was computed and is not there");
  return new Subquery(rel.plan, column);
}

function inValues(value: Expr, values: readonly Expr[], isFolded: boolean): Expr {
  const arrays = values.filter(({ type }) => type === "dynamic");
  if (value.type === "string" || value.type === "dynamic") {
    const folded = isFolded && value.type === "string";
    const text = folded ? sql`lower(${str(value)})` : sql`${str(value)}`;
    const items = values
      .filter((one) => !arrays.includes(one))
      .map((one) => (folded ? sql`lower(${str(one)})` : str(one).sql));
    const tests = [
      ...(items.length === 0 ? [] : [sql`${text} IN (${commaList(items)})`]),
      ...arrays.map((array) => sql`kql_in_array(${text}, ${array}, ${folded ? "true" : "false"})`),
    ];
    const isBare =
      arrays.length === 0 && !folded && values.every(({ constant }) => typeof constant === "string" && constant !== "");
    return any(tests, isBare ? sql`${value} IN (${commaList(items)})` : undefined);
  }
  const items = values.filter((one) => !arrays.includes(one)).map((one) => alike(value, one)[1].sql);
  const tests = [
    ...(items.length === 0 ? [] : [sql`${value} IN (${commaList(items)})`]),
    ...arrays.map((array) => sql`kql_in_array(${str(as(value, "string"))}, ${array}, false)`),
  ];
  return any(tests, arrays.length === 0 && items.length > 0 ? tests[0] : undefined);
}

function any(tests: readonly ReturnType<typeof sql>[], filter: ReturnType<typeof sql> | undefined): Expr {
  if (tests.length === 0) return literal("bool", false);
  const own = separated(
    " OR ",
    tests.map((one) => sql`coalesce(${raw(one)}, false)`),
  ).raw;
  return expr("bool", own, { nullable: false, ...(filter !== undefined && { filter }) });
}

/** `has_any` and `has_all`. */
export function hasListOf(operator: "HasAny" | "HasAll", value: Expr, list: List): Expr {
  if ("rows" in list) {
    const [first] = list.rows.columns;
    if (first === undefined) return literal("bool", operator === "HasAll");
    const item = expr("string", sql`list(lower(${str(columnExpr(first.column))}))`);
    const terms = sql`(${[oneColumn(list.rows, item)]})`;
    return expr("bool", sql`kql_${[operator === "HasAny" ? "has_any" : "has_all"]}(lower(${str(value)}), ${terms})`, {
      nullable: false,
    });
  }
  const tests = list.values.map((term) => {
    if (term.type === "dynamic") {
      return sql`kql_${operator === "HasAny" ? "has_any" : "has_all"}(lower(${str(value)}), kql_lower_list(${term}))`;
    }
    return hasTerm(value, term).sql;
  });
  if (tests.length === 0) return literal("bool", operator === "HasAll");
  const word = operator === "HasAny" ? " OR " : " AND ";
  return expr(
    "bool",
    separated(
      word,
      tests.map((one) => sql`${one}`),
    ).raw,
    { nullable: false },
  );
}

/** `between (low .. high)`, both ends included; a timespan as `high` of a datetime counts from `low`. */
export function isInRange(value: Expr, low: Expr, high: Expr): Expr {
  const from = compared(">=", value, low);
  const until = value.type === "datetime" && high.type === "timespan" ? datetimePlus(low, high) : high;
  const to = compared("<=", value, until);
  return expr("bool", sql`${from} AND ${to}`, { nullable: from.nullable || to.nullable });
}

function datetimePlus(moment: Expr, span: Expr): Expr {
  if (typeof moment.constant === "bigint" && typeof span.constant === "bigint") {
    return literal("datetime", moment.constant + span.constant * 100n);
  }
  return expr("datetime", sql`kql_datetime_plus(${moment}, ${span})`);
}
