import type { Migration } from "../../../db/migration.ts";

/**
 * Dropped files by their keys, ordered by bytes as the object store lists them. That a file is ingested its position in
 * `input_positions` says, which moves with the rows; this is what people see (`system.filedrop`), and what was rejected.
 */
const files = (text: string, key: string): string => `(
  key ${key} PRIMARY KEY,
  database_name ${text},
  table_name ${text},
  state ${text} NOT NULL,
  identity ${text} NOT NULL,
  size_bytes bigint NOT NULL,
  row_count bigint,
  misfits bigint,
  snapshot_id bigint,
  reason ${text},
  line bigint,
  column_name ${text},
  found_at_ms bigint NOT NULL,
  changed_at_ms bigint NOT NULL
)`;

export const FILEDROP_MIGRATIONS: readonly Migration[] = [
  {
    name: "dropped files",
    sqlite: 17,
    postgres: 14,
    sql: {
      sqlite: `CREATE TABLE filedrop_files ${files("text", "text")};`,
      postgres: `CREATE TABLE engine.filedrop_files ${files("text", 'text COLLATE "C"')};`,
    },
  },
];
