import { afterAll, beforeAll, expect, test } from "vitest";
import type { ColumnSpec } from "../../format/types.ts";
import { loadDuckDb, runSql, type Connection, type DuckDb } from "../../io/duckdb/duckdb.ts";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";

const COLUMNS: ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "n", type: { kind: "int" } },
];
const NS_PER_DAY = 86_400_000_000_000n;

/** Around every kind of boundary, on both sides of 1970, and near the ends of what nanoseconds reach. */
const MOMENTS = [
  0n,
  946_857_600n,
  1_704_067_200n,
  -1_000_000_000n,
  1_769_817_599n,
  -9_210_000_000n,
  9_223_200_000n,
].flatMap((seconds) =>
  [-1_000_000_000n, -999n, -1n, 0n, 1n, 999_999_999n, 3_599_999_999_999n, NS_PER_DAY - 1n].map(
    (offset) => seconds * 1_000_000_000n + offset,
  ),
);

let harness: QueryHarness;
let duckdb: DuckDb;
let connection: Connection;
beforeAll(async () => {
  duckdb = await loadDuckDb();
  connection = await duckdb.connect(await duckdb.open(":memory:"));
  harness = createQueryHarness();
  const rows = MOMENTS.map((at, n) => ({ at, n }));
  await harness.addTable("default", "t", COLUMNS, [{ format: "tlm", columns: COLUMNS, rows }]);
});
afterAll(() => harness.close());

/** The same moments rounded down to microseconds, which is what DuckDB's own functions work on. */
const micros = MOMENTS.map((ns) => (ns - (((ns % 1000n) + 1000n) % 1000n)) / 1000n);

test.for([
  ...["second", "minutes", "HOUR", "day", "week", "month"].map((unit) => `date_trunc('${unit}', at)`),
  ...["1 second", "7 seconds", "15 minutes", "90 minutes", "6 hours", "1 day", "5 days", "2 weeks", "40 days"].map(
    (width) => `time_bucket(INTERVAL '${width}', at)`,
  ),
  "time_bucket(INTERVAL 15 MINUTE, at)",
  "time_bucket(INTERVAL '1 hour', at)",
  "time_bucket(INTERVAL 1 MONTH, at)",
  "time_bucket(INTERVAL 1 DAY, at, INTERVAL 1 HOUR)",
])("%s is what DuckDB makes of microseconds", async (expression) => {
  const ours = await harness.rows(`SELECT CAST(CAST(${expression} AS TIMESTAMP) AS VARCHAR) AS m FROM t ORDER BY n`);
  const values = micros.map((us, n) => `(${n}, make_timestamp(${us}))`).join(", ");
  const sql = `SELECT CAST(${expression.replace("at)", `"at")`).replace("at,", `"at",`)} AS VARCHAR)
    FROM (VALUES ${values}) AS t(n, "at") ORDER BY n`;
  const theirs = await runSql(duckdb, connection, sql);
  expect(ours.map((row) => [row["m"]])).toEqual(theirs);
});

test("keeps the name that the expression had, and groups by it", async () => {
  const sql = "SELECT date_trunc('hour', at), count(*) AS n FROM t GROUP BY date_trunc('hour', at) ORDER BY 1 LIMIT 1";
  const [row] = await harness.rows(sql);
  expect(Object.keys(row ?? {})).toEqual([`date_trunc('hour', "at")`, "n"]);
});

test("a width of zero is DuckDB's to refuse", async () => {
  await expect(harness.rows("SELECT time_bucket(INTERVAL 0 MINUTE, at) FROM t")).rejects.toThrow(
    "Period must be greater than 0",
  );
});
