import { RecordBatchReader, type Table, tableFromIPC, type Utf8 } from "apache-arrow";
import { beforeAll, describe, expect, test } from "vitest";
import { messageBodyBytes } from "../../format/arrow-file.ts";
import { writeArrowStream } from "./arrow-stream.ts";
import { loadDuckDb, runSql, type Connection, type DuckDb } from "./duckdb.ts";

let duckdb: DuckDb;
let connection: Connection;
beforeAll(async () => {
  duckdb = await loadDuckDb();
  connection = await duckdb.connect(await duckdb.open(":memory:"));
});

async function streamOf(sql: string, maxBatchBytes?: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  await writeArrowStream(duckdb, connection, sql, (...batch) => pieces.push(Buffer.concat(batch)), {
    ...(maxBatchBytes !== undefined && { maxBatchBytes }),
  });
  return Buffer.concat(pieces);
}

/** Rows and bytes of each batch; the bytes of its body are all its buffers, padded. */
function batchesOf(stream: Buffer): { rows: number; bytes: number }[] {
  const lengths: { rows: number; bytes: number }[] = [];
  for (let at = 0; ;) {
    const headerBytes = stream.readUInt32LE(at + 4);
    if (headerBytes === 0) break;
    const bytes = messageBodyBytes(stream.subarray(at + 8, at + 8 + headerBytes));
    if (at > 0) lengths.push({ rows: 0, bytes });
    at += 8 + headerBytes + bytes;
  }
  const rows = [...RecordBatchReader.from(stream)].map(({ numRows }) => numRows);
  return lengths.map(({ bytes }, i) => ({ rows: rows[i] ?? 0, bytes }));
}

function rowsOf(table: Table): string[] {
  const shown = (_: string, value: unknown) => (typeof value === "bigint" ? `${value}n` : value);
  return table.toArray().map((row) => JSON.stringify(row, shown));
}

const EVERY_TYPE = `SELECT
  CASE WHEN i % 3 <> 0 THEN i % 2 = 0 END AS flag,
  i AS number,
  CASE WHEN i % 5 <> 0 THEN repeat('ü', (i * 7919) % 40) END AS words,
  CASE WHEN i % 7 <> 0 THEN [repeat('x', i % 9), NULL, 'y'] END AS texts,
  [[i, NULL], [], [i + 1]] AS nested,
  {'a': CASE WHEN i % 2 = 0 THEN i END, 'b': {'c': i::VARCHAR, 'd': i % 4 = 0}} AS record,
  MAP {'k': i, 'l': NULL} AS pairs,
  if(i % 4 = 1, NULL, [i, 0.5, NULL])::FLOAT[3] AS vector,
  (i / 8)::DECIMAL(20, 3) AS amount,
  make_timestamp_ns(i * 1000000007) AS moment,
  repeat('z', i % 11)::BLOB AS bytes,
  i::DOUBLE AS real
  FROM range(1500) AS r(i)`;

describe("batches", () => {
  test.each([1, 5_000, 100_000])("of at most %d bytes hold the same rows", async (maxBytes) => {
    const whole = await streamOf(EVERY_TYPE, Number.POSITIVE_INFINITY);
    const split = await streamOf(EVERY_TYPE, maxBytes);
    expect(rowsOf(tableFromIPC(split))).toEqual(rowsOf(tableFromIPC(whole)));
    const batches = batchesOf(split);
    // Each of some fifty buffers is padded, whatever is in it.
    const padding = 50 * 100;
    expect(batches.filter(({ rows, bytes }) => rows > 1 && bytes > maxBytes + padding)).toEqual([]);
    expect(batches.reduce((sum, { rows }) => sum + rows, 0)).toBe(1_500);
  });

  test("fill most of the 2 MiB that they may have", async () => {
    const sql = "SELECT i AS a, i::VARCHAR AS b, repeat('x', 100) AS c FROM range(300000) AS r(i)";
    const bytes = batchesOf(await streamOf(sql)).map((batch) => batch.bytes);
    expect(Math.max(...bytes)).toBeLessThanOrEqual(2 * 1024 * 1024 + 100);
    expect(bytes.slice(0, -1).filter((size) => size < 1.5 * 1024 * 1024)).toEqual([]);
  });

  test("of wide rows are split, however unlike the rows are", async () => {
    const sql =
      "SELECT i, repeat('w', CASE WHEN i % 1000 = 7 THEN 3000000 ELSE i % 3000 END) AS w FROM range(4000) AS r(i)";
    const stream = await streamOf(sql);
    const batches = batchesOf(stream);
    expect(batches.filter(({ rows, bytes }) => rows > 1 && bytes > 2 * 1024 * 1024 + 100)).toEqual([]);
    expect(batches.filter(({ bytes }) => bytes > 2 * 1024 * 1024 + 100)).toHaveLength(4);
    expect(tableFromIPC(stream).numRows).toBe(4_000);
  });
});

async function textsOf(sql: string): Promise<(string | null)[]> {
  const column = tableFromIPC<{ t: Utf8 }>(await streamOf(sql)).getChild("t");
  return column === null ? [] : [...column];
}

describe("texts, wherever DuckDB has them", () => {
  const text = "CASE WHEN i % 13 = 5 THEN NULL ELSE repeat(chr(97 + (i % 26)::INT), (i * 7919) % 61) || i END";
  test.each([
    ["one behind the other", `SELECT ${text} AS t FROM range(20000) AS r(i)`],
    ["in any order", `SELECT ${text} AS t FROM range(20000) AS r(i) ORDER BY hash(i)`],
    ["the same for many rows", `SELECT t FROM (SELECT (hash(n) % 20000)::BIGINT AS i FROM range(20000) AS q(n)) CROSS JOIN LATERAL (SELECT ${text}) AS l(t)`], // oxfmt-ignore
    ["on pages of their own", "SELECT repeat(chr(97 + (i % 26)::INT), (hash(i) % 9000)::INT) AS t FROM range(3000) AS r(i) ORDER BY hash(i)"], // oxfmt-ignore
    ["joined", `SELECT a.t FROM (SELECT i, ${text} AS t FROM range(9000) AS r(i)) AS a JOIN range(9000) AS b(k) ON a.i = hash(b.k) % 9000`], // oxfmt-ignore
  ])("are read: %s", async (_, sql) => {
    await runSql(duckdb, connection, `CREATE OR REPLACE TEMP TABLE texts AS ${sql}`);
    const expected = (await runSql(duckdb, connection, "SELECT t FROM texts")).map(([value]) => value);
    expect(await textsOf("SELECT t FROM texts")).toEqual(expected);
    // Straight from what makes them, in whatever order: by then they lie elsewhere.
    const straight = await textsOf(sql);
    expect(straight.map(String).toSorted()).toEqual(expected.map(String).toSorted());
  });
});
