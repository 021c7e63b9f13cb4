/**
 * The tables of the catalog. Everything lies in the schema `engine`; nothing is found by a search path.
 *
 * - The one row of `head` is the catalog's lock: whoever makes a snapshot or changes tables locks it first, and keeps it
 *   to the end of the transaction, so writes happen one after the other and numbers follow the order of commits. A
 *   sequence would not do: a number drawn earlier may be committed later, and a reader that saw the later one would miss
 *   it.
 * - `commits` remembers what a commit was answered by an id that its client chose: when the answer is lost on the way, the
 *   client asks for it. Asking for one that is not there takes its place, so that it cannot happen any more.
 * - `horizon` is the lock of what may still be read: expiring takes it, and saying that something is being read.
 * - Extents are numbered in the order of their commits. Readers keep them in memory (`scan.ts`), so an index on `seq` by
 *   table and one on deletions are all they need; `extents_alive` is for background duties.
 * - Statistics lie apart from the extents, as JSON text and never as `jsonb`, which refuses NUL.
 * - Keys may be longer than an index takes (2,704 bytes): their SHA-256 is what is indexed.
 * - There are no foreign keys on what commits write: checking them would write to the rows that they point to. `verify`
 *   looks at them instead.
 * - Names are ordered by bytes (`COLLATE "C"`), whatever the database's language.
 */
export const SCHEMA_1 = `
CREATE TABLE engine.head (
  id integer PRIMARY KEY CHECK (id = 1),
  snapshot_id bigint NOT NULL,
  committed_at_ms bigint NOT NULL,
  last_seq bigint NOT NULL,
  schema_generation bigint NOT NULL
) WITH (fillfactor = 10);

CREATE TABLE engine.horizon (
  id integer PRIMARY KEY CHECK (id = 1),
  oldest_snapshot bigint NOT NULL
) WITH (fillfactor = 10);

CREATE TABLE engine.databases (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL,
  folded_name text COLLATE "C" NOT NULL UNIQUE
);

CREATE TABLE engine.tables (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  database_id bigint NOT NULL REFERENCES engine.databases (id),
  name text NOT NULL,
  folded_name text COLLATE "C" NOT NULL,
  schema_version integer NOT NULL,
  next_column_id integer NOT NULL,
  retention_days integer,
  oldest_snapshot bigint NOT NULL DEFAULT 0,
  UNIQUE (database_id, folded_name)
);

CREATE TABLE engine.table_totals (
  table_id bigint PRIMARY KEY REFERENCES engine.tables (id),
  row_count numeric NOT NULL DEFAULT 0,
  extent_count bigint NOT NULL DEFAULT 0,
  size_bytes numeric NOT NULL DEFAULT 0,
  forgotten_extents bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE engine.columns (
  table_id bigint NOT NULL REFERENCES engine.tables (id),
  id integer NOT NULL,
  name text NOT NULL,
  folded_name text COLLATE "C" NOT NULL,
  type text NOT NULL,
  since_version integer NOT NULL,
  since_snapshot bigint NOT NULL,
  PRIMARY KEY (table_id, id),
  UNIQUE (table_id, folded_name)
);

CREATE TABLE engine.snapshots (
  id bigint PRIMARY KEY,
  committed_at_ms bigint NOT NULL
);
CREATE INDEX snapshots_by_time ON engine.snapshots (committed_at_ms, id);

CREATE TABLE engine.commits (
  commit_id uuid PRIMARY KEY,
  made_at_ms bigint NOT NULL,
  answer json
);
CREATE INDEX commits_by_age ON engine.commits (made_at_ms);

CREATE TABLE engine.extents (
  seq bigint PRIMARY KEY,
  id text COLLATE "C" NOT NULL,
  table_id bigint NOT NULL,
  schema_version integer NOT NULL,
  object_key text NOT NULL,
  format text NOT NULL,
  format_version integer NOT NULL,
  row_count bigint NOT NULL,
  size_bytes bigint NOT NULL,
  checksum text NOT NULL,
  min_at_ns bigint NOT NULL,
  max_at_ns bigint NOT NULL,
  newest_ns bigint NOT NULL,
  begin_snapshot bigint NOT NULL,
  end_snapshot bigint,
  deleted_at_ms bigint,
  column_ids text NOT NULL,
  CONSTRAINT extents_id_key UNIQUE (id)
);
CREATE INDEX extents_by_table ON engine.extents (table_id, seq);
CREATE INDEX extents_by_deletion ON engine.extents (table_id, deleted_at_ms, end_snapshot, seq)
  WHERE deleted_at_ms IS NOT NULL;
CREATE INDEX extents_alive ON engine.extents (table_id, newest_ns, seq) INCLUDE (min_at_ns, size_bytes, row_count)
  WHERE end_snapshot IS NULL;

CREATE TABLE engine.extent_stats (
  seq bigint PRIMARY KEY,
  stats text NOT NULL
);

CREATE TABLE engine.extent_filters (
  seq bigint NOT NULL,
  column_id integer NOT NULL,
  kind text NOT NULL,
  filter bytea NOT NULL,
  PRIMARY KEY (seq, column_id, kind)
);
-- Filters do not get smaller by compression.
ALTER TABLE engine.extent_filters ALTER COLUMN filter SET STORAGE EXTERNAL;

CREATE TABLE engine.ledger (
  table_id bigint NOT NULL,
  key_hash bytea NOT NULL,
  key text NOT NULL,
  snapshot_id bigint NOT NULL,
  extent_count bigint NOT NULL,
  row_count bigint NOT NULL,
  size_bytes bigint NOT NULL,
  created_at_ms bigint NOT NULL,
  PRIMARY KEY (table_id, key_hash)
);
CREATE INDEX ledger_by_age ON engine.ledger (created_at_ms);

CREATE TABLE engine.staged (
  id_hash bytea PRIMARY KEY,
  id text NOT NULL,
  snapshot_id bigint NOT NULL,
  committed_at_ms bigint NOT NULL
);
CREATE INDEX staged_by_age ON engine.staged (committed_at_ms);

CREATE TABLE engine.condemned_extents (
  id text COLLATE "C" PRIMARY KEY
);

CREATE TABLE engine.leases (
  name text PRIMARY KEY,
  holder text NOT NULL,
  fence bigint NOT NULL,
  expires_at_ms bigint NOT NULL
);

CREATE TABLE engine.snapshot_holds (
  node text PRIMARY KEY,
  oldest_snapshot bigint NOT NULL,
  expires_at_ms bigint NOT NULL
);

CREATE TYPE engine.new_flush AS (flush integer, table_id bigint, is_stored boolean, is_pivot boolean, staged_hash text, staged text);
CREATE TYPE engine.new_version AS (table_id bigint, expected integer, version integer, next_column_id integer);
CREATE TYPE engine.new_column AS (table_id bigint, id integer, name text, folded_name text, type text, since_version integer);
CREATE TYPE engine.new_extent AS (
  ord integer, flush integer, id text, table_id bigint, schema_version integer, object_key text, format text,
  format_version integer, row_count bigint, size_bytes bigint, checksum text, min_at_ns bigint, max_at_ns bigint,
  column_ids text, stats text
);
CREATE TYPE engine.new_filter AS (ord integer, column_id integer, kind text, filter text);
CREATE TYPE engine.new_entry AS (
  flush integer, table_id bigint, hash text, key text, extent_count bigint, row_count bigint, size_bytes bigint
);
`;
