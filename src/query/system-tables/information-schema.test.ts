import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../../auth/caller.ts";
import type { EngineError } from "../../core/errors.ts";
import type { ColumnSpec } from "../../format/types.ts";
import { loadDuckDb, runSql } from "../../io/duckdb/duckdb.ts";
import { createQueryHarness, type QueryHarness } from "../query.test-kit.ts";

let harness: QueryHarness;

const TYPED: readonly ColumnSpec[] = [
  { name: "at", type: { kind: "timestamp" } },
  { name: "s", type: { kind: "string" } },
  { name: "i", type: { kind: "int" } },
  { name: "l", type: { kind: "long" } },
  { name: "r", type: { kind: "real" } },
  { name: "b", type: { kind: "bool" } },
  { name: "d", type: { kind: "dynamic" } },
  { name: 'odd "name"', type: { kind: "string" } },
  { name: "v", type: { kind: "vector", dimensions: 3 } },
];

beforeAll(async () => {
  harness = createQueryHarness();
  await harness.addTable("default", "typed", TYPED, []);
  await harness.addTable("other", "secret", TYPED.slice(0, 2), [
    { format: "tlm", columns: TYPED.slice(0, 2), rows: [{ at: 1n, s: "a secret" }] },
  ]);
});
afterAll(() => harness.close());

const limited: Caller = { subject: "limited", kind: "api_token", role: "read", databases: ["default"] };

async function rows(sql: string, caller?: Caller): Promise<Record<string, unknown>[]> {
  const text = await harness.text(sql, caller === undefined ? {} : { caller });
  return text === ""
    ? []
    : text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>);
}

const COLUMNS = "SELECT * FROM information_schema.columns WHERE table_name = 'typed' ORDER BY ordinal_position";

test("columns of every type are what DuckDB says of them", async () => {
  const told = await rows(COLUMNS);
  expect(told).toHaveLength(TYPED.length);
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  await duckdb.query(
    connection,
    `CREATE SCHEMA "default"; CREATE TABLE "default".typed ("at" TIMESTAMP_NS, s VARCHAR, i INTEGER, l BIGINT, r DOUBLE,
      b BOOLEAN, d JSON, "odd ""name""" VARCHAR, v FLOAT[3] NOT NULL)`,
  );
  const theirs = await runSql(duckdb, connection, `SELECT to_json(q)::VARCHAR FROM (${COLUMNS}) AS q`);
  const rename = (row: string | null) => ({ ...(JSON.parse(row ?? "") as object), table_catalog: "engine" });
  expect(told).toEqual(theirs.map(([row]) => rename(row ?? null)));
  duckdb.disconnect_sync(connection);
});

describe("to a caller who is limited to one database", () => {
  test("the others are not there", async () => {
    const seen = async (caller?: Caller) =>
      JSON.stringify([
        await rows("FROM information_schema.schemata", caller),
        await rows("FROM information_schema.tables", caller),
        await rows("FROM information_schema.columns", caller),
        await rows("SHOW DATABASES", caller),
        await rows("SELECT * FROM (SHOW DATABASES) d, (SHOW TABLES) t", caller),
      ]);
    expect(await seen()).toContain("secret");
    expect(await seen(limited)).not.toMatch(/secret|other/);
  });

  test("a name of one is as unknown as any, before anything is looked up", async () => {
    const failure = async (sql: string) => {
      harness.opened.length = 0;
      const error = await harness.text(sql, { caller: limited }).catch((thrown: EngineError) => thrown);
      expect(harness.opened).toEqual([]);
      const { code, message, details } = error as EngineError;
      return { code, message: message.replaceAll(/other|absent/g, "NAME"), details };
    };
    for (const form of ["FROM NAME.secret", "SELECT 1\nFROM NAME.secret AT (VERSION => 1)", "SHOW TABLES FROM NAME"]) {
      const hidden = await failure(form.replace("NAME", "other"));
      expect(hidden).toMatchObject({ code: "database_not_found", details: { refused: true } });
      expect(hidden).toEqual(await failure(form.replace("NAME", "absent")));
    }
  });
});

test.each([
  "WITH information_schema AS (SELECT 1 AS a) FROM information_schema",
  "WITH tables AS (SELECT 1 AS a) SELECT a FROM tables",
  "WITH tables AS (SELECT 1 AS a) SELECT a FROM tables, information_schema.tables LIMIT 1",
  'WITH "information_schema.tables" AS (SELECT 1 AS a) FROM "information_schema.tables"',
  "SELECT 1 AS a FROM information_schema.tables AS system WHERE system.table_name = 'typed'",
  "SELECT count(*) AS a FROM INFORMATION_SCHEMA.Schemata WHERE schema_name = 'default'",
  "SELECT count(*) - 1 AS a FROM (SELECT DISTINCT table_schema FROM information_schema.tables)",
  "SELECT count(information_schema.tables.table_name) - 1 AS a FROM information_schema.tables",
])("a CTE shadows a bare name, and never one with a schema: %s", async (sql) => {
  expect(await rows(sql)).toEqual([{ a: 1 }]);
});

test("tables of two databases with one name are told apart by their aliases", async () => {
  await harness.addTable("other", "typed", TYPED.slice(0, 2), [
    { format: "parquet", columns: TYPED.slice(0, 2), rows: [{ at: 2n, s: "theirs" }] },
  ]);
  const sql = "SELECT a.s AS mine, b.s AS theirs FROM other.typed b LEFT JOIN typed a ON a.s = b.s";
  expect(await rows(sql)).toEqual([{ mine: null, theirs: "theirs" }]);
  // Their extents have one name and lie in one folder.
  const both = "SELECT count(*) AS n FROM (SELECT s FROM other.typed UNION ALL SELECT s FROM other.secret)";
  expect(await rows(both)).toEqual([{ n: 2 }]);
});

test("`comment`, which tools of Trino ask for, is there for who names it, and in no list of columns", async () => {
  const where =
    "FROM information_schema.columns c WHERE table_schema = 'default' AND table_name = 'typed' AND column_name = 'at'";
  expect(await rows(`SELECT "column_name", "comment" ${where}`)).toEqual([{ column_name: "at", comment: null }]);
  expect(await rows(`SELECT c.Comment IS NULL AS none ${where}`)).toEqual([{ none: true }]);
  const described = await rows("DESCRIBE information_schema.columns");
  expect(described.map(({ column_name: name }) => name)).not.toContain("comment");
  const commented: readonly ColumnSpec[] = [...TYPED.slice(0, 1), { name: "comment", type: { kind: "string" } }];
  await harness.addTable("default", "notes", commented, [
    { format: "tlm", columns: commented, rows: [{ at: 1n, comment: "own" }] },
  ]);
  const own = "SELECT DISTINCT comment FROM notes, information_schema.columns";
  expect(await rows(own)).toEqual([{ comment: "own" }]);
});
