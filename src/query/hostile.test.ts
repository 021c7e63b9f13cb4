import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EngineError } from "../core/errors.ts";
import { createQueryHarness, type QueryHarness } from "./query-fixture.ts";

/**
 * What a query must never be able to do: read files, settings, the environment, other databases or the engine's own
 * catalog, or change anything. Each statement is refused before anything runs, as `invalid_query`, `parse_error` or
 * `table_not_found`.
 */
const HOSTILE = [
  // Files, by function, by name, by extension.
  "SELECT * FROM read_text('/etc/passwd')",
  "SELECT * FROM read_blob('/etc/passwd')",
  "SELECT * FROM read_csv('/etc/passwd')",
  "SELECT * FROM read_csv_auto('/etc/passwd')",
  "SELECT * FROM read_json('/tmp/x.json')",
  "SELECT * FROM read_ndjson('/tmp/x.json')",
  "SELECT * FROM read_json_objects('/tmp/x.json')",
  "SELECT * FROM read_parquet('/tmp/x.parquet')",
  "SELECT * FROM parquet_scan('/tmp/x.parquet')",
  "SELECT * FROM parquet_metadata('/tmp/x.parquet')",
  "SELECT * FROM parquet_schema('/tmp/x.parquet')",
  "SELECT * FROM sniff_csv('/etc/passwd')",
  "SELECT * FROM glob('/etc/*')",
  "SELECT * FROM system.main.read_text('/etc/passwd')",
  "SELECT * FROM main.read_text('/etc/passwd')",
  "SELECT * FROM READ_TEXT('/etc/passwd')",
  "SELECT * FROM \"read_text\"('/etc/passwd')",
  "FROM '/etc/passwd'",
  "FROM '/tmp/x.parquet'",
  'SELECT * FROM "/tmp/x.parquet"',
  "FROM 's3://bucket/x.parquet'",
  "FROM 'https://example.com/x.csv'",
  "SELECT (SELECT content FROM read_text('/etc/passwd'))",
  "WITH w AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM w",
  "SELECT * FROM logs WHERE label IN (SELECT content FROM read_text('/etc/passwd'))",
  "SELECT * FROM logs, LATERAL (SELECT * FROM read_text(label))",
  "EXPLAIN SELECT * FROM read_text('/etc/passwd')",
  "EXPLAIN ANALYZE SELECT * FROM read_text('/etc/passwd')",
  "DESCRIBE SELECT * FROM read_text('/etc/passwd')",
  "SUMMARIZE SELECT * FROM read_text('/etc/passwd')",
  "SUMMARIZE '/tmp/x.parquet'",
  "DESCRIBE '/tmp/x.parquet'",
  "PIVOT (SELECT * FROM read_text('/etc/passwd')) ON filename USING max(content)",
  "PIVOT logs ON (SELECT content FROM read_text('/etc/passwd')) USING count(*)",
  "UNPIVOT (SELECT * FROM read_text('/etc/passwd')) ON content INTO NAME n VALUE v",
  "SELECT * FROM logs ORDER BY (SELECT content FROM read_text('/etc/passwd'))",
  "SELECT * FROM logs LIMIT (SELECT count(*) FROM glob('/*'))",
  "SELECT list_transform([1], lambda x: (SELECT content FROM read_text('/etc/passwd')))",
  "SELECT count(*) OVER (PARTITION BY (SELECT content FROM read_text('/etc/passwd'))) FROM logs",
  "SELECT * FROM logs AT (VERSION => (SELECT 1 FROM read_text('/etc/passwd')))",
  "VALUES ((SELECT content FROM read_text('/etc/passwd')))",
  "SELECT 1 UNION ALL SELECT content FROM read_text('/etc/passwd')",
  // SQL inside of SQL.
  "SELECT * FROM query('SELECT 1')",
  "SELECT * FROM query_table('logs')",
  "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
  "SELECT json_serialize_sql('SELECT 1')",
  "SELECT json_serialize_plan('SELECT 1')",
  "SELECT * FROM sql_auto_complete('SEL')",
  // Settings, environment, state.
  "SELECT current_setting('temp_directory')",
  "SELECT getenv('PATH')",
  "SELECT getvariable('x')",
  "SELECT current_query()",
  "SELECT nextval('s')",
  "SELECT txid_current()",
  "SELECT write_log('x')",
  "SELECT pg_sleep(1)",
  "SELECT sleep_ms(1000)",
  "SET memory_limit = '1TB'",
  "SET GLOBAL lock_configuration = false",
  "RESET memory_limit",
  "PRAGMA database_list",
  "PRAGMA enable_profiling",
  "CALL pragma_version()",
  "SET VARIABLE x = 1",
  // The engine's own catalog.
  "SELECT * FROM duckdb_settings()",
  "SELECT * FROM duckdb_tables()",
  "SELECT * FROM duckdb_secrets()",
  "SELECT * FROM duckdb_views()",
  "SELECT * FROM duckdb_functions()",
  "SELECT * FROM pragma_table_info('logs')",
  "SELECT * FROM pragma_storage_info('logs')",
  "FROM sqlite_master",
  "FROM duckdb_tables",
  "FROM pg_catalog.pg_class",
  "FROM information_schema.tables",
  "SHOW DATABASES",
  "SHOW ALL TABLES",
  "SHOW TABLES FROM information_schema",
  "FROM engine_tlm_scan(1)",
  "SELECT engine_shift(at, at) FROM logs",
  // Other databases.
  "SELECT * FROM other.secret",
  "SELECT * FROM system.main.logs",
  "SELECT * FROM memory.main.logs",
  "SELECT * FROM main.logs",
  // A CTE's name outside of its scope.
  "SELECT * FROM (WITH sqlite_master AS (SELECT 1) FROM sqlite_master), sqlite_master",
  "WITH a AS (FROM sqlite_master), sqlite_master AS (SELECT 1) FROM a",
  "WITH sqlite_master AS (FROM sqlite_master) FROM sqlite_master",
  // Everything that writes or is no query.
  "CREATE TABLE x (a INT)",
  "CREATE VIEW v AS SELECT 1",
  "CREATE MACRO m() AS 1",
  "CREATE OR REPLACE TEMP MACRO now() AS 1",
  "CREATE SECRET s (TYPE s3)",
  "INSERT INTO logs VALUES (1)",
  "UPDATE logs SET label = 'x'",
  "DELETE FROM logs",
  "DROP TABLE logs",
  "ALTER TABLE logs ADD COLUMN x INT",
  "COPY logs TO '/tmp/x.csv'",
  "COPY (SELECT 1) TO '/tmp/x.csv'",
  "COPY logs FROM '/etc/passwd'",
  "EXPORT DATABASE '/tmp/x'",
  "IMPORT DATABASE '/tmp/x'",
  "ATTACH '/tmp/x.db'",
  "DETACH memory",
  "USE system",
  "INSTALL httpfs",
  "LOAD httpfs",
  "CHECKPOINT",
  "VACUUM",
  "BEGIN",
  "COMMIT",
  "PREPARE p AS SELECT 1",
  "EXECUTE p",
  "EXPLAIN INSERT INTO logs VALUES (1)",
  "EXPLAIN EXPLAIN SELECT 1",
  "EXPLAIN COPY logs TO '/tmp/x.csv'",
  "WITH w AS (SELECT 1) INSERT INTO logs SELECT * FROM w",
  // Out of the frame that the text is put in.
  "SELECT 1; SELECT 2",
  "SELECT 1; DROP TABLE logs",
  "SELECT 1) TO '/tmp/x.json' (FORMAT json); --",
  "SELECT 1) AS engine_row(c0), (SELECT 2",
  "SELECT 1 /*",
  "SELECT '",
  "SELECT ?",
  "SELECT $1",
  "SELECT $name",
  "",
  "  \n\t ",
  "-- only a comment",
  ";",
  "\u0000SELECT 1",
];

let harness: QueryHarness;

beforeAll(async () => {
  harness = createQueryHarness();
  const columns = [
    { name: "at", type: { kind: "timestamp" } },
    { name: "label", type: { kind: "string" } },
  ] as const;
  const rows = [{ at: 1n, label: "/etc/passwd" }];
  await harness.addTable("default", "logs", columns, [{ format: "tlm", columns, rows }]);
  await harness.addTable("other", "secret", columns, [{ format: "tlm", columns, rows }]);
});

afterAll(() => harness.close());

describe("hostile statements are refused", () => {
  test.each(HOSTILE)("%s", async (sql) => {
    const error = await harness.text(sql).then(
      (answer) => ({ code: `answered: ${answer}`, message: "" }),
      (thrown: EngineError) => thrown,
    );
    expect(["invalid_query", "parse_error", "table_not_found"]).toContain(error.code);
    expect(error.message).not.toMatch(/root:|engine_row|\/tmp\/engine/);
  });

  test("and none of them cost the process that parsed them", async () => {
    const before = harness.pool.pids();
    for (const sql of HOSTILE.slice(0, 10)) await harness.text(sql).catch(() => {});
    expect(harness.pool.pids()).toEqual(before);
    expect(await harness.rows("SELECT count(*) AS n FROM logs")).toEqual([{ n: 1 }]);
  });

  test("a CTE may have the name of a system table, or of the table it reads", async () => {
    expect(await harness.rows("WITH sqlite_master AS (SELECT 1 AS a) FROM sqlite_master")).toEqual([{ a: 1 }]);
    expect(await harness.rows("WITH logs AS (SELECT label FROM logs) FROM logs")).toEqual([{ label: "/etc/passwd" }]);
  });
});
