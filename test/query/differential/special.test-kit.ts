import { expression, PLAIN_KINDS } from "./expressions.test-kit.ts";
import { both, sql, type Sql } from "./sql.test-kit.ts";
import { joinable, type Context, type Select } from "./sources.test-kit.ts";
import { travelName } from "./oracle.test-kit.ts";

/** Queries of shapes that the grammar of the other generators does not reach, with random parts. */
export function specialQuery(context: Context): Select {
  return { columns: [], key: [], ordered: false, ...context.choose.pick(SHAPES)(context) };
}

type Shape = (context: Context) => { sql: Sql; ordered?: boolean };

/** A condition on a table under an alias. */
function on(
  context: Context,
  name: string,
): { from: Sql; alias: string; where: Sql; value: (kind: (typeof PLAIN_KINDS)[number]) => Sql } {
  const { from, alias, columns } = joinable(context, name);
  const scope = { choose: context.choose, columns };
  return { from, alias, where: expression(scope, "bool"), value: (kind) => expression(scope, kind, 1) };
}

const at = (owner = ""): Sql => ({ ours: `${owner}at`, plain: `${owner}"at"` });

const SHAPES: readonly Shape[] = [
  (context) => {
    const { from, where } = on(context, context.choose.pick(["logs", "users", "nothing"]));
    return { sql: sql`SELECT * FROM ${from} WHERE ${where}` };
  },
  (context) => {
    const { from, where } = on(context, "logs");
    return {
      sql: sql`FROM ${from} SELECT * EXCLUDE (props, v) REPLACE (i + 1 AS i, upper(label) AS label) WHERE ${where}`,
    };
  },
  (context) => ({ sql: sql`SELECT COLUMNS('^(n|l.*|r)$') FROM logs WHERE n % ${context.choose.int(2, 9)} = 1` }),
  (context) => ({
    sql: sql`SELECT ${context.choose.pick(["max", "min", "count"])}(COLUMNS(* EXCLUDE (props, v))) FROM logs`,
  }),
  () => ({ sql: both("FROM users") }),
  () => ({ sql: both("TABLE logs") }),
  (context) => ({ sql: sql`DESCRIBE SELECT *, n + ${context.choose.int(1, 9)} AS m FROM logs` }),
  (context) => {
    const ordinal = context.choose.int(1, 4);
    return {
      sql: sql`SELECT DISTINCT ON (label) label, n, ${at()} AS t FROM logs WHERE n > ${ordinal} ORDER BY label, n DESC`,
      ordered: true,
    };
  },
  (context) => {
    const { from, where } = on(context, "logs");
    return {
      sql: sql`PIVOT (SELECT label, ok, i FROM ${from} WHERE ${where}) ON ok IN (true, false) USING count(*) AS c, sum(i) AS s GROUP BY label`,
    };
  },
  (context) => {
    const { from, where } = on(context, "users");
    return {
      sql: sql`PIVOT (SELECT * FROM ${from} WHERE ${where} OR level = 2) ON level USING max(score) GROUP BY label`,
    };
  },
  (context) => ({
    sql: sql`SELECT * FROM (SELECT label, level, score FROM users) PIVOT (sum(score) FOR level IN (0, 1, ${context.choose.int(2, 4)}) GROUP BY label)`,
  }),
  (context) => {
    const version = context.choose.int(1, context.newest);
    const users: Sql = { ours: `users AT (VERSION => ${version})`, plain: travelName("users", version) };
    return { sql: sql`PIVOT ${users} ON level, upper(label) USING count(*) AS c` };
  },
  (context) => {
    const { from, where } = on(context, "logs");
    return {
      sql: sql`UNPIVOT (SELECT n, i, CAST(r AS INTEGER) AS r FROM ${from} WHERE ${where}) ON i, r INTO NAME which VALUE amount`,
    };
  },
  (context) => {
    const version = context.choose.int(0, context.newest);
    const old: Sql = { ours: `logs AS old AT (VERSION => ${version})`, plain: `${travelName("logs", version)} AS old` };
    return {
      sql: sql`SELECT new.n, old.n AS was, new.label FROM ${old} RIGHT JOIN logs AS new USING (n) WHERE ${at("new.")} > '2024-01-02' OR old.n IS NULL`,
    };
  },
  (context) => {
    const versions = [0, 1].map(() => context.choose.int(1, context.newest));
    const tables = versions.map((version): Sql => ({
      ours: `logs AT (VERSION => ${version})`,
      plain: travelName("logs", version),
    }));
    return {
      sql: sql`SELECT n, label, seen FROM ${tables[0] ?? both("")} EXCEPT SELECT n, label, seen FROM ${tables[1] ?? both("")}`,
    };
  },
  (context) => {
    const version = context.choose.int(1, context.newest);
    const old: Sql = { ours: `users AT (VERSION => 1 + ${version - 1})`, plain: travelName("users", version) };
    return {
      sql: sql`WITH users AS (SELECT *, ${at()} - ${at()} AS zero FROM ${old}) SELECT name, level, zero FROM users`,
    };
  },
  (context) => ({
    sql: sql`WITH RECURSIVE walk(n, hops) AS (SELECT ${context.choose.int(0, 20)}, 0 UNION ALL SELECT l.n + 7, hops + 1 FROM walk w JOIN logs l ON l.n = w.n WHERE hops < 20) SELECT hops, walk.n, label FROM walk LEFT JOIN logs USING (n)`,
  }),
  (context) => {
    const { from, where, alias } = on(context, "logs");
    return {
      sql: sql`SELECT ${alias}.n, e.key, e.type, e.atom FROM ${from}, json_each(${alias}.props) AS e WHERE ${where}`,
    };
  },
  (context) => {
    const { from, where, alias } = on(context, "logs");
    return {
      sql: sql`SELECT ${alias}.n, unnest(string_split(body, ' ')) AS word, unnest(CAST(props->'$.list' AS INTEGER[])) AS item FROM ${from} WHERE ${where}`,
    };
  },
  (context) => {
    const { from, where, alias } = on(context, "logs");
    return {
      sql: sql`SELECT ${alias}.n, ${alias}.props.deep.items[0].k AS k, props.a, ${alias}.props['b'] AS b FROM ${from} WHERE ${where}`,
    };
  },
  (context) => ({ sql: sql`VALUES (1, 'at', [1, 2]), (${context.choose.int(2, 9)}, NULL, NULL)` }),
  (context) => {
    const { from, where, alias } = on(context, "logs");
    return {
      sql: sql`SELECT ${at(`${alias}.`)} AS t, count(*) OVER w AS c, max(${alias}.i) OVER w AS m, ${alias}.n FROM ${from} WHERE ${where} WINDOW w AS (PARTITION BY ${alias}.ok ORDER BY ${alias}.n)`,
    };
  },
  (context) => {
    const seconds = context.choose.int(1, 100_000);
    return {
      sql: sql`SELECT a.n, count(b.n) AS near, max(${at("b.")}) AS t FROM logs a LEFT JOIN logs b ON ${at("b.")} BETWEEN ${at("a.")} AND ${{
        ours: `a.at + INTERVAL ${seconds} SECOND`,
        plain: `o_shift(a."at", INTERVAL ${seconds} SECOND)`,
      }} GROUP BY a.n ORDER BY a.n`,
      ordered: true,
    };
  },
  (context) => {
    const { from, value } = on(context, "logs");
    return {
      sql: sql`SELECT DISTINCT ${value(context.choose.pick(PLAIN_KINDS))} AS a, ${value("bool")} AS b FROM ${from}`,
    };
  },
  (context) => {
    const { from, where } = on(context, "logs");
    return {
      sql: sql`SELECT label, n, array_distance(v, [${context.choose.int(-3, 3)}, 0, 1]::FLOAT[3]) AS d FROM ${from} WHERE v IS NOT NULL AND ${where} ORDER BY d, n LIMIT 10`,
      ordered: true,
    };
  },
  () => ({
    sql: both(
      "SELECT GROUPING(label, ok) AS g, label, ok, count(*) AS c FROM logs GROUP BY GROUPING SETS ((label), (ok), ())",
    ),
  }),
  (context) => ({
    sql: sql`SELECT (SELECT string_agg(name, ',' ORDER BY name) FROM users u WHERE u.label = l.label AND u.level > ${context.choose.int(0, 3)}) AS names, n FROM logs l`,
  }),
  () => ({ sql: both("SELECT count(*) AS c FROM logs POSITIONAL JOIN users") }),
  () => ({ sql: both("SELECT l.n, u.name FROM logs l CROSS JOIN users u WHERE l.n % 50 = u.level") }),
  () => ({ sql: both("SELECT * FROM nothing UNION ALL BY NAME SELECT n, label FROM logs") }),
];
