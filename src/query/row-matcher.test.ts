import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ANONYMOUS } from "../auth/caller.ts";
import type { ColumnSpec } from "../format/types.ts";
import { systemClock } from "../core/clock.ts";
import { loadDuckDb, quoteText, runSql } from "../io/duckdb/duckdb.ts";
import { createQueryHarness, type QueryHarness } from "./query.test-kit.ts";
import { RowMatcher, type RowMatchRequest } from "./row-matcher.ts";

let harness: QueryHarness;
let matcher: RowMatcher;

const at: ColumnSpec = { name: "at", type: { kind: "timestamp" } };
const text = (name: string): ColumnSpec => ({ name, type: { kind: "string" } });
const COLUMNS = [at, text("who"), text("extent"), text("select")];
const NOW_NS = BigInt(systemClock.nowMs()) * 1_000_000n;
const row = (who: string | null, seconds = 0) => ({
  at: NOW_NS - BigInt(seconds) * 1_000_000_000n,
  ...(who !== null && { who }),
  extent: `of ${who}`,
  select: "x",
});

beforeAll(async () => {
  harness = createQueryHarness();
  matcher = new RowMatcher(() => Promise.resolve(harness.service));
  await harness.addTable("default", "t", COLUMNS, [
    { format: "tlm", columns: COLUMNS, rows: [row("a"), row("b", 9), row(null)] },
    { format: "parquet", columns: COLUMNS, rows: [row("a"), row("a", 5)] },
    { format: "parquet", columns: COLUMNS, rows: [row("b")] },
    { format: "tlm", columns: [at], rows: [row("never")], snapshot: 2 },
    { format: "tlm", columns: COLUMNS, rows: [row("a")], snapshot: 3 },
  ]);
  await harness.addTable("default", "secrets", COLUMNS, [{ format: "tlm", columns: COLUMNS, rows: [row("s")] }]);
  // Rows past their retention are deleted like others: nothing is left out that nobody sees.
  harness.setRetention("t", 1);
});
afterAll(() => harness.close());

const ALL = ["extent-0", "extent-1", "extent-2", "extent-3"];

function asking(where: string, more: Partial<RowMatchRequest> = {}): RowMatchRequest {
  const signal = new AbortController().signal;
  const request = { caller: ANONYMOUS, database: "default", requestId: "test", signal };
  return { ...request, table: "t", where, extentIds: ALL, snapshot: 2, ...more };
}

const count = async (where: string, more: Partial<RowMatchRequest> = {}) =>
  Object.fromEntries((await matcher.count(asking(where, more))).entries());

let files = 0;

async function others(where: string, more: Partial<RowMatchRequest> = {}) {
  const path = join(harness.folder, "tmp", `others-${files++}.parquet`);
  const rows = await matcher.writeOthers(asking(where, more), path);
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  const sql = `SELECT who FROM read_parquet(${quoteText(path)}) ORDER BY who NULLS FIRST`;
  const read = await runSql(duckdb, connection, sql);
  expect(read).toHaveLength(rows);
  return read.map(([who]) => who);
}

test.each<[string, Record<string, number>, (string | null)[]]>([
  ["who = 'a'", { "extent-0": 1, "extent-1": 2 }, [null, null, "b", "b"]],
  ["who = 'a' OR who IS NULL", { "extent-0": 2, "extent-1": 2, "extent-3": 1 }, ["b", "b"]],
  ["true", { "extent-0": 3, "extent-1": 2, "extent-2": 1, "extent-3": 1 }, []],
  ["who = 'nobody'", {}, [null, null, "a", "a", "a", "b", "b"]],
  ["who > NULL", {}, [null, null, "a", "a", "a", "b", "b"]],
  [
    "at >= TIMESTAMP '2000-01-01' AND at < TIMESTAMP '2200-01-01'",
    { "extent-0": 3, "extent-1": 2, "extent-2": 1, "extent-3": 1 },
    [],
  ],
  ["extent = 'of a' AND \"select\" = 'x' -- and that is all", { "extent-0": 1, "extent-1": 2 }, [null, null, "b", "b"]],
  ["t.who IN ('a', 'b')", { "extent-0": 2, "extent-1": 2, "extent-2": 1 }, [null, null]],
  ["len(list_filter(['a'], lambda x: x = who)) = 1", { "extent-0": 1, "extent-1": 2 }, [null, null, "b", "b"]],
  ["1 = 1) OR (who = 'a'", { "extent-0": 3, "extent-1": 2, "extent-2": 1, "extent-3": 1 }, []],
  ["who = 'a') IS NULL OR (false", { "extent-0": 1, "extent-3": 1 }, ["a", "a", "a", "b", "b"]],
])("finds the rows that match, and all others: %s", async (where, matching, left) => {
  expect(await count(where)).toEqual(matching);
  expect(await others(where)).toEqual(left);
});

test("looks at those extents only, at that snapshot", async () => {
  expect(await count("who = 'a'", { extentIds: ["extent-1"] })).toEqual({ "extent-1": 2 });
  expect(await count("who = 'a'", { extentIds: ["extent-4", "unknown"], snapshot: 2 })).toEqual({});
  expect(await count("who = 'a'", { extentIds: ["extent-4"], snapshot: 3 })).toEqual({ "extent-4": 1 });
  expect(await others("false", { extentIds: ["extent-2"] })).toEqual(["b"]);
  expect(await others("false", { extentIds: [] })).toEqual([]);
});

describe("refuses", () => {
  test.each<[string, RegExp]>([
    ["who IN (SELECT who FROM secrets)", /no sub-query/],
    ["EXISTS (FROM secrets)", /no sub-query/],
    ["(SELECT true)", /no sub-query/],
    ["at < now() - INTERVAL 30 DAY", /instead of now/],
    ["at < current_timestamp", /instead of current_timestamp/],
    ["at::DATE < today()", /instead of today/],
    ["random() < 0.5", /instead of random/],
    ["uuid() = who", /instead of uuid/],
    ["row_number() OVER () = 1", /no window function/],
    ["COLUMNS(*) = 'a'", /columns by their names/],
    ["true) GROUP BY (who", /one expression/],
    ["true) UNION ALL SELECT 1 FROM secrets WHERE (true", /one expression/],
    ["true) ORDER BY (who", /one expression/],
    ["true) LIMIT (1", /one expression/],
    ["true) QUALIFY (true", /one expression|takes/],
    ["true); DROP TABLE t; --", /one statement/],
    ["true)", /syntax|parse/i],
    ["(true", /syntax|parse/i],
    ["true /*", /syntax|comment|parse|unterminated/i],
    ["", /syntax|parse/i],
    ["who = 'a', who = 'b'", /cast|boolean/i],
    ["read_text('/etc/passwd') = who", /no function read_text/],
    ["getenv('HOME') = who", /no function getenv/],
    ["count(*) > 1", /aggregate/i],
    ["missing = 1", /missing/],
    ["secrets.who = 'a'", /secrets/],
    ["who = ?", /parameters/],
    ["who::BIGINT > 1", /convert|cast/i],
    ["who = 'a' AND \0", /NUL/],
  ])("%s", async (where, reason) => {
    await expect(count(where)).rejects.toThrow(reason);
    await expect(others(where)).rejects.toThrow(reason);
  });

  test("and says where", async () => {
    await expect(count("who = 'a'\n  AND now() > at")).rejects.toMatchObject({ details: { line: 2 } });
    await expect(count("who = 'a' AND missing = 1")).rejects.toMatchObject({ details: { line: 1, column: 15 } });
  });

  test("a table that is not there, and one of another's database", async () => {
    await expect(count("true", { table: "absent" })).rejects.toMatchObject({ code: "table_not_found" });
    await expect(count("true", { table: 'a" WHERE true --' })).rejects.toMatchObject({ code: "table_not_found" });
    await expect(count("true", { table: "system.tables" })).rejects.toMatchObject({ code: "table_not_found" });
    const caller = { ...ANONYMOUS, databases: ["other"] };
    await expect(count("true", { caller })).rejects.toMatchObject({ code: "database_not_found" });
  });
});
