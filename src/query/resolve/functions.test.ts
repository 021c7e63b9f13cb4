import { expect, test } from "vitest";
import { loadDuckDb, runSql } from "../../io/duckdb/duckdb.ts";
import { ALLOWED_FUNCTIONS, ALLOWED_TABLE_FUNCTIONS, isRefusedFunction } from "./functions.ts";

test("every function of this DuckDB version has been decided on", async () => {
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  const rows = await runSql(duckdb, connection, "SELECT DISTINCT function_name, function_type FROM duckdb_functions()");
  expect(rows.length).toBeGreaterThan(900);
  const undecided = rows.filter(([name, type]) => {
    const isTable = ["table", "table_macro", "pragma"].includes(type ?? "");
    const allowed = isTable ? ALLOWED_TABLE_FUNCTIONS : ALLOWED_FUNCTIONS;
    return !allowed.has(name ?? "") && !isRefusedFunction(name ?? "", isTable ? "table" : "scalar");
  });
  expect(undecided).toEqual([]);
});

test("nothing is both allowed and refused", () => {
  expect([...ALLOWED_FUNCTIONS].filter((name) => isRefusedFunction(name, "scalar"))).toEqual([]);
  expect([...ALLOWED_TABLE_FUNCTIONS].filter((name) => isRefusedFunction(name, "table"))).toEqual([]);
});

test("what reaches outside, or inside the engine, is not allowed", () => {
  const outside = ["read_csv", "read_parquet", "read_text", "read_blob", "glob", "getenv", "query", "query_table"];
  const inside = ["current_setting", "getvariable", "duckdb_settings", "json_execute_serialized_sql", "nextval"];
  for (const name of [...outside, ...inside, "engine_tlm_scan", "engine_shift"]) {
    expect([...ALLOWED_FUNCTIONS, ...ALLOWED_TABLE_FUNCTIONS]).not.toContain(name);
  }
});
