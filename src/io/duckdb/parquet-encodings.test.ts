import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ColumnSpec } from "../../format/types.ts";
import { loadDuckDb, quoteText, runSql, type Connection, type DuckDb } from "./duckdb.ts";
import { encodingsFor, IntRanges } from "./parquet-encodings.ts";
import { tlmToParquet } from "./parquet.test-kit.ts";
import { tlmFixture, type FixtureRow } from "./tlm.test-kit.ts";

const COLUMNS: ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "code", type: { kind: "int" } },
];
/** More different values than a dictionary has. */
const ROWS = 30_000;
const HALF = 2 ** 30;

let folder: string;
let duckdb: DuckDb;
let connection: Connection;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "engine-encodings-"));
  duckdb = await loadDuckDb();
  connection = await duckdb.connect(await duckdb.open(":memory:"));
});
afterAll(() => {
  duckdb.disconnect_sync(connection);
  rmSync(folder, { recursive: true });
});

/** Every third row NULL, the others by turns at both ends of [from, to]. */
function extent(from: number, to: number): Uint8Array {
  const rows = Array.from({ length: ROWS }, (_, i): FixtureRow => {
    const code = i % 2 === 0 ? from + (i >> 1) : to - (i >> 1);
    return { at: BigInt(i), code: i % 3 === 2 ? null : code };
  });
  return tlmFixture(COLUMNS, rows, 20_000);
}

test.each([
  ["as far apart as 32 bits can tell", -HALF, HALF - 1, "DELTA_BINARY_PACKED"],
  ["further apart", -HALF, HALF, "PLAIN"],
  ["over all of their range", -(2 ** 31), 2 ** 31 - 1, "PLAIN"],
])("integers %s", async (_, from, to, encoding) => {
  const path = join(folder, `${to}.parquet`);
  writeFileSync(path, await tlmToParquet(extent(from, to)));
  const file = quoteText(path);
  const encodings = await runSql(
    duckdb,
    connection,
    `SELECT encodings FROM parquet_metadata(${file}) WHERE path_in_schema = 'code'`,
  );
  expect(encodings).toEqual([[encoding]]);
  const wanted = `CASE WHEN i % 3 = 2 THEN NULL WHEN i % 2 = 0 THEN ${from} + i // 2 ELSE ${to} - i // 2 END`;
  const wrong = await runSql(
    duckdb,
    connection,
    `SELECT count(*) FILTER (code IS DISTINCT FROM ${wanted}), count(*)::BIGINT
     FROM (SELECT code, epoch_ns("at") AS i FROM read_parquet(${file}))`,
  );
  expect(wrong).toEqual([["0", String(ROWS)]]);
});

test("what is near in each file may be far apart in all of them", async () => {
  const path = join(folder, "low.parquet");
  writeFileSync(path, await tlmToParquet(extent(-HALF, 0)));
  const ranges = new IntRanges(COLUMNS);
  const addLow = (): Promise<void> =>
    ranges.addSql(duckdb, connection, `read_parquet(${quoteText(path)})`, (name) => name === "code");
  expect([ranges.most, encodingsFor(ranges)]).toEqual([0, "v2"]);
  await addLow();
  expect([ranges.most, encodingsFor(ranges)]).toEqual([HALF, "v2"]);
  ranges.addTlm({ bytes: extent(0, HALF) });
  expect([ranges.most, encodingsFor(ranges)]).toEqual([2 * HALF, "plain"]);
});

test("files without the column, or without a value in it, say nothing", async () => {
  const ranges = new IntRanges(COLUMNS);
  ranges.addTlm({ bytes: tlmFixture(COLUMNS, [{ at: 1n, code: null }]) });
  ranges.addTlm({ bytes: tlmFixture(COLUMNS.slice(0, 1), [{ at: 1n }]) });
  await ranges.addSql(duckdb, connection, "(SELECT NULL::INTEGER AS code)", () => true);
  await ranges.addSql(duckdb, connection, "nowhere", () => false);
  expect([ranges.most, encodingsFor(ranges)]).toEqual([0, "v2"]);
});
