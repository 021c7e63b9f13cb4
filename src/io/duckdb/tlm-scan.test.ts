import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RecordBatchReader, RecordBatchFileWriter, type RecordBatch } from "apache-arrow";
import type { ColumnSpec } from "../../format/types.ts";
import { appendValue } from "../../format/columns/column.test-kit.ts";
import { ColumnSet } from "../../format/columns/column-set.ts";
import { BATCH_ROWS, encodeTlm } from "../../format/tlm.ts";
import { loadDuckDb, quoteText, runSql, type Connection, type DuckDb } from "./duckdb.ts";
import { tlmToParquet } from "./parquet.test-kit.ts";
import { tlmFixture, type FixtureRow } from "./tlm.test-kit.ts";
import { registerTlmScan, type TlmScans } from "./tlm-scan.ts";

const COLUMNS: ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "b", type: { kind: "bool" } },
  { name: "i", type: { kind: "int" } },
  { name: "l", type: { kind: "long" } },
  { name: "r", type: { kind: "real" } },
  { name: "s", type: { kind: "string" } },
  { name: "d", type: { kind: "dynamic" } },
  { name: "v", type: { kind: "vector", dimensions: 3 } },
];

const TEXTS = [
  "",
  "short",
  "twelve bytes",
  "thirteen byte",
  "a\u0000b",
  "\u0000",
  "nul in a longer text \u0000 yes",
  "ünïcödé 😀 everywhere",
  "x".repeat(5000),
];

function rowOf(n: number): FixtureRow {
  const isNull = n % 7 === 3;
  return {
    at: BigInt(n) * 1_000_000_007n - 5_000_000_000n,
    b: isNull ? null : n % 3 === 0,
    i: isNull ? null : n - 50,
    l: isNull ? null : 9_223_372_036_854_775_807n - BigInt(n),
    r: isNull ? null : n / 3,
    s: isNull ? null : `${TEXTS[n % TEXTS.length]}`,
    d: isNull ? null : `{"n":${n},"t":"a long enough text"}`,
    v: isNull ? null : [n, n + 0.5, -n],
  };
}

const ALL = `"at"::VARCHAR, b::VARCHAR, i::VARCHAR, l::VARCHAR, r::VARCHAR, s, (d->>'$.n')::VARCHAR, v::VARCHAR`;

const real = (value: number): string => (Number.isInteger(value) ? `${value}.0` : String(value));

function expected(n: number): (string | null)[] {
  const row = rowOf(n);
  if (row.b === null)
    return [row.at, null, null, null, null, null, null, null].map((v) => (v === null ? null : String(v)));
  const vector = (row.v as number[]).map((v) => (Object.is(v, -0) ? "-0.0" : real(v))).join(", ");
  return [row.at, row.b, row.i, row.l, real(row.r as number), row.s, n, `[${vector}]`].map(String);
}

let duckdb: DuckDb;
let connection: Connection;
let scans: TlmScans;
const folder = mkdtempSync(join(tmpdir(), "tlm-scan-test-"));

beforeAll(async () => {
  duckdb = await loadDuckDb();
  connection = await duckdb.connect(await duckdb.open(":memory:"));
  scans = registerTlmScan(duckdb, connection);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const range = (n: number, from = 0): number[] => Array.from({ length: n }, (_, i) => i + from);

async function read(columns: ColumnSpec[], files: Uint8Array[], sql: string): Promise<(string | null)[][]> {
  const scan = scans.add({ columns, sources: files.map((bytes) => ({ bytes })), rows: 10 });
  return runSql(duckdb, connection, sql.replace("TABLE", `engine_tlm_scan(${scan})`));
}

const ALL_AS_TEXT = ALL.replace(`"at"::VARCHAR`, `epoch_ns("at")::VARCHAR`);

describe("tlm scan", () => {
  test("every type, nulls, odd texts, several batches and files, more than one vector", async () => {
    const files = [
      tlmFixture(COLUMNS, range(5000).map(rowOf), 4099),
      tlmFixture(COLUMNS, range(10, 5000).map(rowOf)),
      tlmFixture(COLUMNS, []),
      tlmFixture(COLUMNS, range(2048, 5010).map(rowOf), 1),
    ];
    const rows = await read(COLUMNS, files, `SELECT ${ALL_AS_TEXT} FROM TABLE ORDER BY "at"`);
    expect(rows.length).toBe(7058);
    for (const n of range(7058)) expect(rows[n], `row ${n}`).toEqual(expected(n));
  });

  test("values survive being held over many chunks (sorting, grouping, joining)", async () => {
    const file = tlmFixture(COLUMNS, range(20_000).map(rowOf), 3000);
    const rows = await read(
      COLUMNS,
      [file],
      `SELECT s, count(*), count(DISTINCT d) FROM TABLE GROUP BY s ORDER BY length(s), s`,
    );
    const wanted = new Map<string | null, number>();
    for (const n of range(20_000)) {
      const s = rowOf(n).s as string | null;
      wanted.set(s, (wanted.get(s) ?? 0) + 1);
    }
    expect(new Map(rows.map(([s, n]) => [s ?? null, Number(n)]))).toEqual(wanted);
    for (const [s, n, d] of rows) expect(d).toBe(s === null ? "0" : n);
  });

  test("projection reads only what is asked for, in any order", async () => {
    const file = tlmFixture(COLUMNS, range(3000).map(rowOf));
    expect(await read(COLUMNS, [file], "SELECT count(*) FROM TABLE")).toEqual([["3000"]]);
    const rows = await read(COLUMNS, [file], "SELECT s, i::VARCHAR FROM TABLE WHERE r < 1 AND b ORDER BY i");
    expect(rows).toEqual([["", "-50"]]);
    const [sum] = await read(
      COLUMNS,
      [file],
      "SELECT sum(l)::VARCHAR, sum(array_distance(v, [0,0,0]::FLOAT[3]))::BIGINT FROM TABLE",
    );
    expect(sum?.[0]).toBe(
      range(3000)
        .reduce((total, n) => total + ((rowOf(n).l as bigint | null) ?? 0n), 0n)
        .toString(),
    );
  });

  test("rows are numbered through batches, vectors and files, whichever columns are read", async () => {
    const files = [tlmFixture(COLUMNS, range(5000).map(rowOf), 700), tlmFixture(COLUMNS, range(10, 5000).map(rowOf))];
    const sources = files.map((bytes) => ({ bytes }));
    const scan = scans.add({ columns: COLUMNS, sources, rows: 10, numbered: { name: "no", first: 2 ** 40 } });
    const from = `FROM engine_tlm_scan(${scan})`;
    const rows = await runSql(
      duckdb,
      connection,
      `SELECT no::VARCHAR, s, i::VARCHAR, d, no::VARCHAR ${from} ORDER BY no`,
    );
    expect(rows).toHaveLength(5010);
    for (const n of range(5010)) {
      const { s, i, d } = rowOf(n);
      const number = String(2 ** 40 + n);
      expect(rows[n]).toEqual([number, s, i === null ? null : String(i), d, number]);
    }
    expect(await runSql(duckdb, connection, `SELECT count(*), sum(no)::VARCHAR ${from} WHERE i = 0`)).toEqual([
      ["1", String(2 ** 40 + 50)],
    ]);
    expect(await runSql(duckdb, connection, `SELECT count(*) ${from}`)).toEqual([["5010"]]);
  });

  test("extents that lack columns read NULL; names match without regard to case", async () => {
    const old = COLUMNS.slice(0, 3).map(({ name, type }) => ({ name: name.toUpperCase(), type }));
    const oldRows = range(3000).map((n) => ({ AT: BigInt(n), B: true, I: n }));
    const files = [tlmFixture(old, oldRows), tlmFixture(COLUMNS, range(10).map(rowOf))];
    const rows = await read(
      COLUMNS,
      files,
      "SELECT count(*), count(i), count(s), count(v), count(l), count(d), count(r) FROM TABLE",
    );
    expect(rows).toEqual([["3010", "3009", "9", "9", "9", "9", "9"]]);
  });

  test("sliced buffers and validity that begins inside a byte", async () => {
    const whole = tlmFixture(COLUMNS, range(5000).map(rowOf));
    const reader = RecordBatchReader.from(whole);
    const batches = [...(reader as Iterable<RecordBatch>)].flatMap((batch) => [
      batch.slice(13, 2500),
      batch.slice(2500, 5000),
    ]);
    const sliced = RecordBatchFileWriter.writeAll(batches).toUint8Array(true);
    const rows = await read(COLUMNS, [sliced], `SELECT ${ALL_AS_TEXT} FROM TABLE ORDER BY "at"`);
    expect(rows.length).toBe(4987);
    for (const n of range(4987)) expect(rows[n]).toEqual(expected(n + 13));
  });

  test("extents as the sealer writes them: many batches, columns left out", async () => {
    const set = new ColumnSet(COLUMNS);
    const total = 2 * BATCH_ROWS + 100;
    for (const n of range(total)) {
      const { at, s } = rowOf(n);
      // Only `at` and `s` have values; the others are in no batch.
      for (const column of set.columns) {
        const value = column.spec.name === "at" ? at : column.spec.name === "s" ? s : null;
        appendValue(column, value as bigint | string | null);
      }
      set.rows++;
    }
    const sql = 'SELECT count(*), count(s), count(v), sum(strlen(s))::BIGINT, max(epoch_ns("at")) FROM TABLE';
    const texts = range(total).map((n) => rowOf(n).s as string | null);
    const kept = texts.filter((text) => text !== null);
    const bytes = kept.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    expect(await read(COLUMNS, [encodeTlm(set)], sql)).toEqual([
      [total, kept.length, 0, bytes, rowOf(total - 1).at].map(String),
    ]);
  });

  test("a path instead of bytes; a missing or foreign file is the query's error", async () => {
    const path = join(folder, "a.tlm");
    writeFileSync(path, tlmFixture(COLUMNS, range(10).map(rowOf)));
    const good = scans.add({ columns: COLUMNS, sources: [{ path }], rows: 10 });
    expect(await runSql(duckdb, connection, `SELECT count(*) FROM engine_tlm_scan(${good})`)).toEqual([["10"]]);
    const missing = scans.add({ columns: COLUMNS, sources: [{ path: join(folder, "no.tlm") }], rows: 10 });
    await expect(runSql(duckdb, connection, `SELECT count(*) FROM engine_tlm_scan(${missing})`)).rejects.toThrow(
      "ENOENT",
    );
    const other = scans.add({ columns: [{ name: "s", type: { kind: "int" } }], sources: [{ path }], rows: 10 });
    await expect(runSql(duckdb, connection, `SELECT s::BIGINT FROM engine_tlm_scan(${other})`)).rejects.toThrow(
      'column "s"',
    );
    await expect(runSql(duckdb, connection, "SELECT count(*) FROM engine_tlm_scan(0)")).rejects.toThrow("no such scan");
  });
});

describe("tlmToParquet", () => {
  test("reading back gives equal values and types", async () => {
    const path = join(folder, "a.parquet");
    writeFileSync(path, await tlmToParquet(tlmFixture(COLUMNS, range(5000).map(rowOf), 3000)));
    const types = await runSql(
      duckdb,
      connection,
      `SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM read_parquet(${quoteText(path)}))`,
    );
    expect(types.map(([, type]) => type)).toEqual([
      "TIMESTAMP_NS",
      "BOOLEAN",
      "INTEGER",
      "BIGINT",
      "DOUBLE",
      "VARCHAR",
      "JSON",
      "FLOAT[]",
    ]);
    const rows = await runSql(
      duckdb,
      connection,
      `SELECT ${ALL_AS_TEXT.replace("v::VARCHAR", "v::FLOAT[3]::VARCHAR")} FROM read_parquet(${quoteText(path)}) ORDER BY "at"`,
    );
    for (const n of range(5000)) expect(rows[n]).toEqual(expected(n));
    const meta = await runSql(
      duckdb,
      connection,
      `SELECT DISTINCT compression FROM parquet_metadata(${quoteText(path)})`,
    );
    expect(meta).toEqual([["ZSTD"]]);
  });

  test("calls at the same time do not disturb each other; an empty extent is a file with columns", async () => {
    const files = await Promise.all(
      [0, 1, 100, 3000].map((n) => tlmToParquet(tlmFixture(COLUMNS, range(n).map(rowOf)))),
    );
    for (const [i, bytes] of files.entries()) {
      const path = join(folder, `${i}.parquet`);
      writeFileSync(path, bytes);
      const counts = await runSql(
        duckdb,
        connection,
        `SELECT count(*), count(DISTINCT "at") FROM read_parquet(${quoteText(path)})`,
      );
      const n = String([0, 1, 100, 3000][i]);
      expect(counts).toEqual([[n, n]]);
    }
  });

  test("bytes that are no extent are refused", async () => {
    await expect(tlmToParquet(new Uint8Array(100))).rejects.toThrow("not an Arrow file");
  });
});
