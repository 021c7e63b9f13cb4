import { request } from "./api.ts";
import { readNdjson } from "./ndjson.ts";

/** What a table holds now; numbers are as exact as JSON's. */
export type TableSize = { name: string; rows: number; bytes: number; extents: number };

const TEXT = "SELECT name, rows, bytes, extents FROM system.tables ORDER BY name";

/** The sizes of the tables of a database, by the catalog: no data is read. */
export async function readTableSizes(database: string, signal: AbortSignal): Promise<TableSize[]> {
  const response = await request("/v1/query", {
    body: TEXT,
    headers: { "Content-Type": "application/sql", Accept: "application/x-ndjson", "X-Database": database },
    signal,
  });
  const sizes: TableSize[] = [];
  if (response.body !== null) for await (const rows of readNdjson<TableSize>(response.body)) sizes.push(...rows);
  return sizes;
}
