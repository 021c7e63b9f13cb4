import { request, requestJson } from "../../base/api.ts";
import { readNdjson } from "../../base/ndjson.ts";

/** What the catalog knows, by queries of the tables of `system`: no data of the user's is read for it, but for statistics. */

export type TableFacts = {
  name: string;
  columns: number;
  rows: number;
  extents: number;
  bytes: number;
  schema_version: number;
  retention_days: number | null;
  cluster_by: string | null;
  infer_types: boolean | null;
};

export type ColumnFacts = { position: number; name: string; type: string; origin: string; misfits: number };

export type ExtentFacts = {
  id: string;
  format: string;
  rows: number;
  bytes: number;
  min_at: string | null;
  max_at: string | null;
  begin_snapshot: number;
  schema_version: number;
  format_version: number;
  is_publishable: boolean;
};

/** What a snapshot changed in one table. */
export type SnapshotFacts = {
  id: number;
  committed_at: string;
  operation: string;
  rows_added: number;
  rows_removed: number;
  extents_added: number;
  extents_removed: number;
};

/** What other programs (Iceberg clients) see of a table. */
export type OpenFacts = { unpublished_rows: number; unpublished_bytes: number; open_lag_secs: number | null };

export async function readDatabases(signal: AbortSignal): Promise<string[]> {
  const rows = await ask<{ database_name: string }>(undefined, "SHOW DATABASES", {}, signal);
  return rows.map(({ database_name: name }) => name);
}

export function readTables(database: string, signal: AbortSignal): Promise<TableFacts[]> {
  return ask(database, "SELECT * FROM system.tables ORDER BY name", {}, signal);
}

export function readColumns(database: string, table: string, signal: AbortSignal): Promise<ColumnFacts[]> {
  return ask(database, "SELECT * FROM system.columns WHERE table_name = $table ORDER BY position", { table }, signal);
}

export function readExtents(database: string, table: string, signal: AbortSignal): Promise<ExtentFacts[]> {
  return ask(
    database,
    "SELECT * FROM system.extents WHERE table_name = $table ORDER BY max_at DESC",
    { table },
    signal,
  );
}

/** Those that changed the table, the newest first. */
export function readSnapshots(database: string, table: string, signal: AbortSignal): Promise<SnapshotFacts[]> {
  return ask(database, "SELECT * FROM system.snapshots WHERE table_name = $table ORDER BY id DESC", { table }, signal);
}

export function readOpenFacts(database: string, table: string, signal: AbortSignal): Promise<OpenFacts> {
  const path = `/v1/admin/databases/${encodeURIComponent(database)}/tables/${encodeURIComponent(table)}`;
  return requestJson<OpenFacts>(path, { signal });
}

export type ColumnStatistics = {
  rows: number;
  present: number;
  distinct_values: number;
  least: string | null;
  greatest: string | null;
};

export type FrequentValue = { value: string | null; n: number };

/** Reads the whole column. */
export async function readStatistics(
  database: string,
  table: string,
  column: string,
  signal: AbortSignal,
): Promise<{ statistics: ColumnStatistics | undefined; frequent: FrequentValue[] }> {
  const [name, from] = [quoted(column), quoted(table)];
  const [statistics, frequent] = await Promise.all([
    ask<ColumnStatistics>(
      database,
      `SELECT count(*) AS rows, count(${name}) AS present, approx_count_distinct(${name}) AS distinct_values,
left(CAST(min(${name}) AS VARCHAR), 200) AS least, left(CAST(max(${name}) AS VARCHAR), 200) AS greatest FROM ${from}`,
      {},
      signal,
    ),
    ask<FrequentValue>(
      database,
      `SELECT left(CAST(${name} AS VARCHAR), 200) AS value, count(*) AS n FROM ${from} GROUP BY 1 ORDER BY n DESC, value LIMIT 10`,
      {},
      signal,
    ),
  ]);
  return { statistics: statistics[0], frequent };
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

async function ask<T>(
  database: string | undefined,
  query: string,
  params: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<T[]> {
  const response = await request("/v1/query", {
    json: { query, params },
    headers: { Accept: "application/x-ndjson", ...(database !== undefined && { "X-Database": database }) },
    signal,
  });
  const rows: T[] = [];
  if (response.body !== null) for await (const values of readNdjson<T>(response.body)) rows.push(...values);
  return rows;
}
