import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { loadDuckDb, quoteText, runSql, type Connection, type DuckDb } from "../io/duckdb/duckdb.ts";
import { literalMoment } from "./literal-moment.ts";
import { parseTree, SqlParser } from "./sql-tree.ts";
import { objectsOf } from "./tree.ts";

let duckdb: DuckDb;
let connection: Connection;
let parser: SqlParser;
beforeAll(async () => {
  duckdb = await loadDuckDb();
  connection = await duckdb.connect(await duckdb.open(":memory:"));
  parser = await SqlParser.open(duckdb, 2 ** 28);
});

async function momentOf(sql: string): Promise<bigint | undefined> {
  const { tree } = await parseTree(parser, `SELECT ${sql}`);
  const [expression] = objectsOf(tree?.["select_list"]);
  return expression === undefined ? expect.fail("no expression") : literalMoment(expression);
}

async function duckdbMomentOf(sql: string): Promise<bigint | undefined> {
  const [row] = await runSql(duckdb, connection, `SELECT epoch_ns(TRY_CAST(${sql} AS TIMESTAMP_NS))`);
  return row?.[0] === null || row?.[0] === undefined ? undefined : BigInt(row[0]);
}

const digits = (length: number): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(..."0123456789"), { minLength: length, maxLength: length }).map((all) => all.join(""));
const dates = fc
  .tuple(fc.integer({ min: 1600, max: 2300 }), fc.integer({ min: 0, max: 13 }), fc.integer({ min: 0, max: 32 }))
  .map((parts) => parts.map((part) => String(part).padStart(2, "0")).join("-"));
const times = fc
  .tuple(fc.integer({ min: 0, max: 24 }), fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 60 }))
  .map((parts) => parts.map((part) => String(part).padStart(2, "0")).join(":"));
const fractions = fc.oneof(
  fc.constant(""),
  fc
    .integer({ min: 1, max: 9 })
    .chain(digits)
    .map((text) => `.${text}`),
);
const texts = fc.oneof(
  dates,
  fc.tuple(dates, fc.constantFrom(" ", "T"), times, fractions, fc.constantFrom("", "Z")).map((parts) => parts.join("")),
);
const wraps = fc.constantFrom("", "TIMESTAMP ", "DATE ");

test("a moment that is read without DuckDB is the one that DuckDB reads", async () => {
  let read = 0;
  const isSame = fc.asyncProperty(wraps, texts, async (wrap, text) => {
    const sql = `${wrap}${quoteText(text)}`;
    const moment = await momentOf(sql);
    if (moment === undefined) return;
    read++;
    expect(moment, sql).toBe(await duckdbMomentOf(sql));
  });
  await fc.assert(isSame, { numRuns: 1_000, seed: 5 });
  expect(read).toBeGreaterThan(200);
});

test.for([
  ["'2026-01-31'", 1_769_817_600_000_000_000n],
  ["TIMESTAMP '2026-01-31T12:00:00.5'", 1_769_860_800_500_000_000n],
  ["DATE '2026-01-31'", 1_769_817_600_000_000_000n],
  ["TIMESTAMP '2026-01-31 12:00:00.1234567'", undefined],
  ["'2026-02-30'", undefined],
  ["'2026-01-31 12:00:00+02'", undefined],
  ["now()", undefined],
  ["NULL", undefined],
  ["TIMESTAMPTZ '2026-01-31'", undefined],
] as const)("%s", async ([sql, expected]) => {
  expect(await momentOf(sql)).toBe(expected);
});
