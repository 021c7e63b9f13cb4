import { assert, asyncProperty, boolean, integer, option } from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ColumnSpec } from "../../format/types.ts";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";

const COLUMNS: ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "n", type: { kind: "int" } },
  { name: "items", type: { kind: "dynamic" } },
];
/** Extents overlap, some lie within others, and some times are there often. */
const EXTENTS = Array.from({ length: 24 }, (_, i) =>
  Array.from({ length: 1 + ((i * 7) % 5) }, (_, j) => ({
    at: BigInt((i * 13 + j * ((i % 4) * 9)) % 200),
    n: i,
    items: [],
  })),
);
const TIMES = EXTENTS.flatMap((rows) => rows.map(({ at }) => at)).sort((a, b) => Number(a - b));

let harness: QueryHarness;
beforeAll(async () => {
  harness = createQueryHarness();
  const extents = EXTENTS.map((rows) => ({ format: "tlm" as const, columns: COLUMNS, rows }));
  await harness.addTable("default", "t", COLUMNS, extents);
});
afterAll(() => harness.close());

async function run(sql: string): Promise<{ rows: Record<string, unknown>[]; opened: number }> {
  const before = harness.opened.length;
  const rows = await harness.rows(sql);
  return { rows, opened: harness.opened.length - before };
}

test("the newest and the oldest rows are right, whatever was left out", async () => {
  const bound = option(integer({ min: -5, max: 210 }), { nil: undefined });
  let left = 0;
  const isRight = asyncProperty(
    bound,
    bound,
    integer({ min: 0, max: 30 }),
    integer({ min: 0, max: 10 }),
    boolean(),
    async (from, to, limit, offset, newest) => {
      const bounds = [
        from === undefined ? [] : `"at" >= make_timestamp_ns(${from})`,
        to === undefined ? [] : `"at" < make_timestamp_ns(${to})`,
      ].flat();
      const where = bounds.length === 0 ? "" : `WHERE ${bounds.join(" AND ")}`;
      const { rows, opened } = await run(
        `SELECT epoch_ns("at") AS ns FROM t ${where} ORDER BY "at" ${newest ? "DESC" : ""} LIMIT ${limit} OFFSET ${offset}`,
      );
      const inRange = TIMES.filter((at) => at >= BigInt(from ?? -99) && at < BigInt(to ?? 999));
      const expected = (newest ? inRange.toReversed() : inRange).slice(offset, offset + limit);
      if (opened < EXTENTS.length) left++;
      return JSON.stringify(rows.map((row) => row["ns"])) === JSON.stringify(expected.map(Number));
    },
  );
  await assert(isRight, { numRuns: 150, seed: 5 });
  expect(left).toBeGreaterThan(50);
});

test("the newest and the oldest time are right, whatever was left out", async () => {
  const bound = option(integer({ min: -5, max: 210 }), { nil: undefined });
  let left = 0;
  const isRight = asyncProperty(bound, bound, boolean(), async (from, to, newest) => {
    const bounds = [
      from === undefined ? [] : `"at" >= make_timestamp_ns(${from})`,
      to === undefined ? [] : `"at" < make_timestamp_ns(${to})`,
    ].flat();
    const where = bounds.length === 0 ? "" : `WHERE ${bounds.join(" AND ")}`;
    const { rows, opened } = await run(`SELECT epoch_ns(${newest ? "max" : "min"}("at")) AS ns FROM t ${where}`);
    const inRange = TIMES.filter((at) => at >= BigInt(from ?? -99) && at < BigInt(to ?? 999));
    const expected = inRange.at(newest ? -1 : 0);
    if (opened < EXTENTS.length) left++;
    return rows.length === 1 && rows[0]?.["ns"] === (expected === undefined ? null : Number(expected));
  });
  await assert(isRight, { numRuns: 100, seed: 5 });
  expect(left).toBeGreaterThan(50);
});

test.for([
  ["SELECT max(at) FROM t", true],
  ["SELECT min(l.at) AS first FROM t AS l", true],
  ["SELECT max(at) - INTERVAL 1 HOUR AS a, epoch_ms(max(at)) AS b, now() - max(at) AS c FROM t", true],
  ["SELECT max(at) FROM t GROUP BY ()", true],
  ["SELECT x.m FROM (SELECT min(at) AS m FROM t) AS x", true],
  ["SELECT min(at), max(at) FROM t", false],
  ["SELECT max(at), count(*) FROM t", false],
  ["SELECT max(at) FILTER (WHERE n < 20) FROM t", false],
  ["SELECT max(at, 2) FROM t", false],
  ["SELECT max(n) FROM t", false],
  ["SELECT max(at) FROM t GROUP BY n", false],
  ["SELECT max(at) FROM t GROUP BY ALL HAVING count(*) > 1", false],
  ["SELECT max(at) FROM t WHERE n % 3 = 0", false],
  ["SELECT max(at) OVER () FROM t", false],
  ["SELECT max(l.at) FROM t AS l, t AS r", false],
  ["SELECT max(at) FROM t TABLESAMPLE 50%", false],
  ["SELECT * FROM t ORDER BY at DESC LIMIT 2", true],
  ["SELECT l.n + 1 AS m, at FROM t AS l ORDER BY l.at LIMIT 2", true],
  ["SELECT * EXCLUDE (n) FROM t ORDER BY at DESC, n LIMIT 2", true],
  ["SELECT x.n FROM (FROM t ORDER BY at DESC LIMIT 2) AS x", true],
  ["SELECT n, count(*) OVER () AS c FROM t ORDER BY at DESC LIMIT 2", false],
  ["SELECT unnest([n, n]) AS u FROM t ORDER BY at DESC LIMIT 2", false],
  ["SELECT DISTINCT at FROM t ORDER BY at DESC LIMIT 2", false],
  ["SELECT make_timestamp_ns(n) AS at FROM t ORDER BY at DESC LIMIT 2", false],
  ["SELECT * REPLACE (make_timestamp_ns(n) AS at) FROM t ORDER BY at DESC LIMIT 2", false],
  ["SELECT * RENAME (n AS at, at AS n) FROM t ORDER BY at DESC LIMIT 2", false],
  ["SELECT at, count(*) AS c FROM t GROUP BY at ORDER BY at DESC LIMIT 2", false],
  ["SELECT * FROM t WHERE n % 2 = 0 ORDER BY at DESC LIMIT 2", false],
  ["SELECT * FROM t ORDER BY n, at LIMIT 2", false],
  ["SELECT * FROM t ORDER BY at DESC LIMIT 10%", false],
  ["SELECT * FROM t TABLESAMPLE 50% ORDER BY at DESC LIMIT 2", false],
  ["SELECT l.n FROM t AS l, t AS r ORDER BY l.at DESC LIMIT 2", false],
  ["SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY n) = 1 ORDER BY at DESC LIMIT 2", false],
] as const)("%s leaves out extents: %s", async ([sql, expected]) => {
  const before = harness.opened.length;
  // Some do not bind once they are planned.
  await harness.text(sql).catch(() => "");
  expect(harness.opened.length - before < EXTENTS.length).toBe(expected);
});
