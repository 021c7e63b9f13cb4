import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadDuckDb, quoteText } from "../../../io/duckdb/duckdb.ts";

/** A Parquet file of the rows of a query. */
export async function parquetOf(sql: string): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), "drop-parquet-"));
  try {
    const duckdb = await loadDuckDb();
    const connection = await duckdb.connect(await duckdb.open(":memory:"));
    await duckdb.query(connection, "SET TimeZone = 'UTC'");
    const path = join(folder, "x.parquet");
    await duckdb.query(connection, `COPY (${sql}) TO ${quoteText(path)} (FORMAT parquet)`);
    return readFileSync(path);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
