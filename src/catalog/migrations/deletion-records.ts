/**
 * Deletions on request (see `Catalog.dropTable` and `Catalog.deleteRows`), in the vocabulary that both databases share.
 * The migration is the catalog's and not of the feature that deletes: it adds columns to the catalog's tables, in
 * PostgreSQL with the functions that use them, and the catalog cannot drop a table without it.
 *
 * - A dropped table, or database, keeps its row until its bytes are gone: extents point to it. Its name gets `#` and its
 *   id as a suffix, which no name can have, so that the name itself is free at once.
 * - `tables.readable_from`: the snapshot of the last deletion of rows. Earlier ones cannot be read of that table, though
 *   their extents stay for as long as queries that began before may need them (`oldest_snapshot`).
 * - `drops`: when each name was dropped last, for writes that were staged before (`folded_table` is empty for a whole
 *   database). One row for each name that was ever dropped.
 * - `row_deletions`: the report of each deletion of rows, by the id of its job.
 */
export const DELETION_RECORDS = `
CREATE TABLE drops (
  folded_database text NOT NULL,
  folded_table text NOT NULL,
  dropped_at_ms bigint NOT NULL,
  PRIMARY KEY (folded_database, folded_table)
);

CREATE TABLE row_deletions (
  id text PRIMARY KEY,
  table_id bigint NOT NULL,
  database_name text NOT NULL,
  table_name text NOT NULL,
  condition text NOT NULL,
  deleted_by text NOT NULL,
  row_count bigint NOT NULL,
  extents_ended bigint NOT NULL,
  extents_rewritten bigint NOT NULL,
  snapshot_id bigint NOT NULL,
  committed_at_ms bigint NOT NULL,
  bytes_gone_at_ms bigint
);
CREATE INDEX row_deletions_open ON row_deletions (id) WHERE bytes_gone_at_ms IS NULL;
`;

/** In SQLite, which has no functions. */
export const SQLITE_DELETION = `
ALTER TABLE databases ADD COLUMN dropped_at_ms INTEGER;
ALTER TABLE tables ADD COLUMN dropped_at_ms INTEGER;
ALTER TABLE tables ADD COLUMN readable_from INTEGER NOT NULL DEFAULT 0;
${DELETION_RECORDS}`;
