import { tableFromIPC } from "apache-arrow";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ANONYMOUS } from "../auth/caller.ts";
import type { ColumnSpec } from "../format/types.ts";
import { loadDuckDb, quoteText, runSql } from "../io/duckdb/duckdb.ts";
import type { QueryRequest } from "./contract/query.ts";
import { createQueryHarness, type QueryHarness } from "./query.test-kit.ts";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const COLUMNS: ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "n", type: { kind: "int" } },
  { name: "big", type: { kind: "long" } },
  { name: "share", type: { kind: "real" } },
  { name: "name", type: { kind: "string" } },
  { name: "is_new", type: { kind: "bool" } },
  { name: "doc", type: { kind: "dynamic" } },
  { name: "embedding", type: { kind: "vector", dimensions: 2 } },
];
/** More than DuckDB gives at a time. */
const ROWS = 5_000;
const EXTENTS = 5;

let harness: QueryHarness;
beforeAll(async () => {
  harness = createQueryHarness();
  const extents = Array.from({ length: EXTENTS }, (_, i) => ({
    format: i % 2 === 0 ? ("tlm" as const) : ("parquet" as const),
    columns: COLUMNS,
    rows: Array.from({ length: ROWS / EXTENTS }, (_, j) => ({
      at: BigInt(i * 1_000 + j),
      n: i * 1_000 + j,
      big: 1n,
      share: 0.5,
      name: "x",
      is_new: true,
      doc: "{}",
      embedding: [1, 2],
    })),
  }));
  await harness.addTable("default", "t", COLUMNS, extents);
}, 60_000);
afterAll(() => harness.close());

type Answer = { rows: number; isTruncated: boolean; columns: readonly string[]; body: Buffer };

async function run(text: string, options: Partial<QueryRequest> = {}): Promise<Answer> {
  const { signal } = new AbortController();
  const asked = { caller: ANONYMOUS, database: "default", requestId: "test", signal, text, ...options };
  const { body, ...answer } = await harness.service.run(asked);
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return { ...answer, body: Buffer.concat(chunks) };
}

/** The values of the column `n`, read by something else than what wrote them. */
async function numbersIn(format: NonNullable<QueryRequest["format"]>, body: Buffer): Promise<number[]> {
  switch (format) {
    case "ndjson":
      return body
        .toString()
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => (JSON.parse(line) as { n: number }).n);
    case "json":
      return (JSON.parse(body.toString()) as { n: number }[]).map(({ n }) => n);
    case "csv":
      return body.toString().trimEnd().split("\n").slice(1).map(Number);
    case "arrow":
      return [...(tableFromIPC(body).getChild("n") ?? [])] as number[];
    case "parquet": {
      const path = join(harness.folder, "answer.parquet");
      writeFileSync(path, body);
      const duckdb = await loadDuckDb();
      const connection = await duckdb.connect(await duckdb.open(":memory:"));
      const sql = `SELECT n::VARCHAR FROM read_parquet(${quoteText(path)})`;
      return (await runSql(duckdb, connection, sql)).map(([n]) => Number(n));
    }
  }
}

const FORMATS = ["ndjson", "json", "csv", "arrow", "parquet"] as const;

describe("a limit of rows", () => {
  test.each(FORMATS)("has the first rows in the query's order, in %s", async (format) => {
    const query = "SELECT n FROM t ORDER BY n DESC";
    for (const maxRows of [0, 1, 2_047, 2_048, 2_049, ROWS - 1, ROWS, ROWS + 1, Number.MAX_SAFE_INTEGER - 1]) {
      const { rows, isTruncated, body } = await run(query, { format, maxRows });
      const expected = Array.from({ length: Math.min(maxRows, ROWS) }, (_, i) => ROWS - 1 - i);
      expect([maxRows, rows, isTruncated]).toEqual([maxRows, expected.length, maxRows < ROWS]);
      expect(await numbersIn(format, body)).toEqual(expected);
    }
  });

  test("is exact, whatever the query and the limit", async () => {
    const property = fc.asyncProperty(
      fc.constantFrom(...FORMATS),
      fc.integer({ min: 0, max: 30 }),
      fc.integer({ min: 0, max: 30 }),
      async (format, rows, maxRows) => {
        const text = `SELECT range::INTEGER AS n FROM range(${rows})`;
        const answer = await run(text, { format, maxRows });
        const numbers = await numbersIn(format, answer.body);
        expect(answer).toMatchObject({ rows: Math.min(rows, maxRows), isTruncated: rows > maxRows });
        expect(numbers).toEqual(Array.from({ length: Math.min(rows, maxRows) }, (_, i) => i));
      },
    );
    await fc.assert(property, { numRuns: 60, seed: 7 });
  });

  test("ends a query that would go on for hours", async () => {
    const text = "SELECT range AS n FROM range(1000000000000)";
    for (const format of FORMATS) {
      const { rows, isTruncated } = await run(text, { format, maxRows: 3 });
      expect([format, rows, isTruncated]).toEqual([format, 3, true]);
    }
  });

  test("leaves extents out that later rows are in", async () => {
    const before = harness.opened.length;
    expect(await run("SELECT n FROM t ORDER BY at DESC", { maxRows: 10 })).toMatchObject({
      rows: 10,
      isTruncated: true,
    });
    expect(harness.opened.length - before).toBe(1);
    const all = await run("SELECT n FROM (SELECT n FROM t ORDER BY at DESC)", { maxRows: ROWS });
    expect(all).toMatchObject({ rows: ROWS, isTruncated: false });
  });

  test("leaves a plan as it is, and the place of an error", async () => {
    const plan = await run("EXPLAIN SELECT n FROM t", { maxRows: 0 });
    expect(plan).toMatchObject({ isTruncated: false });
    expect(plan.rows).toBeGreaterThan(1);
    for (const format of FORMATS) {
      const text = "SELECT n,\n  CAST(name AS INTEGER) FROM t";
      await expect(run(text, { maxRows: 5, format })).rejects.toMatchObject({
        code: "execution_error",
        details: { line: 2, column: 3 },
      });
    }
  });

  test("works for columns of one name, for none of a type, and in KQL", async () => {
    for (const format of FORMATS) {
      const { rows, isTruncated } = await run("SELECT 1 AS a, NULL AS a, 2 AS A FROM range(9)", { format, maxRows: 4 });
      expect([format, rows, isTruncated]).toEqual([format, 4, true]);
      const kql = await run("t | sort by n asc | project n", { language: "kql", format, maxRows: 2 });
      expect(kql).toMatchObject({ rows: 2, isTruncated: true });
      expect(await numbersIn(format, kql.body)).toEqual([0, 1]);
    }
  });
});

describe("the types of an Arrow answer", () => {
  async function typesOf(
    text: string,
    options: Partial<QueryRequest> = {},
  ): Promise<Record<string, string | undefined>> {
    const { body } = await run(text, { format: "arrow", ...options });
    const { fields } = tableFromIPC(body).schema;
    return Object.fromEntries(fields.map(({ name, metadata }) => [name, metadata.get("engine.type")]));
  }

  test("are the table's for its columns", async () => {
    expect(await typesOf("FROM t LIMIT 1")).toEqual({
      at: "timestamp",
      n: "int",
      big: "long",
      share: "real",
      name: "string",
      is_new: "bool",
      doc: "dynamic",
      embedding: "vector(2)",
    });
    expect(await typesOf("t | take 1 | project at, doc", { language: "kql" })).toEqual({
      at: "timestamp",
      doc: "dynamic",
    });
  });

  test("are DuckDB's for what only a query can make", async () => {
    const text = `SELECT DATE '2024-01-01' AS date, 1.5::DECIMAL(18, 3) AS decimal, sum(n) AS huge, TIMESTAMP '2024-01-01' AS clock,
      ['a'] AS list, {a: 1, 'b c': ['1'::JSON]} AS struct, MAP {'a': 1} AS map, uuid() AS id,
      [1::FLOAT, 2]::FLOAT[2] AS vector, [1, 2]::INTEGER[2] AS array, 'a'::BLOB AS bytes, TIME '12:00' AS time,
      'a'::ENUM ('a', 'b') AS word, row(1, 'a') AS row FROM t`;
    expect(await typesOf(text)).toEqual({
      date: "DATE",
      decimal: "DECIMAL(18,3)",
      huge: "HUGEINT",
      clock: "TIMESTAMP",
      list: "VARCHAR[]",
      struct: 'STRUCT(a INTEGER, "b c" JSON[])',
      map: "MAP(VARCHAR, INTEGER)",
      id: "UUID",
      vector: "vector(2)",
      array: "INTEGER[2]",
      bytes: "BLOB",
      time: "TIME",
      word: "ENUM",
      row: "STRUCT(INTEGER, VARCHAR)",
    });
  });

  test("stay short, however many fields a struct has", async () => {
    const fields = Array.from({ length: 500 }, (_, i) => `field_${i}: ${i}`).join(", ");
    expect(await typesOf(`SELECT {${fields}} AS s`)).toEqual({ s: "STRUCT" });
  });
});
