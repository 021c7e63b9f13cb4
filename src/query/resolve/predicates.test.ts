import { beforeAll, describe, expect, test } from "vitest";
import { loadDuckDb, runSql } from "../../io/duckdb/duckdb.ts";
import { checkQuery } from "./check.ts";
import { CONSTANT_FUNCTIONS } from "../parse/constant-expression.ts";
import { ALLOWED_FUNCTIONS } from "./functions.ts";
import { neededTables } from "./needs.ts";
import type { Constant, Predicate } from "./predicates.ts";
import type { NeededTable } from "./needs.ts";
import { quoteAt } from "../parse/quote-at.ts";
import { parseTree, SqlParser, type SqlContext } from "../parse/sql-tree.ts";

let context: SqlContext;

beforeAll(async () => {
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  context = { duckdb, connection, parser: await SqlParser.open(duckdb, 2 ** 28) };
  await duckdb.query(context.connection, "SET errors_as_json = true");
  await duckdb.query(context.connection, "BEGIN TRANSACTION");
});

async function needsOf(sql: string): Promise<NeededTable[]> {
  const { tree } = await parseTree(context.parser, quoteAt(sql).text);
  if (tree === undefined) throw new Error(`${sql} has no tree`);
  return (await neededTables(context, checkQuery(tree), "default")).map(({ table }) => table);
}

/** Per mention of each table, in order. */
async function predicatesOf(sql: string): Promise<string[][]> {
  const needs = await needsOf(sql);
  return needs.flatMap(({ mentions }) => mentions.map(({ predicates }) => predicates.map(show)));
}

function show(predicate: Predicate): string {
  switch (predicate.kind) {
    case "compare":
      return `${predicate.column} ${predicate.operator} ${value(predicate.value)}`;
    case "between":
      return `${predicate.column} between ${value(predicate.lower)} and ${value(predicate.upper)}`;
    case "in":
      return `${predicate.column} in ${predicate.values.map(value).join(",")}`;
    case "prefix":
      return `${predicate.column} prefix ${predicate.text}`;
    case "contains":
      return `${predicate.column} contains ${predicate.texts.join("|")}`;
    case "and":
    case "or":
      return `(${predicate.of.map(show).join(` ${predicate.kind} `)})`;
    case "null":
    case "not_null":
      return `${predicate.column} ${predicate.kind}`;
  }
}

function value(constant: Constant): string {
  switch (constant.kind) {
    case "integer":
      return `${constant.value}`;
    case "decimal":
      return `${constant.digits}/10^${constant.scale}`;
    case "double":
    case "float":
      return `${constant.kind} ${constant.value}`;
    case "text":
      return `${constant.isLiteral ? "literal" : "text"} ${constant.value}${constant.ns === undefined ? "" : ` = ${constant.ns}`}`;
    case "bool":
      return String(constant.value);
    case "instant":
      return `instant ${constant.ns}`;
  }
}

describe("what a WHERE clause says", () => {
  test.each([
    ["i = 5", ["i = 5"]],
    ["-5 < i", ["i > -5"]],
    ["5 >= i AND i <> 7", ["i <= 5", "i <> 7"]],
    ["i = 9223372036854775807", ["i = 9223372036854775807"]],
    ["i > 9223372036854775808", ["i > 9223372036854775808"]],
    ["i > -170141183460469231731687303715884105728", ["i > -170141183460469231731687303715884105728"]],
    ["i < 1.5", ["i < 15/10^1"]],
    ["i < -0.05", ["i < -5/10^2"]],
    ["i < 12345678901234567890.25", ["i < 1234567890123456789025/10^2"]],
    ["r < 1e3", ["r < double 1000"]],
    ["i = 9007199254740993e0", ["i = double 9007199254740992"]],
    ["i = -2.5e-3", ["i = double -0.0025"]],
    ["r >= 'nan'::DOUBLE OR r = 'inf'::DOUBLE", ["(r >= double NaN or r = double Infinity)"]],
    ["r = 0.1::FLOAT", [`r = float ${Math.fround(0.1)}`]],
    ["s = 'it''s'", ["s = literal it's"]],
    ["s = 'a' || 'b'", ["s = text ab"]],
    ["s >= '2024-01-01'", ["s >= literal 2024-01-01 = 1704067200000000000"]],
    ["ts > TIMESTAMP '2024-01-01'", ["ts > instant 1704067200000000000"]],
    ["ts > TIMESTAMPTZ '2024-01-01 02:00:00+02'", ["ts > instant 1704067200000000000"]],
    ["ok", ["ok = true"]],
    ["NOT ok AND other = true", ["ok = false", "other = true"]],
    ["i IN (1, 2, NULL)", ["i in 1,2"]],
    ["s IN ('a', 'b')", ["s in literal a,literal b"]],
    ["i BETWEEN 1 AND 2", ["i between 1 and 2"]],
    ["i IS NULL", ["i null"]],
    ["i IS NOT NULL", ["i not_null"]],
    ["i IS NOT DISTINCT FROM 5", ["i = 5"]],
    ["s LIKE 'abc%'", ["(s prefix abc and s contains abc)"]],
    ["s LIKE '%word%'", ["s contains word"]],
    ["s LIKE 'a%b_c%'", ["(s prefix a and s contains a|b|c)"]],
    ["s LIKE 'plain'", ["s = text plain"]],
    ["s LIKE '%'", ["s not_null"]],
    ["starts_with(s, 'x')", ["(s prefix x and s contains x)"]],
    ["s ^@ 'x'", ["(s prefix x and s contains x)"]],
    ["contains(s, 'word')", ["s contains word"]],
    ["ends_with(s, 'word')", ["s contains word"]],
    ["i = 1 OR (s = 'a' AND j > 2)", ["(i = 1 or (s = literal a and j > 2))"]],
    ["i = 9007199254740993e0 + 0", ["i = double 9007199254740992"]],
    ["i = 1 OR (random() < 0.5 AND j > 2)", ["(i = 1 or (j > 2))"]],
    ["at > '2024-01-01' AND i = 1", ["i = 1"]],
    ["at > '2024-01-01' OR i = 1", ["(at > literal 2024-01-01 = 1704067200000000000 or i = 1)"]],
    ["t.i = 1 AND I = 2", ["i = 1", "I = 2"]],
  ])("%s", async (where, expected) => {
    expect(await predicatesOf(`SELECT 1 FROM t WHERE ${where}`)).toEqual([expected]);
  });

  test.each([
    "i = NULL",
    "i NOT IN (1, 2)",
    "NOT (i > 5 OR j = 1) IS NULL",
    "i + 1 = 5",
    "abs(i) = 5",
    "i = j",
    "i = random()",
    "s = uuid()::VARCHAR",
    "s = 'A' COLLATE NOCASE",
    "s COLLATE NOCASE = 'a'",
    "i IN (1, 2.5)",
    "i BETWEEN 1 AND 2.5",
    "i IN (SELECT 1)",
    "i = (SELECT 1)",
    "i = 1 OR random() < 0.5",
    "s NOT LIKE 'a%'",
    "s ILIKE 'a%'",
    "s LIKE 'a!%' ESCAPE '!'",
    "s LIKE j",
    "i = ANY([1, 2])",
    "i IN [1, 2]",
    "(i, j) = (1, 2)",
    "other.i = 1",
    "i = 'x'::INTEGER",
    "NOT EXISTS (SELECT 1)",
    "i = 1 / 0 + NULL",
  ])("nothing: %s", async (where) => {
    expect(await predicatesOf(`SELECT 1 FROM t WHERE ${where}`)).toEqual([[]]);
  });

  test.each([
    ["SELECT 1 FROM t WHERE i = 1 USING SAMPLE 10 ROWS", [[]]],
    ["SELECT 1 FROM t AS x(a, b) WHERE a = 1", [[]]],
    ["SELECT 1 FROM t JOIN u ON t.k = u.k WHERE t.i = 1 AND u.j IS NULL AND i = 3", [["i = 1"], ["j null"]]],
    ["SELECT 1 FROM t LEFT JOIN u ON t.k = u.k WHERE t.i IS NULL AND u.j = 1", [[], ["j = 1"]]],
    ["SELECT 1 FROM t LEFT JOIN u USING (k) WHERE u.j IS NULL OR u.j = 1", [[], []]],
    ["SELECT 1 FROM t ANTI JOIN u USING (k) WHERE t.i = 1", [[], []]],
    ["SELECT 1 FROM t, u WHERE t.i = 1 OR u.j = 2", [[], []]],
    ["SELECT 1 FROM t WHERE i = 1 UNION ALL SELECT 1 FROM t WHERE i = 2", [["i = 1"], ["i = 2"]]],
    ["SELECT 1 FROM t AS a JOIN t AS b USING (k) WHERE a.i = 1", [["i = 1"], []]],
    ["SELECT 1 FROM (SELECT * FROM t WHERE i = 1) WHERE i = 2", [["i = 1"]]],
    ["WITH c AS (SELECT * FROM t WHERE i = 1) SELECT 1 FROM c, t WHERE t.i = 2", [["i = 1"], ["i = 2"]]],
    ["SELECT 1 FROM u WHERE EXISTS (SELECT 1 FROM t WHERE i = 1 AND u.j = 2)", [[], ["i = 1"]]],
  ])("%s", async (sql, expected) => {
    expect(await predicatesOf(sql)).toEqual(expected);
  });

  test("an expression that fails takes all others with it, but no literal", async () => {
    const [need] = await needsOf("SELECT 1 FROM t WHERE at > now() AND i = 'x'::INT AND j = 1 AND k = 1 + 1");
    expect(need?.mentions.map(({ range }) => range)).toEqual([{}]);
    expect(need?.mentions[0]?.predicates.map(show)).toEqual(["j = 1"]);
  });

  test("each mention has its own range", async () => {
    const [need] = await needsOf("SELECT 1 FROM t WHERE at >= '1970-01-02' UNION ALL FROM t WHERE at < '1970-01-01'");
    expect(need?.mentions.map(({ range }) => range)).toEqual([{ minNs: 86_400_000_000_000n }, { maxNs: -1n }]);
  });

  test("long lists say nothing", async () => {
    const list = Array.from({ length: 1_001 }, (_, i) => i).join(",");
    expect(await predicatesOf(`SELECT 1 FROM t WHERE i IN (${list})`)).toEqual([[]]);
  });

  test("no function of constants is volatile", async () => {
    const sql = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE stability = 'VOLATILE'";
    const names = (await runSql(context.duckdb, context.connection, sql)).map(([name]) => name ?? "");
    expect(names.length).toBeGreaterThan(5);
    expect(names.filter((name) => CONSTANT_FUNCTIONS.has(name))).toEqual([]);
    expect([...CONSTANT_FUNCTIONS].filter((name) => !ALLOWED_FUNCTIONS.has(name))).toEqual([]);
  });
});

describe("the columns that a query can touch", () => {
  const COLUMNS = ["a", "b", "c", "k"];

  test.each([
    ["SELECT a FROM t WHERE B > 1 ORDER BY c", { t: ["a", "b", "c"] }],
    ["SELECT count(*) FROM t", { t: [] }],
    ["FROM t", { t: "all" }],
    ["SELECT *, 1 FROM t", { t: "all" }],
    ["SELECT t.* FROM t", { t: "all" }],
    ["SELECT * EXCLUDE (a) FROM t", { t: "all" }],
    ["SELECT max(COLUMNS('a|b')) FROM t", { t: "all" }],
    ["SELECT t FROM t", { t: "all" }],
    ["SELECT count(DISTINCT x) FROM t AS x", { t: "all" }],
    ["SELECT #1 FROM t", { t: "all" }],
    ["SELECT x FROM t AS y(x)", { t: "all" }],
    ["SELECT a FROM t JOIN u USING (k)", { t: ["a", "k"], u: ["a", "k"] }],
    ["SELECT a FROM t NATURAL JOIN u", { t: "all", u: "all" }],
    ["SELECT * FROM (SELECT a FROM t)", { t: ["a"] }],
    ["SELECT *, (SELECT max(b) FROM u) FROM t", { t: "all", u: ["b"] }],
    ["SELECT a, (SELECT x FROM (SELECT * FROM u)) FROM t", { t: ["a"], u: "all" }],
    ["WITH w AS (SELECT a FROM t) SELECT * FROM w", { t: ["a"] }],
    ["SELECT a FROM t UNION ALL BY NAME SELECT * FROM u", { t: ["a"], u: "all" }],
    ["SELECT a FROM t UNION SELECT a FROM (SELECT * FROM t)", { t: "all" }],
    ["PIVOT t ON a IN (1, 2) USING count(*)", { t: "all" }],
    ["UNPIVOT t ON a, b", { t: "all" }],
    ["DESCRIBE t", { t: "all" }],
    ["SUMMARIZE SELECT a FROM t", { t: "all" }],
    ["SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY b ORDER BY c) = 1", { t: ["a", "b", "c"] }],
    ["SELECT list_transform([1], x -> x + a) FROM t", { t: ["a"] }],
    ["SELECT k.a.b FROM t", { t: ["a", "b", "k"] }],
  ])("%s", async (sql, expected) => {
    const needs = await needsOf(sql);
    const touched = needs.map(({ name, columns }) => [
      name,
      columns === undefined ? "all" : COLUMNS.filter((column) => columns.includes(column)),
    ]);
    expect(Object.fromEntries(touched)).toEqual(expected);
  });
});
