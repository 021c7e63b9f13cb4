import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ColumnSpec } from "../../format/types.ts";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";

/** Instants keep their nanoseconds wherever a query can see that they are instants. */

const COLUMNS: ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "seen", type: { kind: "timestamp" } },
  { name: "n", type: { kind: "int" } },
];

const NOON_NS = 1_704_110_400_000_000_001n;

let harness: QueryHarness;

beforeAll(async () => {
  harness = createQueryHarness();
  const rows = [
    { at: NOON_NS, seen: null, n: 1 },
    // One nanosecond before a second: towards 1970 it would round into the next one.
    { at: -1n, seen: -86_400_000_000_001n, n: 2 },
  ];
  await harness.addTable("default", "t", COLUMNS, [{ format: "tlm", columns: COLUMNS, rows }]);
});

afterAll(() => harness.close());

const value = async (expression: string, from = "t WHERE n = 1"): Promise<unknown> => {
  const [row] = await harness.rows(`SELECT ${expression} AS value FROM ${from}`);
  return row?.["value"];
};

describe("a shift by an interval", () => {
  test.each([
    ["coalesce(seen, at) - INTERVAL 1 HOUR", "2024-01-01T11:00:00.000000001Z"],
    ["ifnull(seen, at) - INTERVAL 1 HOUR", "2024-01-01T11:00:00.000000001Z"],
    ["CASE WHEN n = 2 THEN seen ELSE at END - INTERVAL 1 HOUR", "2024-01-01T11:00:00.000000001Z"],
    ["if(n = 1, at, seen) - INTERVAL 1 HOUR", "2024-01-01T11:00:00.000000001Z"],
    ["CASE WHEN n = 1 THEN at END - INTERVAL 1 HOUR", "2024-01-01T11:00:00.000000001Z"],
    ["greatest('2023-01-01', at) - INTERVAL 1 HOUR", "2024-01-01T11:00:00.000000001Z"],
    ["nullif(at, seen) - INTERVAL 1 HOUR", "2024-01-01T11:00:00.000000001Z"],
    ["median(at) - INTERVAL 1 HOUR", "2024-01-01T11:00:00.000000001Z"],
    ["max_by(at, n) - INTERVAL 1 HOUR", "2024-01-01T11:00:00.000000001Z"],
    ["make_timestamp_ns(epoch_ns(at) + 1) - INTERVAL 1 HOUR", "2024-01-01T11:00:00.000000002Z"],
    ["INTERVAL 1 DAY + (at - INTERVAL 1 HOUR)", "2024-01-02T11:00:00.000000001Z"],
    ["at + INTERVAL 1 MONTH - INTERVAL 1 MONTH", "2024-01-01T12:00:00.000000001Z"],
    ["avg(at) - INTERVAL 1 HOUR", "2024-01-01T11:00:00Z"],
  ])("%s", async (expression, expected) => {
    expect(await value(expression)).toBe(expected);
  });

  test.each([
    ["WITH q(x, y) AS (SELECT n, at FROM t) SELECT y - INTERVAL 1 HOUR AS value FROM q WHERE x = 1"],
    ["SELECT y - INTERVAL 1 HOUR AS value FROM (SELECT n, at FROM t) AS d(x, y) WHERE x = 1"],
    [
      "SELECT y - INTERVAL 1 HOUR AS value FROM (SELECT at, n FROM t UNION ALL FROM t SELECT at, n) AS d(y) WHERE n = 1 LIMIT 1",
    ],
    [
      "WITH q AS (SELECT TIMESTAMPTZ '2024-01-01 12:00:00.000000001+00' AS z) SELECT z - INTERVAL 1 HOUR AS value FROM q",
    ],
    ["SELECT y - INTERVAL 1 HOUR AS value FROM t AS l(y, s, x) WHERE x = 1"],
    [
      "WITH q AS (SELECT n, max(at) AS m FROM t GROUP BY n) SELECT y - INTERVAL 1 HOUR AS value FROM q l(x, y) WHERE x = 1",
    ],
    ["WITH t AS (SELECT n, at FROM t) SELECT y - INTERVAL 1 HOUR AS value FROM t AS l(x, y) WHERE x = 1"],
  ])("knows the column by its new name: %s", async (sql) => {
    expect(await harness.rows(sql)).toEqual([{ value: "2024-01-01T11:00:00.000000001Z" }]);
  });

  test("rounds down before 1970 as well", async () => {
    const before = "t WHERE n = 2";
    expect(await value("at - INTERVAL 1 HOUR", before)).toBe("1969-12-31T22:59:59.999999999Z");
    expect(await value("date_trunc('second', at)", before)).toBe("1969-12-31T23:59:59Z");
    expect(await value("time_bucket(INTERVAL 1 DAY, seen)", before)).toBe("1969-12-30T00:00:00Z");
    const ends = "(VALUES (-9223286400000000001), (9223372036854775806)) AS ends(ns)";
    expect(await harness.rows(`SELECT date_trunc('second', make_timestamp_ns(ns)) AS s FROM ${ends}`)).toEqual([
      { s: "1677-09-21T23:59:59Z" },
      { s: "2262-04-11T23:47:16Z" },
    ]);
  });

  test("many times over stays small", async () => {
    const chain = `at${" + INTERVAL 1 DAY - INTERVAL 1 DAY".repeat(20)}`;
    expect(await value(chain)).toBe("2024-01-01T12:00:00.000000001Z");
    const nested = ["hour", "day"].reduce(
      (inner, unit) => `date_trunc('${unit}', time_bucket(INTERVAL 1 SECOND, ${inner} - INTERVAL 1 SECOND))`,
      "at",
    );
    expect(await value(nested)).toBe("2024-01-01T00:00:00Z");
  });
});

test("constants of a rewritten query are the ones that were written", async () => {
  const line = (sql: string): Promise<string> =>
    harness.text(`SELECT ${sql}, at - INTERVAL 1 HOUR AS t FROM t WHERE n = 1`);
  const rest = '"t":"2024-01-01T11:00:00.000000001Z"}\n';
  expect(await line("1e3 AS a, 1000.0 AS b, -0.0::DOUBLE AS c, 100::DOUBLE AS d")).toBe(
    `{"a":1000.0,"b":1000.0,"c":-0.0,"d":100.0,${rest}`,
  );
  expect(await line("0::DOUBLE AS a, 5e-324 AS b, 1.7976931348623157e308 AS c")).toBe(
    `{"a":0.0,"b":5e-324,"c":1.7976931348623157e308,${rest}`,
  );
  expect(
    await line("9223372036854775807 AS a, 170141183460469231731687303715884105727 AS b, 0.1234567890123456789 AS c"),
  ).toBe(`{"a":9223372036854775807,"b":170141183460469231731687303715884105727,"c":0.1234567890123456789,${rest}`);
});

describe("PIVOT without its values", () => {
  test("looks for them with instants as everywhere else", async () => {
    const sql =
      "PIVOT (SELECT at, n FROM t WHERE at > TIMESTAMPTZ '2024-01-01 00:00:00+00') ON n USING max(at - INTERVAL 1 HOUR)";
    expect(await harness.rows(sql)).toEqual([{ "1": "2024-01-01T11:00:00.000000001Z" }]);
  });

  test("looks for them at the snapshot of its source", async () => {
    const format = "tlm";
    const rowOf = (n: number) => ({ at: NOON_NS, seen: null, n });
    await harness.addTable("default", "travelled", COLUMNS, [
      { format, columns: COLUMNS, rows: [rowOf(1)], snapshot: 1 },
      { format, columns: COLUMNS, rows: [rowOf(2)], snapshot: 2 },
    ]);
    const pivot = (from: string): Promise<unknown> => harness.rows(`${from} ON n USING count(*) GROUP BY seen`);
    expect(await pivot("PIVOT travelled AT (VERSION => 1)")).toEqual([{ seen: null, "1": 1 }]);
    expect(await pivot("WITH q AS (FROM travelled AT (VERSION => 1)) PIVOT_WIDER q")).toEqual([{ seen: null, "1": 1 }]);
    expect(await pivot("PIVOT travelled")).toEqual([{ seen: null, "1": 1, "2": 1 }]);
  });
});

test("a name that is no instant does no harm to a table read at a snapshot", async () => {
  const sql = "SELECT d.at - INTERVAL 1 DAY AS x FROM (SELECT INTERVAL 3 DAY AS at) d, t AT (VERSION => 1) WHERE n = 1";
  expect(await harness.rows(sql)).toEqual([{ x: "2 days" }]);
});

test("nor does it undo what is certain", async () => {
  const sql = `SELECT quantile_cont(d.seen, 0.5) AS q, max(a) > TIMESTAMPTZ '2024-01-01 00:00:00+00' AS later
    FROM (SELECT n * 1.5::DOUBLE AS seen, at AS a FROM t) AS d`;
  expect(await harness.rows(sql)).toEqual([{ q: 2.25, later: true }]);
});
