import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EngineError } from "../core/errors.ts";
import type { ColumnSpec } from "../format/types.ts";
import type { FixtureRow } from "../io/duckdb/tlm.test-kit.ts";
import { createQueryHarness, type QueryHarness } from "./query.test-kit.ts";

const COLUMNS: ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "label", type: { kind: "string" } },
  { name: "ok", type: { kind: "bool" } },
  { name: "i", type: { kind: "int" } },
  { name: "l", type: { kind: "long" } },
  { name: "r", type: { kind: "real" } },
  { name: "props", type: { kind: "dynamic" } },
  { name: "v", type: { kind: "vector", dimensions: 3 } },
];

/** 2024-01-01T00:00:00Z. */
const START = 1_704_067_200_000_000_000n;
const HOUR = 3_600_000_000_000n;

function rowOf(n: number): FixtureRow {
  return {
    at: START + BigInt(n) * HOUR + 123_456_789n,
    label: ["alpha", "beta", "gamma"][n % 3] ?? null,
    ok: n % 5 === 0 ? null : n % 2 === 0,
    i: n,
    l: 9_223_372_036_854_775_000n + BigInt(n),
    r: n % 4 === 0 ? null : n / 8,
    props: JSON.stringify({ a: n, deep: { list: [n, "x"] }, "odd key": true }),
    v: [n, 0.1, -1.5],
  };
}

const rowsOf = (from: number, to: number): FixtureRow[] => Array.from({ length: to - from }, (_, i) => rowOf(from + i));

let harness: QueryHarness;
const rows = (sql: string): Promise<Record<string, unknown>[]> => harness.rows(sql);
const one = async (expression: string): Promise<unknown> => {
  const line = (await harness.text(`SELECT ${expression} AS value`)).trimEnd();
  return line.slice('{"value":'.length, -1);
};
const failure = (sql: string, database = "default") => harness.failure(sql, { database });

const openedBy = async (sql: string): Promise<number> => {
  harness.opened.length = 0;
  await harness.text(sql);
  return harness.opened.length;
};

const countsOf = async (where: string): Promise<unknown[]> => [
  await rows(`SELECT count(*) AS n FROM mixed WHERE ${where}`),
  await rows(`SELECT count(*) AS n FROM (SELECT * FROM mixed) WHERE ${where}`),
];

const countMixed = (at: string): string => `SELECT count(*) AS n FROM mixed ${at}`;

const pivoted = (value: string): string => `count(*) FILTER (label = '${value}') AS ${value}`;

beforeAll(async () => {
  harness = createQueryHarness();
  const full = rowsOf(0, 200);
  const older = COLUMNS.slice(0, 2);
  const tables = {
    fresh: [{ format: "tlm", columns: COLUMNS, rows: full }],
    sealed: [{ format: "parquet", columns: COLUMNS, rows: full }],
    mixed: [
      { format: "tlm", columns: COLUMNS, rows: rowsOf(0, 70) },
      { format: "parquet", columns: COLUMNS, rows: rowsOf(70, 150) },
      { format: "tlm", columns: COLUMNS, rows: rowsOf(150, 200), snapshot: 2 },
    ],
    evolved: [
      { format: "tlm", columns: older, rows: rowsOf(0, 10) },
      { format: "parquet", columns: older, rows: rowsOf(10, 20) },
      { format: "tlm", columns: COLUMNS, rows: rowsOf(20, 30) },
      { format: "parquet", columns: COLUMNS, rows: rowsOf(30, 40) },
    ],
    "dashed-name": [{ format: "tlm", columns: COLUMNS, rows: rowsOf(0, 1) }],
    empty: [],
  } as const;
  for (const [name, extents] of Object.entries(tables)) await harness.addTable("default", name, COLUMNS, extents);
});

afterAll(() => harness.close());

describe("values out", () => {
  test("every column type", async () => {
    expect(await harness.text("SELECT * FROM fresh WHERE i = 1")).toBe(
      '{"at":"2024-01-01T01:00:00.123456789Z","label":"beta","ok":false,"i":1,"l":9223372036854775001,"r":0.125,' +
        '"props":{"a":1,"deep":{"list":[1,"x"]},"odd key":true},"v":[1.0,0.1,-1.5]}\n',
    );
    expect(await rows("SELECT ok, r FROM fresh WHERE i = 0")).toEqual([{ ok: null, r: null }]);
  });

  test.each([
    ["9223372036854775807", "9223372036854775807"],
    ["170141183460469231731687303715884105727::HUGEINT", "170141183460469231731687303715884105727"],
    ["12345678901234567.89::DECIMAL(30,2)", "12345678901234567.89"],
    ["0.1::DOUBLE + 0.2", "0.30000000000000004"],
    ["1e300::DOUBLE", "1e300"],
    ["0.1::FLOAT", "0.1"],
    ["'nan'::DOUBLE", "null"],
    ["'-inf'::DOUBLE", "null"],
    ["'inf'::FLOAT", "null"],
    ["[1.5, 'nan'::DOUBLE, NULL]", "[1.5,null,null]"],
    ["[0.1, 'nan', NULL, '-inf', 1e-20]::FLOAT[5]", "[0.1,null,null,null,1e-20]"],
    ["{'a': 'inf'::DOUBLE, 'b': [{'c': 'nan'::FLOAT}]}", '{"a":null,"b":[{"c":null}]}'],
    ["MAP {'k': 'nan'::DOUBLE}", '{"k":null}'],
    ["row(1, 'x', 'nan'::DOUBLE)", '[1,"x",null]'],
    ["'2024-01-01 00:00:00.5'::TIMESTAMP_NS", '"2024-01-01T00:00:00.5Z"'],
    ["'1677-09-22 00:00:00.000000001'::TIMESTAMP_NS", '"1677-09-22T00:00:00.000000001Z"'],
    ["[TIMESTAMPTZ '2024-01-01 02:00:00+02']", '["2024-01-01T00:00:00Z"]'],
    ["{'t': '2024-01-01 00:00:00'::TIMESTAMP_NS}", '{"t":"2024-01-01T00:00:00Z"}'],
    ["TIMESTAMP '2024-01-01 12:34:56.7'", '"2024-01-01T12:34:56.7"'],
    ["'infinity'::TIMESTAMP", '"infinity"'],
    ["DATE '2024-02-29'", '"2024-02-29"'],
    ["TIME '12:34:56.5'", '"12:34:56.5"'],
    ["INTERVAL 90 MINUTE", '"01:30:00"'],
    ["'\\xAA\\x00'::BLOB", '"qgA="'],
    ["'6b0b6b3e-0000-4000-8000-000000000001'::UUID", '"6b0b6b3e-0000-4000-8000-000000000001"'],
    ["'x'::ENUM('x','y')", '"x"'],
    ["'10101'::BIT", '"10101"'],
    ['\'{"n": 12345678901234567890123, "s": "ü"}\'::JSON', '{"n":12345678901234567890123,"s":"ü"}'],
    ["NULL", "null"],
    ["'a\"\\\n' || chr(0)", '"a\\"\\\\\\n\\u0000"'],
    ["[[1, 2], NULL, []]", "[[1,2],null,[]]"],
    ["{'a': 1}::VARIANT", '{"a":1}'],
  ])("%s", async (expression, json) => {
    expect(await one(expression)).toBe(json);
  });

  test("column names that repeat are told apart", async () => {
    expect(await harness.text("SELECT 1 AS a, 2 AS A, 3 AS a")).toBe('{"a":1,"A_1":2,"a_2":3}\n');
    expect(await harness.text("SELECT * FROM (SELECT 1 AS a) x, (SELECT 2 AS a) y")).toBe('{"a":1,"a_1":2}\n');
  });

  test("order survives, also in results of many chunks; an empty result has no line", async () => {
    const got = await rows("SELECT r AS i FROM range(50_000) t(r) ORDER BY r DESC");
    expect(got.map(({ i }) => i)).toEqual(Array.from({ length: 50_000 }, (_, i) => 49_999 - i));
    expect(await harness.text("SELECT * FROM fresh WHERE false")).toBe("");
  });
});

describe("the time column", () => {
  test.each([
    ["SELECT at FROM fresh WHERE at < '2024-01-01T02:00:00Z' ORDER BY at DESC", 2],
    ["SELECT AT FROM fresh WHERE At < '2024-01-01T02:00:00Z'", 2],
    ["SELECT f.at FROM fresh f JOIN mixed m ON f.at = m.at", 200],
    ["SELECT at FROM fresh JOIN mixed USING (at)", 200],
    [
      "SELECT date_trunc('day', at) AS d, count(*) FROM fresh GROUP BY date_trunc('day', at) HAVING min(at) > '2024-01-02'",
      8,
    ],
    ["SELECT at, row_number() OVER (PARTITION BY label ORDER BY at) AS n FROM fresh QUALIFY n = 1", 3],
    ["SELECT * EXCLUDE (at) FROM fresh LIMIT 1", 1],
    ["SELECT * REPLACE (at::DATE AS at) FROM fresh LIMIT 1", 1],
    ["SELECT label AS at FROM fresh LIMIT 1", 1],
    ["SELECT label at FROM fresh LIMIT 1", 1],
    ["WITH w AS (SELECT at FROM fresh) SELECT max(at) FROM w", 1],
    ["SELECT DISTINCT ON (label) at FROM fresh ORDER BY label, at", 3],
    ["SELECT count(*) FILTER (WHERE at > '2024-01-05') FROM fresh", 1],
    ["SELECT CASE WHEN at > '2024-01-05' THEN 1 END FROM fresh LIMIT 1", 1],
    ["SELECT at FROM fresh WHERE at IN (SELECT max(at) FROM mixed)", 1],
    ["SELECT at FROM fresh UNION SELECT at FROM mixed", 200],
    ["SELECT at::VARCHAR, (at), -i, at IS NULL, list(at)[1] FROM fresh GROUP BY ALL LIMIT 1", 1],
    ["FROM fresh SELECT at LIMIT 1", 1],
    ["SELECT at FROM (VALUES (1)) t(at)", 1],
    ["UNPIVOT (SELECT at, i FROM fresh) ON i INTO NAME n VALUE val", 200],
    ["PIVOT (SELECT at, label FROM fresh) ON label IN ('alpha') USING max(at)", 1],
    ["SELECT at AT TIME ZONE 'Europe/Berlin' FROM fresh LIMIT 1", 1],
    ["SELECT struct_pack(at := at).at FROM fresh LIMIT 1", 1],
    ["SELECT list_transform([1], lambda at: at + 1) FROM fresh LIMIT 1", 1],
  ])("%s", async (sql, count) => {
    expect(await rows(sql)).toHaveLength(count);
  });

  test.each([
    ["at - INTERVAL 1 HOUR", '"2023-12-31T23:00:00.123456789Z"'],
    ["at + INTERVAL '1 month 1 day'", '"2024-02-02T00:00:00.123456789Z"'],
    ["at + INTERVAL 1 DAY * 2", '"2024-01-03T00:00:00.123456789Z"'],
    ["INTERVAL 1 DAY + at", '"2024-01-02T00:00:00.123456789Z"'],
    ["at - INTERVAL 1 DAY + INTERVAL 1 HOUR", '"2023-12-31T01:00:00.123456789Z"'],
    ["max(at) - INTERVAL 1 HOUR", '"2023-12-31T23:00:00.123456789Z"'],
    ["at - at", '"00:00:00"'],
    ["max(at) - min(at)", '"00:00:00"'],
    ["count(*) - count(i)", "0"],
    ["date_trunc('hour', at)", '"2024-01-01T00:00:00Z"'],
    ["date_trunc('month', max(at))", '"2024-01-01T00:00:00Z"'],
    ["date_trunc('day', '1969-12-31 23:59:59.999999999'::TIMESTAMP_NS)", '"1969-12-31T00:00:00Z"'],
    ["time_bucket(INTERVAL '15 minutes', at)", '"2024-01-01T00:00:00Z"'],
    ["time_bucket('1 day', at)", '"2024-01-01T00:00:00Z"'],
    ["time_bucket(INTERVAL 1 DAY, at, 'America/New_York')", '"2023-12-31T05:00:00Z"'],
    ["extract(year FROM at)", "2024"],
    ["date_part('hour', at)", "0"],
    ["epoch_ns(at)", "1704067200123456789"],
    ["epoch_ms(at)", "1704067200123"],
    ["epoch(at)", "1704067200.123456"],
    ["strftime(at, '%Y-%m-%dT%H:%M:%S.%n')", '"2024-01-01T00:00:00.123456789"'],
    ["date_diff('day', at, '2024-01-05')", "4"],
    ["date_diff('hour', at, now()) > 1000", "true"],
    ["age(now(), at) > INTERVAL 1 YEAR", "true"],
    ["at < now()", "true"],
    ["now() > at", "true"],
    ["at > now() - INTERVAL 1 HOUR", "false"],
    ["at BETWEEN now() - INTERVAL '100 years' AND current_timestamp", "true"],
    ["at IN (now(), at)", "true"],
    ["CASE WHEN at < current_timestamp THEN at ELSE now() END", '"2024-01-01T00:00:00.123456789Z"'],
    ["least(at, now())", '"2024-01-01T00:00:00.123456789Z"'],
    ["coalesce(NULL, at)", '"2024-01-01T00:00:00.123456789Z"'],
    ["at = TIMESTAMPTZ '2024-01-01 02:00:00.123456789+02'", "true"],
    ["at = '2024-01-01T02:00:00.123456789+02:00'", "true"],
    ["at > '2024-01-01T02:00:00.123456788+02:00'", "true"],
    ["at > '2024-01-01 01:00:00 Europe/Berlin'::TIMESTAMPTZ", "true"],
    ["at > DATE '2024-01-01'", "true"],
    ["at > TIMESTAMP '2024-01-01 00:00:00'", "true"],
    ["at::TIMESTAMPTZ", '"2024-01-01T00:00:00.123456789Z"'],
    ["at AT TIME ZONE 'Europe/Berlin'", '"2024-01-01T01:00:00.123456"'],
    ["max(at) AT TIME ZONE 'Europe/Berlin'", '"2024-01-01T01:00:00.123456"'],
    ["at > TIMESTAMP '2024-01-01 01:00' AT TIME ZONE 'Europe/Berlin'", "true"],
    ["at > to_timestamp(1704067200)", "true"],
    ["at::DATE", '"2024-01-01"'],
    ["at::DATE = DATE '2024-01-01'", "true"],
    ["max(at)", '"2024-01-01T00:00:00.123456789Z"'],
    ["avg(at)", '"2024-01-01T00:00:00.123456Z"'],
    ["quantile_cont(at, 0.5)", '"2024-01-01T00:00:00.123456Z"'],
    ["(SELECT min(at) FROM fresh) - INTERVAL 1 HOUR", '"2023-12-31T23:00:00.123456789Z"'],
    ["list(at)", '["2024-01-01T00:00:00.123456789Z"]'],
    ["generate_series(DATE '2024-01-01', DATE '2024-01-02', INTERVAL 1 DAY)[1]", '"2024-01-01T00:00:00"'],
  ])("%s", async (expression, json) => {
    const line = (await harness.text(`SELECT ${expression} AS value FROM fresh WHERE i = 0`)).trimEnd();
    expect(line).toBe(`{"value":${json}}`);
  });

  test.each([
    "SELECT at - INTERVAL 1 DAY AS z FROM (SELECT at::DATE AS at FROM fresh WHERE i = 0)",
    "WITH q AS (SELECT at::DATE AS at FROM fresh WHERE i = 0) SELECT at - INTERVAL 1 DAY AS z FROM q",
    "WITH q(at) AS (SELECT at::DATE FROM fresh WHERE i = 0) SELECT at - INTERVAL 1 DAY AS z FROM q",
    "SELECT q.at - INTERVAL 1 DAY AS z FROM fresh f, (SELECT DATE '2024-01-01') q(at) WHERE f.i = 0",
    "SELECT at - INTERVAL 1 DAY AS z FROM (SELECT TIMESTAMP '2024-01-01' AS at), (FROM fresh LIMIT 1) f(b)",
  ])("a date or a wall clock by the name of an instant stays one: %s", async (sql) => {
    expect(await rows(sql)).toEqual([{ z: "2023-12-31T00:00:00" }]);
  });

  test("nanoseconds survive new names, and names that mean something else do no harm", async () => {
    expect(
      await rows(
        `WITH w AS (SELECT at AS t FROM fresh WHERE i = 0), x AS (SELECT t - INTERVAL 1 HOUR AS u FROM w)
         SELECT u + INTERVAL 1 DAY AS z FROM (SELECT max(u) AS u FROM x)`,
      ),
    ).toEqual([{ z: "2024-01-01T23:00:00.123456789Z" }]);
    expect(
      await rows(
        "SELECT t.at - INTERVAL 1 DAY AS z FROM (SELECT DATE '2024-01-02' AS at) t, empty RIGHT JOIN (SELECT 1) ON true",
      ),
    ).toEqual([{ z: "2024-01-01T00:00:00" }]);
    expect(
      await rows("SELECT at - INTERVAL 1 HOUR AS z FROM (SELECT INTERVAL 3 HOUR AS at), (FROM fresh LIMIT 1) f(b)"),
    ).toEqual([{ z: "02:00:00" }]);
  });

  test.each([
    ["another type in a subquery", "(SELECT avg(d.at) FROM (SELECT 1 AS at) d)", "1.0"],
    ["a subquery's, without a qualifier", "(SELECT avg(at) FROM (SELECT 1 AS at))", "1.0"],
    ["a CTE's", "(WITH d AS (SELECT INTERVAL 1 DAY AS at) SELECT at - INTERVAL 1 HOUR FROM d)", '"1 day -01:00:00"'],
    ["a CTE's by its list", "(WITH d(at) AS (SELECT 3) SELECT mean(at) FROM d)", "3.0"],
    ["a set's", "(SELECT avg(at) FROM (SELECT 1 AS at UNION ALL SELECT 3))", "2.0"],
    ["a star's", "(SELECT avg(at) FROM (SELECT d.* FROM (SELECT 5 AS at) d))", "5.0"],
    ["an alias", "(SELECT avg(at) FROM (SELECT 7) d(at))", "7.0"],
  ])("an instant keeps its zone and nanoseconds where its name is %s", async (_what, other, json) => {
    const select = `SELECT ${other} AS other, max(at) + INTERVAL 1 HOUR AS value FROM fresh WHERE i = 0`;
    expect((await harness.text(select)).trimEnd()).toBe(`{"other":${json},"value":"2024-01-01T01:00:00.123456789Z"}`);
  });

  test("a column without an alias keeps the name of what was written", async () => {
    const [row] = await rows("SELECT at - INTERVAL '1 hour', i - 1 FROM fresh LIMIT 1");
    expect(Object.keys(row ?? {})).toEqual([`("at" - CAST('1 hour' AS INTERVAL))`, "(i - 1)"]);
  });

  test("bounds on it open only the extents they allow", async () => {
    // mixed has 70 + 80 + 50 hours in three extents.
    expect(await openedBy("SELECT count(*) FROM mixed")).toBe(3);
    expect(await openedBy("SELECT count(*) FROM mixed WHERE at < '2024-01-02'")).toBe(1);
    expect(await openedBy("SELECT count(*) FROM mixed m WHERE '2024-01-02' > m.at AND i > 3")).toBe(1);
    expect(await openedBy("SELECT count(*) FROM mixed WHERE at BETWEEN '2024-01-04' AND '2024-01-05'")).toBe(1);
    expect(await openedBy("SELECT count(*) FROM mixed WHERE at > now() - INTERVAL 1 HOUR")).toBe(0);
    expect(await openedBy("SELECT count(*) FROM mixed WHERE at >= TIMESTAMPTZ '2024-01-08 00:00:00+00'")).toBe(1);
    expect(await openedBy("SELECT count(*) FROM mixed WHERE at = make_timestamp_ns(1704067200123456789)")).toBe(1);
    expect(await openedBy("SELECT count(*) FROM mixed WHERE at < '2024-01-02' OR i > 3")).toBe(3);
    expect(await openedBy("SELECT count(*) FROM mixed WHERE NOT at < '2024-01-02'")).toBe(3);
    expect(await openedBy("SELECT count(*) FROM mixed a, mixed b WHERE a.at < '2024-01-02' AND a.i = b.i")).toBe(3);
    expect(
      await openedBy("SELECT count(*) FROM mixed a, mixed b WHERE a.at < '2024-01-02' AND b.at < '2024-01-02'"),
    ).toBe(1);
    expect(
      await openedBy("SELECT count(*) FROM mixed WHERE at < '2024-01-02' AND at < 'nonsense'").catch(() => 0),
    ).toBe(0);
  });

  test("and the answer is the same as without", async () => {
    for (const where of [
      "at > '2024-01-03T22:00:00.123456789Z'",
      "at >= '2024-01-03T22:00:00.123456789Z'",
      "at < '2024-01-03T22:00:00.123456789Z'",
      "at <= '2024-01-03T22:00:00.123456789Z'",
      "at = '2024-01-03T22:00:00.123456789Z'",
      "at > NULL",
      "at BETWEEN '2024-01-05' AND '2024-01-02'",
      "at > DATE '2024-01-03' AND at < DATE '2024-01-04'",
    ]) {
      const [pruned, whole] = await countsOf(where);
      expect({ where, rows: pruned }).toEqual({ where, rows: whole });
    }
  });
});

describe("tables", () => {
  const SAME = [
    "SELECT * FROM TABLE ORDER BY at",
    "SELECT label, count(*) AS n, sum(l)::VARCHAR AS s, avg(r) AS a, max(at) AS m FROM TABLE GROUP BY label ORDER BY label",
    "SELECT props.deep.list, props->>'$.\"odd key\"', (props->>'$.a')::INT AS a FROM TABLE WHERE (props->'$.a')::INT > 5 ORDER BY at LIMIT 9",
    "SELECT i FROM TABLE ORDER BY array_distance(v, [50, 0, 0]::FLOAT[3]), i LIMIT 5",
    "SELECT count(*), count(r), count(ok), min(label), max(l) FROM TABLE",
    "SELECT time_bucket(INTERVAL '1 day', at) AS d, count(*) AS n FROM TABLE GROUP BY d ORDER BY d",
    "SELECT i FROM TABLE WHERE label LIKE '%eta' AND ok AND r > 3 ORDER BY i",
  ];

  test.each(SAME)("fresh, sealed and mixed extents agree: %s", async (sql) => {
    const [fresh, sealed, mixed] = await Promise.all(
      ["fresh", "sealed", "mixed"].map((table) => harness.text(sql.replace("TABLE", table))),
    );
    expect(fresh).not.toBe("");
    expect(sealed).toBe(fresh);
    expect(mixed).toBe(fresh);
  });

  test("extents older than a column read NULL there, in both formats", async () => {
    const sql = "SELECT count(*) AS n, count(i) AS i, count(v) AS v, count(props) AS p FROM evolved";
    expect(await rows(sql)).toEqual([{ n: 40, i: 20, v: 20, p: 20 }]);
    expect(await rows("SELECT count(*) AS n FROM evolved WHERE v IS NULL AND props IS NULL")).toEqual([{ n: 20 }]);
    expect(await rows("SELECT i, label FROM evolved WHERE at < '2024-01-01T01:00:00Z'")).toEqual([
      { i: null, label: "alpha" },
    ]);
  });

  test("a table without extents has its columns and no rows", async () => {
    expect(await rows("SELECT count(*) AS n, max(at) AS m, max(v) AS v FROM empty")).toEqual([
      { n: 0, m: null, v: null },
    ]);
  });

  test("names: any case, quoted, qualified by the database", async () => {
    for (const name of ["FRESH", '"fresh"', '"default".fresh', '"DEFAULT"."Fresh"']) {
      expect([name, await rows(`SELECT count(*) AS n FROM ${name}`)]).toEqual([name, [{ n: 200 }]]);
    }
    expect(await rows('SELECT "default".fresh.i FROM "default".fresh WHERE fresh.i = 3')).toEqual([{ i: 3 }]);
    expect(await rows('SELECT count(*) AS n FROM "dashed-name"')).toEqual([{ n: 1 }]);
  });

  test("one snapshot back in time", async () => {
    expect(await rows(countMixed(""))).toEqual([{ n: 200 }]);
    expect(await rows(countMixed("AT (VERSION => 2)"))).toEqual([{ n: 200 }]);
    expect(await rows(countMixed("AT (VERSION => 1)"))).toEqual([{ n: 150 }]);
    expect(await rows(countMixed("AT (VERSION => 2 - 2)"))).toEqual([{ n: 0 }]);
    const both =
      "SELECT count(*) AS n FROM mixed AS old AT (VERSION => 1) RIGHT JOIN mixed USING (at) WHERE old.i IS NULL";
    expect(await rows(both)).toEqual([{ n: 50 }]);
    expect(await rows("SELECT max(mixed.at) AS m FROM mixed AT (VERSION => 1)")).toEqual([
      { m: "2024-01-07T05:00:00.123456789Z" },
    ]);
    expect(await failure(countMixed("AT (VERSION => 3)"))).toMatchObject({ code: "invalid_query" });
    expect(await failure(countMixed("AT (VERSION => 'x')"))).toMatchObject({ code: "invalid_query" });
  });

  test("a file that vanished is an error that names the extent", async () => {
    await harness.addTable("default", "gone", COLUMNS, [{ format: "tlm", columns: COLUMNS, rows: rowsOf(0, 3) }]);
    await harness.addTable("default", "gone2", COLUMNS, [{ format: "parquet", columns: COLUMNS, rows: rowsOf(0, 3) }]);
    rmSync(harness.path("default/gone/0.tlm"));
    rmSync(harness.path("default/gone2/0.parquet"));
    for (const table of ["gone", "gone2"]) {
      const error = await failure(`SELECT * FROM ${table}`);
      expect(error).toMatchObject({ code: "query_failed" });
      expect(error.message).toMatch(/^the data of extent extent-\d+-0 is missing$/);
    }
    expect(await rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
  });
});

describe("statements", () => {
  test.each([
    ["VALUES (1, 'a'), (2, 'b')", 2],
    ["TABLE fresh", 200],
    ["FROM fresh LIMIT 3;", 3],
    ["WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 10) FROM n", 10],
    ["SELECT * FROM generate_series(1, 5)", 5],
    ["SELECT unnest([1, 2, 3])", 3],
    ["SELECT * FROM (SHOW TABLES)", 8],
    ["SHOW TABLES", 8],
    ["DESCRIBE fresh", 8],
    ["SHOW fresh", 8],
    ["DESCRIBE SELECT at, i FROM fresh", 2],
    ["SUMMARIZE fresh", 8],
    ["SUMMARIZE SELECT at, v FROM fresh", 2],
    ["EXPLAIN SELECT * FROM fresh WHERE at > now() - INTERVAL 1 DAY", 2],
    ["EXPLAIN ANALYZE SELECT count(*) FROM mixed", 2],
    ["EXPLAIN (FORMAT json) SELECT 1", 1],
    ["PIVOT fresh ON label USING count(*) GROUP BY ok", 3],
    ["PIVOT fresh ON label, ok USING sum(i) GROUP BY r", 151],
    ["WITH w AS (FROM fresh) PIVOT w ON label USING count(*) GROUP BY ok ORDER BY ok LIMIT 2", 2],
    ["PIVOT fresh ON date_trunc('month', at) USING count(*) GROUP BY label", 3],
    ["UNPIVOT fresh ON i, l INTO NAME n VALUE val", 400],
    ["SELECT 1 -- the end", 1],
    ["SELECT 1 /* the end */ ;  ", 1],
    ["(SELECT 1)", 1],
    ["SELECT * FROM fresh TABLESAMPLE 10 ROWS", 10],
    ["SELECT * FROM fresh ASOF JOIN mixed ON fresh.at >= mixed.at", 200],
    ["SELECT (SELECT max(i) FROM mixed WHERE mixed.label = fresh.label) AS m FROM fresh LIMIT 2", 2],
    ['SELECT * FROM json_each(\'{"a": 1, "b": 2}\')', 2],
    ["SELECT label.upper().length() FROM fresh LIMIT 1", 1],
    ["SELECT 'a' COLLATE NOCASE = 'A'", 1],
    ["SELECT COLUMNS('i|l') FROM fresh LIMIT 1", 1],
  ])("%s", async (sql, count) => {
    // SHOW TABLES lists what the other tests added as well.
    const minimum = sql.includes("SHOW TABLES") ? 6 : count;
    const got = await rows(sql);
    expect(got.length).toBeGreaterThanOrEqual(minimum);
    expect(got.length).toBeLessThanOrEqual(count);
  });

  test("PIVOT names its columns by the values found", async () => {
    const sql = "PIVOT (SELECT label, ok FROM fresh) ON label USING count(*) GROUP BY ok ORDER BY ok NULLS FIRST";
    expect(await rows(sql)).toEqual(
      await rows(
        `SELECT ok, ${["alpha", "beta", "gamma"].map(pivoted).join(", ")} FROM fresh GROUP BY ok ORDER BY ok NULLS FIRST`,
      ),
    );
  });

  test("EXPLAIN shows no path of the server", async () => {
    for (const table of ["fresh", "sealed", "mixed"]) {
      const text = await harness.text(`EXPLAIN ANALYZE SELECT * FROM ${table} WHERE i > 3`);
      expect(text).not.toContain(harness.folder);
    }
  });
});

describe("errors", () => {
  test.each([
    ["selec 1", "parse_error", 1, 1],
    ["SELECT at,\n  at FRM fresh x y", "parse_error", 2, undefined],
    ["SELECT\n  lable\nFROM fresh", "invalid_query", 2, 3],
    ["SELECT 'ü', at, lable FROM fresh", "invalid_query", 1, 17],
    ["SELECT\n\tnosuch(at) FROM fresh", "invalid_query", 2, 2],
    ["SELECT * FROM\n frehs", "table_not_found", 2, 2],
    ["SELECT * FROM fresh WHERE label = 3 + 'x'", "invalid_query", undefined, undefined],
    ["SELECT CAST('x' AS INT)", "execution_error", undefined, undefined],
    ["SELECT 1 FROM fresh GROUP BY nosuch", "invalid_query", 1, 30],
    ["SELECT sum(label) FROM fresh", "invalid_query", 1, 8],
    ["SELECT i, count(*) FROM fresh", "invalid_query", 1, 8],
    ["SELECT lable, at - INTERVAL 1 HOUR FROM fresh", "invalid_query", 1, 8],
    ["SELECT error('mine')", "execution_error", undefined, undefined],
    ["", "parse_error", undefined, undefined],
    ["-- nothing", "parse_error", undefined, undefined],
    ["SELECT '\u0000'", "parse_error", 1, 9],
  ])("%s", async (sql, code, line, column) => {
    const error = await failure(sql);
    expect(error).toMatchObject({ name: "EngineError", code });
    expect({ line: line && error.details.line, column: column && error.details.column }).toEqual({ line, column });
  });

  test("suggest the nearest name", async () => {
    expect((await failure("SELECT lable FROM fresh")).details.suggestion).toBe("label");
    expect((await failure("FROM frehs")).details.suggestion).toBe("fresh");
    expect((await failure("SELECT cuont(*) FROM fresh")).details.suggestion).toBe("count");
    const unknown = await failure("SELECT 1", "defualt");
    expect(unknown).toMatchObject({ code: "database_not_found", details: { suggestion: "default" } });
  });

  test("leave the process good for the next query", async () => {
    const before = harness.pool.pids();
    for (const sql of [
      "selec",
      "SELECT nosuch FROM fresh",
      "SELECT CAST('x' AS INT)",
      "FROM nosuch",
      "SELECT 1; SELECT 2",
    ]) {
      await failure(sql);
      expect(await rows("SELECT count(*) AS n FROM fresh")).toEqual([{ n: 200 }]);
    }
    expect(harness.pool.pids()).toEqual(before);
  });

  test("deep nesting and long texts end in an error or an answer, never in the server", async () => {
    const deep = `SELECT ${"(".repeat(5_000)}1${")".repeat(5_000)}`;
    const chain = `SELECT ${Array.from({ length: 2_000 }, (_, i) => `i=${i}`).join(" OR ")} AS x FROM fresh LIMIT 1`;
    const nested = `SELECT * FROM ${"(SELECT * FROM ".repeat(800)}fresh${")".repeat(800)}`;
    for (const sql of [deep, chain, nested]) {
      const outcome = await harness.text(sql).catch((error: EngineError) => error.name);
      expect(outcome).toMatch(/^(?:EngineError$|\{)/);
    }
    expect(await rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
  });
});

describe("a store without local paths", () => {
  test("extents are fetched for the query and, without a cache, deleted after it", async () => {
    const remote = createQueryHarness({ local: false, service: { cacheBytes: 0 } });
    try {
      await remote.addTable("default", "t", COLUMNS, [
        { format: "tlm", columns: COLUMNS, rows: rowsOf(0, 10) },
        { format: "parquet", columns: COLUMNS, rows: rowsOf(10, 20) },
      ]);
      expect(await remote.rows("SELECT count(*) AS n FROM t")).toEqual([{ n: 20 }]);
      expect(await remote.rows("SELECT count(*) AS n FROM t WHERE i > 12")).toEqual([{ n: 7 }]);
      rmSync(remote.path("default/t/0.tlm"));
      await expect(remote.text("FROM t")).rejects.toMatchObject({
        code: "query_failed",
        message: "the data of extent extent-0 is missing",
      });
      expect(await remote.rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
    } finally {
      await remote.close();
    }
  });
});
