import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadDuckDb, prepareOne, quoteText, runSql, type DuckDb } from "../../io/duckdb/duckdb.ts";
import { bindNames } from "../resolve/bound-names.ts";
import { checkQuery } from "../resolve/check.ts";
import { Evaluator } from "../resolve/evaluator.ts";
import { printTree } from "../parse/print-tree.ts";
import { inputFolder, outputFolder } from "./process-folders.ts";
import { QuerySpaces, type QuerySpace } from "./query-space.ts";
import { parseTree, SqlParser } from "../parse/sql-tree.ts";
import { textOf, type JsonObject } from "../parse/tree.ts";

/**
 * The layers of the gate (`session.ts`), each with the others out of the way: text goes to it that they would have
 * stopped. The fourth, the system's, has its tests in `confined-processes.test.ts`.
 */
let folder: string;
let duckdb: DuckDb;
let parser: SqlParser;
let spaces: QuerySpaces;
let canary: string;
const CANARY = "canary-7f3a";

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "engine-gate-"));
  const own = join(folder, "child");
  for (const each of [own, inputFolder(own), outputFolder(own)]) mkdirSync(each);
  canary = join(folder, "other.csv");
  writeFileSync(canary, `x\n${CANARY}\n`);
  duckdb = await loadDuckDb();
  parser = await SqlParser.open(duckdb, 256 * 1024 * 1024);
  const limits = { memoryBytes: 256 * 1024 * 1024, spillBytes: 1024 * 1024 * 1024, threads: 2 };
  spaces = await QuerySpaces.open({ duckdb, folder: own, ...limits });
});

afterAll(() => rmSync(folder, { recursive: true }));

async function treeOf(sql: string): Promise<JsonObject> {
  const { tree } = await parseTree(parser, sql);
  if (tree === undefined) throw new Error(`not a query: ${sql}`);
  return tree;
}

describe("what is checked is what runs", () => {
  /** Where names reach files, and nothing but this layer is in the way. */
  const open = async (): Promise<QuerySpace["connection"]> => duckdb.connect(await duckdb.open(":memory:"));

  test("a star with a hostile name keeps it in quotes", async () => {
    const name = `x FROM read_csv('${canary}') -- `;
    const quoted = `"${name.replaceAll('"', '""')}"`;
    const tree = await treeOf(`SELECT ${quoted}.* FROM (SELECT 1 AS x) AS ${quoted}`);
    const { sql } = await printTree(parser, tree);
    expect(await runSql(duckdb, await open(), `SELECT CAST(q AS VARCHAR) FROM (${sql}) AS q`)).toEqual([["{'x': 1}"]]);
    // DuckDB's own printer lets it out.
    const { text: printed } = await parser.textOf(
      JSON.stringify({ error: false, statements: [{ node: tree, named_param_map: [] }] }),
    );
    expect(JSON.stringify(await runSql(duckdb, await open(), printed))).toContain(CANARY);
  });

  test.each([
    ["several statements", "SELECT 1; SELECT 2", "SELECT"],
    ["COPY", `COPY (SELECT 1) TO '/tmp/engine-gate-never.csv'`, "SELECT"],
    ["ATTACH", "ATTACH ':memory:' AS o", "SELECT"],
    ["SET", "SET threads = 1", "SELECT"],
    ["CREATE", "CREATE MACRO lower(x) AS 'POISONED'", "SELECT"],
    ["EXPORT", "EXPORT DATABASE '/tmp/engine-gate-never'", "SELECT"],
    ["COMMIT", "COMMIT", "SELECT"],
    ["PRAGMA", "PRAGMA enable_profiling", "SELECT"],
    ["CALL", "CALL enable_logging()", "SELECT"],
    ["EXPLAIN", "EXPLAIN SELECT 1", "SELECT"],
    ["SELECT", "SELECT 1", "COPY"],
  ] as const)("%s is not prepared in the place of another statement", async (_what, sql, kind) => {
    await expect(prepareOne(duckdb, await open(), sql, kind)).rejects.toThrow(/must be|multiple statements|Parser/);
  });

  test.each([
    "(SELECT 1)",
    `(SELECT x FROM read_csv('x'))`,
    "(SELECT 1 FROM 'x.csv')",
    "getvariable('x')",
    "current_setting('threads')",
    "random()",
    "repeat('x', 10)",
    "nextval('s')",
    "length((SELECT 'a'))",
    "CASE WHEN true THEN 1 END",
    "[1, 2][1]",
  ])("the evaluator takes no %s", async (text) => {
    const connection = await open();
    await duckdb.query(connection, "BEGIN TRANSACTION");
    const [item] = (await treeOf(`SELECT ${text}`))["select_list"] as JsonObject[];
    if (item === undefined) throw new Error("nothing selected");
    const evaluator = new Evaluator({ duckdb, connection, parser }, 10);
    expect(await evaluator.bigint(item)).toBeUndefined();
    expect(await evaluator.moment(item)).toBeUndefined();
    expect(await evaluator.constant({ kind: "expression", node: item })).toBeUndefined();
    expect(evaluator.hasFailed).toBe(false);
  });

  test.each([
    ["FROM t AT (VERSION => (SELECT 1))", "AT takes a constant"],
    ["FROM t AT (VERSION => 1 + (SELECT 1000 + ascii(x) FROM '/etc/passwd'))", "AT takes a constant"],
    ["FROM t AT (TIMESTAMP => (FROM read_text('/etc/passwd')))", "AT takes a constant"],
    ["FROM t AT (VERSION => x)", "AT takes a constant"],
    ["WITH t AS (SELECT 1) FROM t AT (VERSION => 1)", 'AT takes a table, and "t" is a CTE'],
    ["FROM t LIMIT (SELECT 1)", "LIMIT takes a constant"],
    ["FROM t LIMIT 1 + (SELECT 1)", "LIMIT takes a constant"],
    ["FROM t LIMIT 1 OFFSET (SELECT 1)", "OFFSET takes a constant"],
  ])("%s is refused", async (sql, message) => {
    const tree = await treeOf(sql);
    expect(() => checkQuery(tree)).toThrow(message);
  });
});

describe("names resolve in our code", () => {
  test.each(["/etc/passwd", "*.csv", "duckdb_views", "sqlite_master", "pragma_database_list", "duckdb_settings"])(
    "a CTE called %s is nothing to DuckDB, even where our scopes were wrong",
    async (name) => {
      const tree = await treeOf(
        `WITH RECURSIVE "${name}" AS (FROM "${name}" UNION ALL SELECT * FROM "${name}" WHERE false) FROM "${name}"`,
      );
      const checked = checkQuery(tree);
      expect(checked.tables.map((use) => use.name)).toEqual([name]);
      // As if the anchor saw the CTE, which is what the gate once believed.
      const bindings = new Map(
        [...checked.bindings].map(([node, binding]) =>
          binding.kind === "table"
            ? ([node, { kind: "cte", cte: 0, recurring: false }] as const)
            : ([node, binding] as const),
        ),
      );
      const bound = bindNames(tree, { ...checked, bindings, viewOf: () => "never" });
      const connection = await duckdb.connect(await duckdb.open(":memory:"));
      const { sql } = await printTree(parser, bound);
      await expect(duckdb.prepare(connection, sql)).rejects.toThrow("engine_cte_0");
    },
  );

  test("every relation of the text has a name of ours", async () => {
    const tree = await treeOf(
      `WITH RECURSIVE "a/*" AS (SELECT 1 UNION ALL FROM "a/*"), b AS (FROM "../x.csv" AS y) FROM b, "a/*", db.c, (DESCRIBE d), system.tables`,
    );
    const checked = checkQuery(tree);
    const bound = bindNames(tree, { ...checked, viewOf: (use) => `engine_table_${use}` });
    const found: string[] = [];
    JSON.stringify(bound, (_key, value: unknown) => {
      const node = value as JsonObject | null;
      if (node !== null && typeof node === "object" && node["type"] === "BASE_TABLE") {
        found.push(["catalog_name", "schema_name", "table_name"].map((key) => textOf(node[key])).join("."));
      }
      return value;
    });
    expect(found.every((name) => /^\.\.engine_(?:table|cte)_\d+$/.test(name))).toBe(true);
    expect(found).toHaveLength(7);
  });
});

describe("DuckDB opens files of the query only, and nothing outlives it", () => {
  const other = (): string => quoteText(canary);
  /** All that queries share. */
  const stateOf = async (space: QuerySpace): Promise<string> => {
    const rows = await Promise.all(
      [
        "SELECT CAST(f AS VARCHAR) FROM (SELECT * EXCLUDE (function_oid, database_oid) FROM duckdb_functions()) AS f ORDER BY 1",
        "SELECT name || value FROM duckdb_settings() WHERE name <> 'search_path' ORDER BY 1",
        "SELECT database_name FROM duckdb_databases() ORDER BY 1",
        "SELECT CAST(v AS VARCHAR) FROM (SELECT * EXCLUDE (view_oid, database_oid, schema_oid) FROM duckdb_views()) AS v ORDER BY 1",
      ].map((sql) => runSql(duckdb, space.connection, sql)),
    );
    return createHash("sha256").update(JSON.stringify(rows)).digest("hex");
  };

  const withSpace = async <T>(work: (space: QuerySpace) => Promise<T>): Promise<T> => {
    const space = await spaces.create();
    try {
      return await work(space);
    } finally {
      await spaces.remove(space);
    }
  };

  test.each([
    () => `FROM ${other()}`,
    () => `SELECT * FROM read_csv(${other()})`,
    () => `SELECT * FROM read_text(${other()})`,
    () => `SELECT * FROM read_blob(${quoteText(join(folder, "**"))})`,
    () => `SELECT * FROM glob(${quoteText(join(folder, "*"))})`,
    () => `SELECT * FROM read_csv(${quoteText(join(outputFolder(join(folder, "child")), "../../other.csv"))})`,
    () => `SELECT * FROM read_text('/proc/self/environ')`,
    () => `COPY (SELECT 1) TO ${other()}`,
    () => `ATTACH ${quoteText(join(folder, "new.duckdb"))} AS o`,
    () => `EXPORT DATABASE ${quoteText(join(folder, "export"))}`,
    () => `SET GLOBAL allowed_directories = ['/']`,
    () => `SET GLOBAL enable_external_access = true`,
    () => `SET GLOBAL lock_configuration = false`,
    () => `SET GLOBAL threads = 1`,
    () => `SET temp_directory = '/tmp'`,
    () => `RESET GLOBAL allowed_directories`,
    () => `CREATE OR REPLACE MACRO engine.main.now() AS 'POISONED'`,
    () => `COMMIT; CREATE OR REPLACE MACRO main.lower(x) AS 'POISONED'; BEGIN`,
    () => `CREATE VIEW main.t AS SELECT 'POISONED' AS a`,
    () => `CREATE TABLE t AS SELECT 'POISONED' AS a`,
    () => `CREATE SCHEMA s`,
    () => `CREATE OR REPLACE MACRO system.main.lower(x) AS 'POISONED'`,
    () => `DROP MACRO engine.main.now`,
    () => `DETACH system`,
    () => `INSTALL httpfs`,
    () => `LOAD httpfs`,
    () => `LOAD ${quoteText(join(folder, "x.duckdb_extension"))}`,
  ])("no: %s", async (sql) => {
    const before = await withSpace(stateOf);
    await withSpace(async ({ connection }) => {
      await expect(duckdb.query(connection, sql())).rejects.toThrow(/Error|exception_type/);
    });
    expect(await withSpace(stateOf)).toBe(before);
    expect(readFileSync(canary, "utf8")).toBe(`x\n${CANARY}\n`);
  });

  test.each([
    "COMMIT; CREATE TEMP TABLE t AS SELECT 'POISONED' AS a; BEGIN",
    "COMMIT; CREATE TEMP MACRO lower(x) AS 'POISONED'; BEGIN",
    "COMMIT; CREATE TEMP VIEW t AS SELECT 'POISONED' AS a; CREATE TEMP SEQUENCE q; CREATE TEMP TYPE mood AS ENUM ('a'); BEGIN",
    "SET VARIABLE x = 'POISONED'",
    "SET GLOBAL memory_limit = '1GB'",
    "SET search_path = 'system.main'",
    "SET SESSION streaming_buffer_size = '1KB'",
    "PREPARE p AS SELECT 'POISONED'",
  ])("gone with its query: %s", async (sql) => {
    const before = await withSpace(stateOf);
    await withSpace(async ({ connection }) => {
      await duckdb.query(connection, "BEGIN");
      await duckdb.query(connection, sql);
    });
    expect(await withSpace(stateOf)).toBe(before);
    await withSpace(async ({ connection }) => {
      const probe = "SELECT lower('A'), typeof(now()), CAST(getvariable('x') AS VARCHAR)";
      expect(await runSql(duckdb, connection, probe)).toEqual([["a", "TIMESTAMP_NS", null]]);
      await expect(duckdb.query(connection, "FROM t")).rejects.toThrow("t does not exist");
      await expect(duckdb.query(connection, "EXECUTE p")).rejects.toThrow(/prepared statement|does not exist/i);
    });
  });

  test("a database that a query leaves behind ends the process", async () => {
    const space = await spaces.create();
    await duckdb.query(space.connection, "ATTACH ':memory:' AS left_behind");
    await expect(spaces.remove(space)).rejects.toThrow("a query left databases behind: engine left_behind");
    await withSpace(({ connection }) => duckdb.query(connection, "DETACH left_behind"));
  });
});
