import type { Connection } from "../../src/db/sqlite/connection.ts";

/** An extent as the catalog has it. */
export type CatalogExtent = {
  id: string;
  tableId: number;
  key: string;
  rows: number;
  checksum: string;
  beginSnapshot: number;
  endSnapshot: number | undefined;
};

export type CatalogState = {
  head: { id: number; committedAtMs: number };
  /** The oldest snapshot that can be read, of all tables, and by table. */
  oldest: number;
  tables: ReadonlyMap<number, { oldest: number; retentionDays: number | undefined }>;
  extents: ReadonlyMap<string, CatalogExtent>;
};

/** What the catalog says, past all code that is under test but the driver's writing. */
export function readCatalog(connection: Connection): CatalogState {
  const head = connection.get("SELECT id, committed_at_ms FROM snapshots ORDER BY id DESC LIMIT 1");
  const tables = connection.all("SELECT id, oldest_snapshot, retention_days FROM tables").map((row) => {
    const days = row["retention_days"];
    const retentionDays = typeof days === "number" ? days : undefined;
    return [Number(row["id"]), { oldest: Number(row["oldest_snapshot"]), retentionDays }] as const;
  });
  return {
    head: { id: Number(head?.["id"]), committedAtMs: Number(head?.["committed_at_ms"]) },
    oldest: Number(connection.get("SELECT oldest_snapshot FROM meta")?.["oldest_snapshot"]),
    tables: new Map(tables),
    extents: new Map(connection.all(EXTENTS).map((row) => [String(row["id"]), toExtent(row)])),
  };
}

const EXTENTS =
  "SELECT id, table_id, object_key, row_count, checksum, begin_snapshot, end_snapshot FROM extents ORDER BY seq";

function toExtent(row: Record<string, unknown>): CatalogExtent {
  return {
    id: String(row["id"]),
    tableId: Number(row["table_id"]),
    key: String(row["object_key"]),
    rows: Number(row["row_count"]),
    checksum: String(row["checksum"]),
    beginSnapshot: Number(row["begin_snapshot"]),
    endSnapshot: row["end_snapshot"] === null ? undefined : Number(row["end_snapshot"]),
  };
}

/** Whether a snapshot sees the extent that can still be read. */
export function isNeeded({ tableId, endSnapshot }: CatalogExtent, { oldest, tables }: CatalogState): boolean {
  if (endSnapshot === undefined) return true;
  return endSnapshot > Math.max(oldest, tables.get(tableId)?.oldest ?? 0);
}
