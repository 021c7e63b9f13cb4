import { expression, PLAIN_KINDS, type Column, type Kind, type Scope } from "./expressions.test-kit.ts";
import { both, join, sql, type Sql } from "./sql.test-kit.ts";

/** Random aggregates and window functions over the rows of a scope; `key` orders those rows without ties. */
export type Keyed = Scope & { key: readonly Sql[] };

type Maker = (scope: Keyed) => Column;

const as = (kind: Kind, text: Sql, fuzzy = false): Column => ({ kind, sql: text, fuzzy });
const any = (scope: Keyed): { kind: Kind; value: Sql } => {
  const kind = scope.choose.pick(PLAIN_KINDS);
  return { kind, value: expression(scope, kind, 1) };
};

const AGGREGATES: readonly Maker[] = [
  () => as("long", both("count(*)")),
  (scope) => as("long", sql`count(${any(scope).value})`),
  (scope) => as("long", sql`count(DISTINCT ${any(scope).value})`),
  (scope) => as("other", sql`sum(${expression(scope, scope.choose.pick(["int", "long"]), 1)})`),
  (scope) => as("real", sql`sum(${expression(scope, "real", 1)})`, true),
  (scope) => as("real", sql`avg(${expression(scope, scope.choose.pick(["int", "long", "real"]), 1)})`, true),
  ...[0, 1, 2].map((): Maker => (scope) => {
    const { kind, value } = any(scope);
    return as(kind, sql`${scope.choose.pick(["min", "max"])}(${value})`);
  }),
  (scope) => as("bool", sql`${scope.choose.pick(["bool_and", "bool_or"])}(${expression(scope, "bool", 1)})`),
  (scope) => as("string", sql`string_agg(${expression(scope, "string", 1)}, '|' ORDER BY ${join(scope.key)})`),
  (scope) => as("other", sql`list(${any(scope).value} ORDER BY ${join(scope.key)})`),
  (scope) => as("other", sql`array_agg(${expression(scope, "json", 1)} ORDER BY ${join(scope.key)})`),
  (scope) =>
    as("real", sql`quantile_cont(${expression(scope, "real", 1)}, ${scope.choose.pick([0, 0.5, 0.9, 0.99])})`, true),
  (scope) => as("other", sql`quantile_cont(${expression(scope, "real", 2)}, [0.5, 0.95])`),
  (scope) => as("real", sql`median(${expression(scope, "int", 1)})`, true),
  (scope) => {
    const { kind, value } = any(scope);
    return as(kind, sql`quantile_disc(${value}, 0.5)`);
  },
  (scope) => as("real", sql`${scope.choose.pick(["stddev", "var_pop", "skewness"])}(${column(scope, "int")})`, true),
  (scope) => as("real", sql`corr(${column(scope, "real")}, ${column(scope, "int")})`, true),
  (scope) => {
    const { kind, value } = any(scope);
    const order = scope.key.length === 1 ? (scope.key[0] ?? both("1")) : sql`(${join(scope.key)})`;
    return as(kind, sql`${scope.choose.pick(["arg_max", "arg_min"])}(${value}, ${order})`);
  },
  (scope) => {
    const { kind, value } = any(scope);
    return as(kind, sql`${scope.choose.pick(["first", "last"])}(${value} ORDER BY ${join(scope.key)})`);
  },
  (scope) => as("long", sql`approx_count_distinct(${any(scope).value})`),
  (scope) => as("other", sql`histogram(${expression(scope, "int", 2)})`),
  (scope) => as("long", sql`bit_xor(${column(scope, "long")})`),
  (scope) => as("long", sql`count(*) FILTER (WHERE ${expression(scope, "bool", 1)})`),
  (scope) => as("long", sql`count_if(${expression(scope, "bool", 1)})`),
  (scope) => as("other", sql`max(${expression(scope, "int", 1)}, 3)`),
  (scope) => {
    const time = expression(scope, "time", 2);
    return as("time", { ours: `avg(${time.ours})`, plain: `CAST(avg(${time.plain}) AS TIMESTAMP_NS)` }, true);
  },
  (scope) => {
    const time = column(scope, "time");
    return as(
      "time",
      { ours: `quantile_cont(${time.ours}, 0.25)`, plain: `CAST(quantile_cont(${time.plain}, 0.25) AS TIMESTAMP_NS)` },
      true,
    );
  },
];

/** A column as it is: what moments are taken of should not be rounded already. */
function column(scope: Keyed, kind: Kind): Sql {
  const columns = scope.columns.filter((one) => one.kind === kind && one.fuzzy !== true);
  return columns.length === 0 ? expression(scope, kind, 3) : scope.choose.pick(columns).sql;
}

export function aggregate(scope: Keyed): Column {
  return scope.choose.pick(AGGREGATES)(scope);
}

const FRAMES = [
  "",
  "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
  "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
  "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING EXCLUDE NO OTHERS",
  "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
];

/** A window function over the rows in the order of their key, so that its value is never a matter of chance. */
export function windowed(scope: Keyed): Column {
  const { choose } = scope;
  const { kind, value } = any(scope);
  const partition = choose.chance(0.6) ? sql`PARTITION BY ${any(scope).value} ` : both("");
  const over = (frame = ""): Sql => sql`OVER (${partition}ORDER BY ${join(scope.key)} ${frame})`;
  switch (choose.int(0, 6)) {
    case 0:
      return as("long", sql`row_number() ${over()}`);
    case 1:
      return as("long", sql`${choose.pick(["rank", "dense_rank"])}() OVER (${partition}ORDER BY ${value})`);
    case 2:
      return as(kind, sql`${choose.pick(["lag", "lead"])}(${value}, ${choose.int(1, 3)}) ${over()}`);
    case 3:
      return as(
        kind,
        sql`${choose.pick(["first_value", "last_value", "max", "min"])}(${value}) ${over(choose.pick(FRAMES))}`,
      );
    case 4:
      return as(
        "real",
        sql`${choose.pick(["sum", "avg"])}(${expression(scope, "real", 2)}) ${over(choose.pick(FRAMES))}`,
        true,
      );
    case 5:
      return as("long", sql`ntile(${choose.int(2, 5)}) ${over()}`);
    default:
      return as("long", sql`count(${value}) ${over(choose.pick(FRAMES))}`);
  }
}
