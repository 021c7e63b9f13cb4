import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EngineError } from "../../core/errors.ts";
import { addParameters, type ParameterValue } from "./parameters.ts";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";

let harness: QueryHarness;

beforeAll(async () => {
  harness = createQueryHarness();
  const columns = [
    { name: "at", type: { kind: "timestamp" } },
    { name: "label", type: { kind: "string" } },
    { name: "n", type: { kind: "long" } },
  ] as const;
  const day = 86_400_000_000_000n;
  for (const [table, days] of [["logs", [1n, 2n]]] as const) {
    const extents = days.map((at) => {
      const rows = [
        { at: at * day, label: "a", n: at },
        { at: at * day + 1n, label: "it's", n: 10n * at },
      ];
      return { format: "tlm", columns, rows } as const;
    });
    await harness.addTable("default", table, columns, extents);
  }
});
afterAll(() => harness.close());

type Given = Record<string, ParameterValue>;

async function rows(sql: string, given: Given): Promise<unknown[]> {
  const parameters = new Map<string, ParameterValue>();
  addParameters(parameters, Object.entries(given));
  const text = await harness.text(sql, { parameters });
  return text === ""
    ? []
    : text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as unknown);
}

const failure = (sql: string, given: Given): Promise<EngineError> =>
  rows(sql, given).then(
    (answer) => expect.fail(`answered ${JSON.stringify(answer)}`),
    (error: unknown) => error as EngineError,
  );

describe("values have their types", () => {
  test.each<[ParameterValue, type: string, text: string]>([
    ["text", "VARCHAR", "text"],
    ["", "VARCHAR", ""],
    ["'); DROP TABLE logs; --", "VARCHAR", "'); DROP TABLE logs; --"],
    ['$1 ? $name \\ " é 🟣 \n -- /* ', "VARCHAR", '$1 ? $name \\ " é 🟣 \n -- /* '],
    ["engine_mark_0_", "VARCHAR", "engine_mark_0_"],
    ["x".repeat(100_000), "VARCHAR", "x".repeat(100_000)],
    [true, "BOOLEAN", "true"],
    [false, "BOOLEAN", "false"],
    [0n, "INTEGER", "0"],
    [-5n, "INTEGER", "-5"],
    [2_147_483_647n, "INTEGER", "2147483647"],
    [-2_147_483_648n, "BIGINT", "-2147483648"],
    [9_007_199_254_740_993n, "BIGINT", "9007199254740993"],
    [9_223_372_036_854_775_807n, "BIGINT", "9223372036854775807"],
    [-9_223_372_036_854_775_808n, "BIGINT", "-9223372036854775808"],
    [1.5, "DOUBLE", "1.5"],
    [-0.25, "DOUBLE", "-0.25"],
    [3, "DOUBLE", "3.0"],
    [0, "DOUBLE", "0.0"],
    [0.1, "DOUBLE", "0.1"],
    [1e300, "DOUBLE", "1e+300"],
    [-1.25e-9, "DOUBLE", "-1.25e-09"],
    [123_456_789_012_345_680_000, "DOUBLE", "1.2345678901234568e+20"],
    [5e-324, "DOUBLE", "5e-324"],
    [["a", "b'"], "VARCHAR[]", "[a, 'b\\'']"],
    [[1n, -2n], "INTEGER[]", "[1, -2]"],
  ])("value %#", async (value, type, text) => {
    const sql = "SELECT typeof($v) AS t, CAST($v AS VARCHAR) AS s";
    expect(await rows(sql, { v: value })).toEqual([{ t: type, s: text }]);
  });

  test("null is NULL, and an empty list is one", async () => {
    expect(await rows("SELECT $v IS NULL AS n, len($l) AS l", { v: null, l: [] })).toEqual([{ n: true, l: 0 }]);
  });
});

describe("parameters", () => {
  test.each<[sql: string, given: Given, answer: unknown[]]>([
    ["SELECT n FROM logs WHERE label = $label AND n > $n ORDER BY n", { label: "it's", n: 10n }, [{ n: 20 }]],
    ["SELECT n FROM logs WHERE n = $1", { 1: "20" }, [{ n: 20 }]],
    ["SELECT n FROM logs WHERE label = ? AND n >= ?", { 1: "a", 2: 2n }, [{ n: 2 }]],
    ["SELECT $2 AS b, $1 AS a", { 1: "x", 2: "y" }, [{ b: "y", a: "x" }]],
    ["SELECT count(*) AS c FROM logs WHERE at >= $at", { at: "1970-01-03" }, [{ c: 2 }]],
    ["SELECT count(*) AS c FROM logs WHERE at < $until::TIMESTAMP", { until: "1970-01-03" }, [{ c: 2 }]],
    ["SELECT count(*) AS c FROM logs WHERE list_contains($labels, label)", { labels: ["a", "b"] }, [{ c: 2 }]],
    ["SELECT count(*) AS c FROM logs WHERE label IN ($a, $b)", { a: "a", b: "b" }, [{ c: 2 }]],
    ["SELECT n FROM logs ORDER BY n DESC LIMIT $limit OFFSET $skip", { limit: 1n, skip: 1n }, [{ n: 10 }]],
    ["SELECT n FROM logs ORDER BY n DESC LIMIT $limit", { limit: "1" }, [{ n: 20 }]],
    ["SELECT count(*) AS c FROM logs AT (VERSION => $v)", { v: 1n }, [{ c: 4 }]],
    ["SELECT $Name AS x, $NAME AS y", { name: "z" }, [{ x: "z", y: "z" }]],
    ["SELECT $at AS x, at FROM logs WHERE n = 1", { at: 1n }, [{ x: 1, at: "1970-01-02T00:00:00Z" }]],
    ["SELECT '$a' AS x, $a AS y -- $b\n, '?' AS z", { a: "v" }, [{ x: "$a", y: "v", z: "?" }]],
    ["SELECT $name, upper($name)", { name: "bob" }, [{ $name: "bob", "upper($name)": "BOB" }]],
    ["WITH w AS (SELECT $a AS x) SELECT (SELECT max(x) FROM w) AS y", { a: 3n }, [{ y: 3 }]],
    ["PIVOT (SELECT label, n FROM logs WHERE n > $n) ON label USING sum(n)", { n: 2n }, [{ "it's": 30 }]],
    ["SELECT $price::DECIMAL(5,2) AS p", { price: "1.50" }, [{ p: 1.5 }]],
  ])("%s", async (sql, given, answer) => {
    expect(await rows(sql, given)).toEqual(answer);
  });

  test("are values, not places: neither in ORDER BY nor in GROUP BY", async () => {
    const sql = "SELECT label, n FROM logs ORDER BY $column, n DESC";
    expect((await rows(sql, { column: 2n }))[0]).toEqual({ label: "it's", n: 20 });
    expect(await rows("SELECT count(*) AS c FROM logs GROUP BY $column", { column: 1n })).toEqual([{ c: 4 }]);
  });

  test("prune extents as literals do", async () => {
    harness.opened.length = 0;
    await rows("SELECT count(n) FROM logs WHERE at >= $from", { from: "1970-01-03" });
    expect(harness.opened).toEqual(["default/logs/1.tlm"]);
  });

  test("are shown by EXPLAIN and described by DESCRIBE", async () => {
    expect(await rows("EXPLAIN SELECT n FROM logs WHERE n = $n", { n: 1n })).not.toEqual([]);
    expect(await rows("DESCRIBE SELECT $n AS n", { n: 1n })).toMatchObject([{ column_name: "n" }]);
  });
});

describe("what does not fit is refused by name", () => {
  test.each<[sql: string, given: Given, code: string, named: string]>([
    ["SELECT $a, $b, $c", { b: 1n }, "invalid_query", "no value: $a, $c"],
    ["SELECT ?, ?", { 1: 1n }, "invalid_query", "no value: $2"],
    ["SELECT 1", { a: 1n }, "invalid_parameter", "no parameter $a"],
    ["SELECT $a", { a: 1n, b: 2n, c: 3n }, "invalid_parameter", "no parameter $b, $c"],
    ["SELECT '$a'", { a: 1n }, "invalid_parameter", "no parameter $a"],
    ["SELECT $a", { a: 2n ** 63n }, "invalid_parameter", "$a is beyond"],
    ["SELECT $a", { a: Infinity }, "invalid_parameter", "$a is beyond"],
    ["SELECT $a", { a: "x\0y" }, "invalid_parameter", "$a is no text"],
    ["SELECT $a", { a: ["\ud800"] }, "invalid_parameter", "$a is no text"],
    ["SELECT $a", { a: 1n, A: 2n }, "invalid_parameter", "$a is given twice"],
    ["SELECT 1", { "a b": 1n }, "invalid_parameter", '"a b" is no name'],
    ["SELECT 1", { "": 1n }, "invalid_parameter", '"" is no name'],
    ["SELECT 1", { 0: 1n }, "invalid_parameter", '"0" is no name'],
    ["PIVOT (SELECT ? AS n, label FROM logs) ON label USING sum(n)", { 1: 1n }, "invalid_query", "by name or number"],
  ])("%s", async (sql, given, code, named) => {
    const error = await failure(sql, given);
    expect(error).toMatchObject({ code, status: 400 });
    expect(error.message).toContain(named);
  });

  test.each<[sql: string, given: Given]>([
    ["SELECT * FROM $t", { t: "other.secret" }],
    ["SELECT $c FROM logs ORDER BY nope", { c: "label" }],
    ["$sql", { sql: "SELECT 1" }],
    ["SELECT * FROM read_text($f)", { f: "/etc/passwd" }],
    ["SELECT * FROM query($q)", { q: "SELECT 1" }],
    ["SELECT * FROM logs AT (VERSION => $v)", { v: "(SELECT 1)" }],
    ["SELECT getenv($v)", { v: "PATH" }],
  ])("a value is never a name nor a statement: %s", async (sql, given) => {
    expect(["invalid_query", "parse_error"]).toContain((await failure(sql, given)).code);
  });
});
