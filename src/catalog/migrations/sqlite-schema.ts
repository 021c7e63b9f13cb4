/**
 * The texts of the catalog's migrations in SQLite. A published text never changes: a correction is a new migration.
 */

/**
 * - `folded_name` is the form under which names are compared; the unique indexes make it the rule.
 * - `since_version` is the schema version that a column came with, so that the columns of every version can be read.
 * - An extent's `span_class` is the bit length of its time span; see `extents.ts` for how it makes a search by time
 *   cheap. The index carries what decides whether an extent is visible, so that only visible rows are fetched.
 * - Statistics are one row per extent, not one per column (`stats.ts`), and apart from the extents, whose pages stay
 *   dense for the searches that need no statistics.
 * - Totals are kept per table: they are asked for often, and adding up 100,000 extents takes tens of milliseconds.
 */
export const CATALOG = `
CREATE TABLE meta (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  schema_generation INTEGER NOT NULL
) STRICT;
INSERT INTO meta (id, schema_generation) VALUES (1, 0);

CREATE TABLE databases (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  folded_name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE tables (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  database_id INTEGER NOT NULL REFERENCES databases (id),
  name TEXT NOT NULL,
  folded_name TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  next_column_id INTEGER NOT NULL,
  retention_days INTEGER,
  UNIQUE (database_id, folded_name)
) STRICT;

CREATE TABLE table_totals (
  table_id INTEGER PRIMARY KEY REFERENCES tables (id),
  row_count INTEGER NOT NULL,
  extent_count INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL
) STRICT;

CREATE TABLE columns (
  table_id INTEGER NOT NULL REFERENCES tables (id),
  id INTEGER NOT NULL,
  name TEXT NOT NULL,
  folded_name TEXT NOT NULL,
  type TEXT NOT NULL,
  since_version INTEGER NOT NULL,
  PRIMARY KEY (table_id, id),
  UNIQUE (table_id, folded_name)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
  id INTEGER PRIMARY KEY,
  committed_at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE extents (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  table_id INTEGER NOT NULL REFERENCES tables (id),
  schema_version INTEGER NOT NULL,
  object_key TEXT NOT NULL,
  format TEXT NOT NULL,
  format_version INTEGER NOT NULL,
  row_count INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  checksum TEXT NOT NULL,
  min_at_ns INTEGER NOT NULL,
  max_at_ns INTEGER NOT NULL,
  span_class INTEGER NOT NULL,
  begin_snapshot INTEGER NOT NULL,
  end_snapshot INTEGER,
  deleted_at_ms INTEGER
) STRICT;
CREATE INDEX extents_by_time
  ON extents (table_id, span_class, min_at_ns, max_at_ns, begin_snapshot, end_snapshot);
CREATE INDEX extents_by_deletion ON extents (table_id, deleted_at_ms) WHERE deleted_at_ms IS NOT NULL;

CREATE TABLE extent_stats (
  seq INTEGER PRIMARY KEY REFERENCES extents (seq),
  column_ids TEXT NOT NULL,
  stats TEXT NOT NULL
) STRICT;

CREATE TABLE ledger (
  table_id INTEGER NOT NULL REFERENCES tables (id),
  key TEXT NOT NULL,
  snapshot_id INTEGER NOT NULL,
  extent_count INTEGER NOT NULL,
  row_count INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (table_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX ledger_by_age ON ledger (created_at_ms);
`;

/**
 * - Snapshots before `oldest_snapshot` are no longer readable.
 * - `forgotten_extents` counts extents whose records were deleted: whoever remembers extents must read them anew when it
 *   moves, for `seq` may be used again.
 * - `extents_by_table` ends with `seq`, as every index does: what a table got since some extent is one seek.
 */
export const TIME_TRAVEL = `
ALTER TABLE meta ADD COLUMN oldest_snapshot INTEGER NOT NULL DEFAULT 0;
ALTER TABLE meta ADD COLUMN forgotten_extents INTEGER NOT NULL DEFAULT 0;
CREATE INDEX snapshots_by_time ON snapshots (committed_at_ms);
CREATE INDEX extents_by_table ON extents (table_id);
`;

/**
 * Filters lie in a table of their own, so that a search that asks none reads none, and one row per column and kind, so
 * that it reads only those it asks (`filters.ts`).
 */
export const FILTERS = `
CREATE TABLE extent_filters (
  seq INTEGER NOT NULL REFERENCES extents (seq),
  column_id INTEGER NOT NULL,
  kind TEXT NOT NULL,
  filter BLOB NOT NULL,
  PRIMARY KEY (seq, column_id, kind)
) STRICT, WITHOUT ROWID;
`;

/** Of the columns of earlier catalogs it is not known when they came: every snapshot has them. */
export const COLUMN_SNAPSHOTS = `
ALTER TABLE columns ADD COLUMN since_snapshot INTEGER NOT NULL DEFAULT 0;
`;

/**
 * - `newest_ns` is how new an extent is for retention: see `Catalog.expiredExtents`. The index answers what is expired
 *   and which days are crowded without a look at the extents themselves, which it holds while they live.
 * - `tables.oldest_snapshot` is the floor of one table; that of all is `meta.oldest_snapshot`.
 * - A lease that was given back keeps its row, and so its fence.
 */
export const BACKGROUND_DUTIES = `
ALTER TABLE tables ADD COLUMN oldest_snapshot INTEGER NOT NULL DEFAULT 0;
ALTER TABLE extents ADD COLUMN newest_ns INTEGER NOT NULL DEFAULT 0;
UPDATE extents SET newest_ns =
  min(max_at_ns, (SELECT committed_at_ms * 1000000 FROM snapshots WHERE id = begin_snapshot));
CREATE INDEX extents_alive ON extents (table_id, newest_ns, min_at_ns, size_bytes, row_count, end_snapshot)
  WHERE end_snapshot IS NULL;

CREATE TABLE leases (
  name TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  fence INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshot_holds (
  node TEXT PRIMARY KEY,
  oldest_snapshot INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE condemned_extents (
  id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE staged (
  id TEXT PRIMARY KEY,
  snapshot_id INTEGER NOT NULL,
  committed_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX staged_by_age ON staged (committed_at_ms);
`;

/** Names of columns as a JSON array: columns are never renamed or dropped. */
export const CLUSTER_COLUMNS = `
ALTER TABLE tables ADD COLUMN cluster_by TEXT NOT NULL DEFAULT '[]';
`;
