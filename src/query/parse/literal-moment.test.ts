import {
  array,
  assert,
  asyncProperty,
  constant,
  constantFrom,
  integer,
  oneof,
  tuple,
  type Arbitrary,
} from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { loadDuckDb, quoteText, runSql, type Connection, type DuckDb } from "../../io/duckdb/duckdb.ts";
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
  return literalMoment(expression ?? {});
}

async function duckdbMomentOf(sql: string): Promise<bigint | undefined> {
  const [row] = await runSql(duckdb, connection, `SELECT epoch_ns(TRY_CAST(${sql} AS TIMESTAMP_NS))`);
  return row?.[0] === null || row?.[0] === undefined ? undefined : BigInt(row[0]);
}

const DIGITS = Array.from({ length: 10 }, (_, digit) => String(digit));
const digits = (length: number): Arbitrary<string> =>
  array(constantFrom(...DIGITS), { minLength: length, maxLength: length }).map((all) => all.join(""));
const dates = tuple(integer({ min: 1600, max: 2300 }), integer({ min: 0, max: 13 }), integer({ min: 0, max: 32 })).map(
  (parts) => parts.map((part) => String(part).padStart(2, "0")).join("-"),
);
const times = tuple(integer({ min: 0, max: 24 }), integer({ min: 0, max: 60 }), integer({ min: 0, max: 60 })).map(
  (parts) => parts.map((part) => String(part).padStart(2, "0")).join(":"),
);
const fractions = oneof(
  constant(""),
  integer({ min: 1, max: 9 })
    .chain(digits)
    .map((text) => `.${text}`),
);
const texts = oneof(
  dates,
  tuple(dates, constantFrom(" ", "T"), times, fractions, constantFrom("", "Z")).map((parts) => parts.join("")),
);
const wraps = constantFrom("", "TIMESTAMP ", "DATE ");

test("a moment that is read without DuckDB is the one that DuckDB reads", async () => {
  let read = 0;
  const isSame = asyncProperty(wraps, texts, async (wrap, text) => {
    const sql = `${wrap}${quoteText(text)}`;
    const moment = await momentOf(sql);
    if (moment === undefined) return true;
    read++;
    return moment === (await duckdbMomentOf(sql));
  });
  await assert(isSame, { numRuns: 1_000, seed: 5 });
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
