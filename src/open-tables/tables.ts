import type { Migration } from "../db/migration.ts";

/**
 * - `open_tables`: tables that a client has loaded. The id that clients know one by is made once, and travels with the
 *   catalog.
 * - `open_snapshots`: snapshots of those tables whose files are durable in the store. The rest of a row says what is in
 *   them. `location` is the place of the whole store, as other programs see it: what was written for another place is of
 *   no use here.
 */
const OPEN_TABLES = `
CREATE TABLE open_tables (
  table_id bigint PRIMARY KEY,
  uuid text NOT NULL,
  loaded_at_ms bigint NOT NULL
);

CREATE TABLE open_snapshots (
  table_id bigint NOT NULL,
  snapshot_id bigint NOT NULL,
  committed_at_ms bigint NOT NULL,
  location text NOT NULL,
  list_key text NOT NULL,
  metadata_key text,
  manifests text NOT NULL,
  added bigint NOT NULL,
  removed bigint NOT NULL,
  files bigint NOT NULL,
  row_count bigint NOT NULL,
  size_bytes bigint NOT NULL,
  pending_since_ms bigint,
  pending_rows bigint NOT NULL,
  PRIMARY KEY (table_id, snapshot_id)
);
`;

export const OPEN_TABLES_MIGRATIONS: readonly Migration[] = [
  { name: "open tables", sqlite: 29, postgres: 26, sql: OPEN_TABLES },
];
