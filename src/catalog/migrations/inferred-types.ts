/**
 * Types that come from data. `columns.origin` is `inferred` for a column whose type was
 * taken from values, `declared` for all others. `tables.infer_types` says whether new columns of the table get such
 * types where a request does not say; NULL leaves it to `ENGINE_INGEST_INFER_TYPES`.
 * A column that was widened from `long` to `real` (`catalog/widening.ts`) has the type `real`; before
 * `widened_version` of its table, and to snapshots before `widened_snapshot`, it is `long`.
 *
 * Nodes of the version before go on: their columns are declared, and their tables say nothing. They cannot read a column
 * that was widened, so inference is to be turned on when all nodes are upgraded.
 */
export const SQLITE_INFERRED_TYPES = `
ALTER TABLE columns ADD COLUMN origin TEXT NOT NULL DEFAULT 'declared';
ALTER TABLE columns ADD COLUMN widened_version INTEGER;
ALTER TABLE columns ADD COLUMN widened_snapshot INTEGER;
ALTER TABLE tables ADD COLUMN infer_types INTEGER;
`;

export const POSTGRES_INFERRED_TYPES = `
ALTER TABLE engine.columns ADD COLUMN origin text NOT NULL DEFAULT 'declared';
ALTER TABLE engine.columns ADD COLUMN widened_version integer;
ALTER TABLE engine.columns ADD COLUMN widened_snapshot bigint;
ALTER TABLE engine.tables ADD COLUMN infer_types boolean;
ALTER TYPE engine.new_column ADD ATTRIBUTE origin text;

-- As before, with the origin.
CREATE OR REPLACE FUNCTION engine.add_columns(p_versions json, p_columns json) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_head engine.head;
BEGIN
  SELECT * INTO v_head FROM engine.head FOR UPDATE;
  IF EXISTS (
    SELECT FROM json_populate_recordset(NULL::engine.new_version, p_versions) v
    LEFT JOIN engine.tables t ON t.id = v.table_id WHERE t.schema_version IS DISTINCT FROM v.expected
  ) THEN RETURN false; END IF;
  UPDATE engine.tables t SET schema_version = v.version, next_column_id = v.next_column_id
  FROM json_populate_recordset(NULL::engine.new_version, p_versions) v WHERE t.id = v.table_id;
  INSERT INTO engine.columns (table_id, id, name, folded_name, type, since_version, since_snapshot, origin)
  SELECT c.table_id, c.id, c.name, c.folded_name, c.type, c.since_version, v_head.snapshot_id + 1,
    coalesce(c.origin, 'declared')
  FROM json_populate_recordset(NULL::engine.new_column, p_columns) c;
  UPDATE engine.head SET schema_generation = schema_generation + 1;
  RETURN true;
END $$;

CREATE FUNCTION engine.set_infer_types(p_table bigint, p_infer_types boolean) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM engine.head FOR UPDATE;
  UPDATE engine.tables SET infer_types = p_infer_types WHERE id = p_table;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE engine.head SET schema_generation = schema_generation + 1;
  RETURN true;
END $$;

-- Makes columns real under the next version of the table; the caller holds the head, and has looked at all statistics.
-- False, and nothing is changed, when the table is of another version.
CREATE FUNCTION engine.widen_columns(p_table bigint, p_expected integer, p_columns json)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_head engine.head;
  v_columns integer[] := ARRAY(SELECT json_array_elements_text(p_columns)::integer);
BEGIN
  SELECT * INTO v_head FROM engine.head FOR UPDATE;
  IF NOT EXISTS (
    SELECT FROM engine.tables t WHERE t.id = p_table AND t.schema_version = p_expected AND t.dropped_at_ms IS NULL
  ) THEN RETURN false; END IF;
  UPDATE engine.tables SET schema_version = p_expected + 1 WHERE id = p_table;
  UPDATE engine.columns
  SET type = 'real', widened_version = p_expected + 1, widened_snapshot = v_head.snapshot_id + 1
  WHERE table_id = p_table AND id = ANY (v_columns);
  UPDATE engine.head SET schema_generation = schema_generation + 1;
  RETURN true;
END $$;

-- Answers {kind, flushes} with those that cannot be stored since one of their columns named in "unwidened" was widened
-- after they were sealed; NULL when there is none. To be asked under the lock of the head.
CREATE FUNCTION engine.flushes_before_widening(p_flushes json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  v_flushes integer[] := ARRAY(
    SELECT f.flush
    FROM json_to_recordset(p_flushes) AS f (flush integer, table_id bigint, sealed_under integer, unwidened json)
    WHERE f.unwidened IS NOT NULL AND EXISTS (
      SELECT FROM engine.columns c
      WHERE c.table_id = f.table_id AND c.widened_version > f.sealed_under
        AND c.id = ANY (ARRAY(SELECT json_array_elements_text(f.unwidened)::integer))));
BEGIN
  IF cardinality(v_flushes) = 0 THEN RETURN NULL; END IF;
  RETURN json_build_object('kind', 'before_widening', 'flushes', v_flushes);
END $$;

-- The settings travel in one value, so that the next one needs no other function.
CREATE FUNCTION engine.create_table_with(
  p_database text, p_folded_database text, p_name text, p_folded text, p_settings json, p_columns json
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF NOT engine.create_table(
    p_database, p_folded_database, p_name, p_folded, (p_settings->>'retention_days')::integer, p_columns
  ) THEN
    RETURN false;
  END IF;
  UPDATE engine.tables t
  SET cluster_by = p_settings->>'cluster_by', infer_types = (p_settings->>'infer_types')::boolean
  FROM engine.databases d WHERE d.folded_name = p_folded_database AND t.database_id = d.id AND t.folded_name = p_folded;
  UPDATE engine.columns k SET origin = c.origin
  FROM json_populate_recordset(NULL::engine.new_column, p_columns) c, engine.databases d, engine.tables t
  WHERE d.folded_name = p_folded_database AND t.database_id = d.id AND t.folded_name = p_folded
    AND k.table_id = t.id AND k.id = c.id AND c.origin IS NOT NULL;
  RETURN true;
END $$;
`;
