import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ColumnSpec } from "../../format/types.ts";
import { loadDuckDb, quoteText, runSql, type Connection, type DuckDb } from "./duckdb.ts";
import { parquetFrom } from "./parquet.ts";
import { tlmFixture, type FixtureRow } from "./tlm.test-kit.ts";

const COLUMNS: readonly (ColumnSpec & { id: number })[] = [
  { id: 1, name: "at", type: { kind: "timestamp" } },
  { id: 7, name: "Seen", type: { kind: "timestamp" } },
  { id: 3, name: "n", type: { kind: "int" } },
  { id: 4, name: "d", type: { kind: "dynamic" } },
  { id: 5, name: "v", type: { kind: "vector", dimensions: 2 } },
];
const IDS = new Map(COLUMNS.map(({ name, id }) => [name.toLowerCase(), id]));

let folder: string;
let duckdb: DuckDb;
let connection: Connection;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "engine-parquet-test-"));
  duckdb = await loadDuckDb();
  connection = await duckdb.connect(await duckdb.open(":memory:"));
  await duckdb.query(connection, "SET TimeZone = 'UTC'");
});
afterAll(() => {
  duckdb.disconnect_sync(connection);
  rmSync(folder, { recursive: true });
});

const rowsOf = (stepNs: bigint): FixtureRow[] =>
  Array.from({ length: 3_000 }, (_, n) => ({
    at: BigInt(n - 1_500) * stepNs,
    Seen: n % 3 === 0 ? null : BigInt(n) * 1_000n,
    n: n * 1_000,
    d: JSON.stringify({ n }),
    v: [n, 1],
  }));

async function written(stepNs: bigint, options: Parameters<typeof parquetFrom>[1]) {
  const parquet = await parquetFrom(tlmFixture(COLUMNS, rowsOf(stepNs)), options);
  const path = join(folder, "t.parquet");
  writeFileSync(path, parquet.bytes);
  const { bytes: _bytes, ...said } = parquet;
  return { said, file: quoteText(path) };
}

const SCHEMA = "SELECT name, type, repetition_type, logical_type, CAST(field_id AS BIGINT) FROM parquet_schema";

const timestamp = (unit: "MICROS" | "NANOS", isUtc: 0 | 1): RegExp =>
  new RegExp(`isAdjustedToUTC=${isUtc}.*${unit}=(?!<null>)`);

test("times that are whole microseconds are those, in UTC, under the column's own id", async () => {
  const { said, file } = await written(1_000n, { ids: IDS });
  expect(said).toEqual({ formatVersion: 2, nanosecondColumns: [] });
  expect(await runSql(duckdb, connection, `${SCHEMA}(${file}) OFFSET 1`)).toEqual([
    ["at", "INT64", "OPTIONAL", expect.stringMatching(timestamp("MICROS", 1)), "1"],
    ["Seen", "INT64", "OPTIONAL", expect.stringMatching(timestamp("MICROS", 1)), "7"],
    ["n", "INT32", "OPTIONAL", null, "3"],
    ["d", "BYTE_ARRAY", "OPTIONAL", expect.stringContaining("Json"), "4"],
    ["v", null, "OPTIONAL", null, "5"],
    ["list", null, "REPEATED", null, null],
    ["element", "FLOAT", "OPTIONAL", null, "1000005"],
  ]);
  const wrong = `SELECT count(*) FILTER (epoch_us("at") <> n // 1000 - 1500) FROM read_parquet(${file})`;
  expect(await runSql(duckdb, connection, wrong)).toEqual([["0"]]);
});

test("finer ones are there as nanoseconds too, far from all ids, and rounded down as microseconds", async () => {
  const { said, file } = await written(1_001n, { ids: IDS });
  expect(said).toEqual({ formatVersion: 2, nanosecondColumns: ["at"] });
  const schema = await runSql(duckdb, connection, `${SCHEMA}(${file}) WHERE field_id % 2000000 IN (1, 7)`);
  expect(schema).toEqual([
    ["at", "INT64", "OPTIONAL", expect.stringMatching(timestamp("MICROS", 1)), "1"],
    ["Seen", "INT64", "OPTIONAL", expect.stringMatching(timestamp("MICROS", 1)), "7"],
    ["at\u001fns", "INT64", "OPTIONAL", expect.stringMatching(timestamp("NANOS", 0)), "2000001"],
  ]);
  const wrong = `SELECT count(*) FILTER (epoch_ns("at\u001fns") <> (n // 1000 - 1500) * 1001),
      count(*) FILTER (epoch_us("at") <> floor((n // 1000 - 1500) * 1.001)) FROM read_parquet(${file})`;
  expect(await runSql(duckdb, connection, wrong)).toEqual([["0", "0"]]);
});

test("a file with a column that has no id is of the version before", async () => {
  const { said, file } = await written(1_000n, { ids: new Map([...IDS].slice(1)) });
  expect(said).toEqual({ formatVersion: 1, nanosecondColumns: [] });
  const [at] = await runSql(duckdb, connection, `${SCHEMA}(${file}) OFFSET 1 LIMIT 1`);
  expect(at).toEqual(["at", "INT64", "OPTIONAL", expect.stringMatching(timestamp("NANOS", 0)), null]);
});

test("plain encodings are an option", async () => {
  const asked = `SELECT DISTINCT encodings FROM parquet_metadata`;
  const encodings = async (wanted?: "plain" | "v2") => {
    const { file } = await written(1_000n, { ids: IDS, encodings: wanted });
    const rows = await runSql(duckdb, connection, `${asked}(${file})`);
    return rows.flat().join().split(", ").join().split(",");
  };
  expect(await encodings()).toContain("DELTA_BINARY_PACKED");
  expect(await encodings("v2")).toContain("DELTA_BINARY_PACKED");
  for (const encoding of await encodings("plain"))
    expect(encoding).toMatch(/^(?:PLAIN|PLAIN_DICTIONARY|RLE_DICTIONARY)$/);
});
