import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadDuckDb, quoteText } from "../io/duckdb/duckdb.ts";
import { runHere, type RunOptions } from "./cli.test-kit.ts";
import { FakeEngine } from "./push.test-kit.ts";

const PUSH = ["ingest", "push", "--table", "events"];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "parquet-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function writeParquet(name: string, sql: string, options = ""): Promise<string> {
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  await duckdb.query(connection, "SET TimeZone = 'UTC'");
  const path = join(folder, name);
  await duckdb.query(connection, `COPY (${sql}) TO ${quoteText(path)} (FORMAT parquet${options})`);
  return path;
}

function copies(): string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith("engine-push-"));
}

async function pushed(args: readonly string[], options: RunOptions = {}) {
  const engine = new FakeEngine();
  const env = await engine.start();
  return { engine, ...(await runHere([...PUSH, ...args], { env, ...options })) };
}

/** Each with what it is sent as. */
const VALUES = [
  ["9223372036854775807::BIGINT", "9223372036854775807"],
  ["18446744073709551615::UBIGINT", "18446744073709551615"],
  ["1.10::DECIMAL(9, 2)", "1.1"],
  ["'-123456789012345.678'::DECIMAL(18, 3)", "-123456789012345.678"],
  ["'1234567890123456789012345678.0123456789'::DECIMAL(38, 10)", "1234567890123456789012345678.0123456789"],
  ["0.1::DOUBLE", "0.1"],
  ["0.1::FLOAT", "0.1"],
  ["'nan'::DOUBLE", "null"],
  ["NULL::INTEGER", "null"],
  ["TIMESTAMP_NS '2026-01-02 03:04:05.123456789'", '"2026-01-02T03:04:05.123456789Z"'],
  ["TIMESTAMP '2026-01-02 03:04:05.123456'", '"2026-01-02T03:04:05.123456Z"'],
  ["TIMESTAMP '0001-01-02 03:04:05'", '"0001-01-02T03:04:05Z"'],
  ["TIMESTAMPTZ '2026-01-02 03:04:05+02'", '"2026-01-02T01:04:05Z"'],
  ["DATE '2026-01-02'", '"2026-01-02"'],
  ["true", "true"],
  ["'\u{1f600} \"quoted\"'", '"\u{1f600} \\"quoted\\""'],
  ["'\\x00\\xFF'::BLOB", '"AP8="'],
  ["[1, NULL, 3]", "[1,null,3]"],
  ["{'a': [{'b': 1.25::DECIMAL(3, 2)}], 'c': NULL}", '{"a":[{"b":1.25}],"c":null}'],
  ["MAP {'k': 1}", '{"k":1}'],
  ["'00000000-0000-0000-0000-000000000001'::UUID", '"00000000-0000-0000-0000-000000000001"'],
] as const;

test("values are sent exactly, nested ones as JSON", async () => {
  const path = await writeParquet("v.parquet", `SELECT ${VALUES.map(([sql], i) => `${sql} AS v${i}`).join(", ")}`);
  const { engine, code, stderr } = await pushed([path]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(engine.stored).toEqual([`{${VALUES.map(([, json], i) => `"v${i}":${json}`).join(",")}}`]);
});

describe("a file", () => {
  const names = `SELECT i AS "weird ""name", 'x' AS "at" FROM range(3) t(i)`;
  const rows = [0, 1, 2].map((i) => `{"weird \\"name":${i},"at":"x"}`);

  test("with a name that would mean other files, beside those, in a folder that would mean a column", async () => {
    mkdirSync(join(folder, "year=2024"));
    await writeParquet("year=2024/a.parquet", "SELECT 1 AS other");
    const path = await writeParquet("year=2024/b.parquet", names);
    const hostile = join(folder, "year=2024", "*'.parquet");
    writeFileSync(hostile, readFileSync(path));
    const { engine, code, stdout } = await pushed([hostile]);
    expect([code, engine.stored]).toEqual([0, rows]);
    expect(stdout).toContain("3 rows");
  });

  test("is known by its content, also on standard input and compressed, and leaves no copy behind", async () => {
    const bytes = readFileSync(await writeParquet("n.bin", names));
    const packed = join(folder, "n.parquet.gz");
    writeFileSync(packed, gzipSync(bytes));
    const before = new Set(copies());
    for (const run of [pushed([join(folder, "n.bin")]), pushed([packed]), pushed([], { input: bytes })]) {
      const { engine, code, stderr } = await run;
      expect([code, stderr, engine.stored]).toEqual([0, "", rows]);
    }
    expect(copies().filter((name) => !before.has(name))).toEqual([]);
  });

  test("of many rows keeps their order, and is stored once though it is pushed twice", async () => {
    const path = await writeParquet(
      "many.parquet",
      "SELECT i, repeat('x', 100) AS pad FROM range(200000) t(i)",
      ", ROW_GROUP_SIZE 20000",
    );
    const engine = new FakeEngine();
    const env = await engine.start();
    for (const replayed of [0, 200_000]) {
      const { stdout } = await runHere([...PUSH, "--json", path], { env });
      expect(JSON.parse(stdout)).toMatchObject({ rows: 200_000, replayed_rows: replayed });
    }
    expect(engine.stored).toHaveLength(200_000);
    expect(engine.stored.every((row, i) => row.startsWith(`{"i":${i},`))).toBe(true);
    expect(new Set(engine.attempts.map(({ key }) => key)).size).toBe(engine.attempts.length / 2);
  });

  test("that is damaged is told in one line, without the path that it was read by", async () => {
    const bytes = readFileSync(await writeParquet("d.parquet", "SELECT i, hash(i) AS h FROM range(50000) t(i)"));
    const cases: [string, Buffer][] = [
      ["cut", bytes.subarray(0, bytes.length - 20)],
      ["footer", Buffer.concat([bytes.subarray(0, -60), Buffer.alloc(52, 0xff), bytes.subarray(-8)])],
      ["page", Buffer.concat([bytes.subarray(0, 40), Buffer.alloc(5_000, 0xaa), bytes.subarray(5_040)])],
      ["magic alone", Buffer.from("PAR1")],
    ];
    for (const [name, data] of cases) {
      const path = join(folder, `${name}.parquet`);
      writeFileSync(path, data);
      const { code, stderr } = await pushed([path]);
      expect([name, code]).toEqual([name, 1]);
      expect(stderr).toMatch(/^error: .+\.parquet cannot be read as Parquet: .+\n$/);
      expect(stderr).not.toContain("engine-push-");
    }
  });

  test("is shown by a dry run", async () => {
    const path = await writeParquet("dry.parquet", names);
    const { engine, stdout } = await pushed(["--dry-run", path]);
    expect(stdout).toContain('weird "name  long');
    expect(stdout).toContain(`${path}: parquet, 3 rows\nnothing was sent\n`);
    expect(engine.attempts).toEqual([]);
  });
});
