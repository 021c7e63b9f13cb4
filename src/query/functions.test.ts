import { expect, test } from "vitest";
import { loadDuckDb, runSql } from "../io/duckdb/duckdb.ts";
import { ALLOWED_FUNCTIONS, ALLOWED_TABLE_FUNCTIONS, isRefusedFunction } from "./functions.ts";

test("every function of this DuckDB version has been decided on", async () => {
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  const rows = await runSql(
    duckdb,
    connection,
    "SELECT DISTINCT function_name, function_type IN ('table', 'table_macro', 'pragma') AND NOT function_type = 'macro' AS t FROM (SELECT function_name, function_type FROM duckdb_functions()) ORDER BY 1".replace(
      " AS t",
      "::BIGINT AS t",
    ),
  );
  expect(rows.length).toBeGreaterThan(900);
  const undecided = rows.filter(([name, isTable]) => {
    const allowed = isTable === "1" ? ALLOWED_TABLE_FUNCTIONS : ALLOWED_FUNCTIONS;
    return !allowed.has(name ?? "") && !isRefusedFunction(name ?? "");
  });
  expect(undecided).toEqual([]);
});

test("nothing is both allowed and refused, and what reaches outside is refused", () => {
  for (const name of [...ALLOWED_FUNCTIONS, ...ALLOWED_TABLE_FUNCTIONS]) {
    // Both a table function and a scalar one: the table function is refused, the scalar one is harmless.
    if (["histogram", "summary"].includes(name)) continue;
    expect(isRefusedFunction(name), name).toBe(false);
  }
  const outside = ["read_csv", "read_parquet", "read_text", "read_blob", "glob", "getenv", "query", "query_table"];
  const inside = ["current_setting", "getvariable", "duckdb_settings", "json_execute_serialized_sql", "nextval"];
  for (const name of [...outside, ...inside, "engine_tlm_scan", "engine_shift"]) {
    expect(ALLOWED_FUNCTIONS.has(name) || ALLOWED_TABLE_FUNCTIONS.has(name), name).toBe(false);
  }
});
