import { DELETION_RECORDS } from "./deletion-records.ts";

/**
 * Deletions on request: see `deletion-records.ts`. Nodes of the version before may bring extents into a table that was
 * just dropped, for their commits do not ask; the physical deletion ends those, too.
 */
export const POSTGRES_DELETION = `
ALTER TABLE engine.databases ADD COLUMN dropped_at_ms bigint;
ALTER TABLE engine.tables ADD COLUMN dropped_at_ms bigint;
ALTER TABLE engine.tables ADD COLUMN readable_from bigint NOT NULL DEFAULT 0;
${DELETION_RECORDS}

-- Those of the tables that were dropped; NULL when none was. To be asked under the lock of the head.
CREATE FUNCTION engine.dropped_of(p_tables json) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  RETURN (
    SELECT json_agg(t.id) FROM engine.tables t
    WHERE t.dropped_at_ms IS NOT NULL AND t.id = ANY (ARRAY(SELECT json_array_elements_text(p_tables)::bigint)));
END $$;

-- As before, but for the lock, which comes first: the database must not be dropped between the look and the insertion.
CREATE OR REPLACE FUNCTION engine.create_table(
  p_database text, p_folded_database text, p_name text, p_folded text, p_retention_days integer, p_columns json
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_database bigint;
  v_table bigint;
BEGIN
  PERFORM 1 FROM engine.head FOR UPDATE;
  PERFORM engine.create_database(p_database, p_folded_database);
  SELECT id INTO v_database FROM engine.databases WHERE folded_name = p_folded_database;
  INSERT INTO engine.tables (database_id, name, folded_name, schema_version, next_column_id, retention_days)
  VALUES (v_database, p_name, p_folded, 1, json_array_length(p_columns) + 1, p_retention_days)
  ON CONFLICT DO NOTHING RETURNING id INTO v_table;
  IF v_table IS NULL THEN RETURN false; END IF;
  INSERT INTO engine.table_totals (table_id) VALUES (v_table);
  INSERT INTO engine.columns (table_id, id, name, folded_name, type, since_version, since_snapshot)
  SELECT v_table, c.id, c.name, c.folded_name, c.type, 1, 0
  FROM json_populate_recordset(NULL::engine.new_column, p_columns) c;
  UPDATE engine.head SET schema_generation = schema_generation + 1;
  RETURN true;
END $$;

-- Drops one table, or (without one) a database with its tables. Answers {snapshotId, committedAtMs, tables, rows,
-- extents, sizeBytes}; NULL, and nothing happens, when it is not there.
CREATE FUNCTION engine.drop_named(p_now bigint, p_commit uuid, p_table bigint, p_database bigint)
RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  v_head engine.head;
  v_at bigint;
  v_database engine.databases;
  v_tables bigint[];
  v_table text := '';
  v_answer json;
BEGIN
  SELECT * INTO v_head FROM engine.head FOR UPDATE;
  v_at := greatest(engine.now_ms(p_now), v_head.committed_at_ms);
  IF p_table IS NULL THEN
    SELECT * INTO v_database FROM engine.databases WHERE id = p_database AND dropped_at_ms IS NULL;
    IF NOT FOUND THEN RETURN NULL; END IF;
    v_tables := ARRAY(SELECT id FROM engine.tables WHERE database_id = p_database AND dropped_at_ms IS NULL);
  ELSE
    SELECT t.folded_name INTO v_table FROM engine.tables t WHERE t.id = p_table AND t.dropped_at_ms IS NULL;
    IF NOT FOUND THEN RETURN NULL; END IF;
    SELECT d.* INTO v_database FROM engine.databases d JOIN engine.tables t ON t.database_id = d.id WHERE t.id = p_table;
    v_tables := ARRAY[p_table];
  END IF;
  SELECT json_build_object(
    'snapshotId', v_head.snapshot_id + 1, 'committedAtMs', v_at, 'tables', cardinality(v_tables),
    'rows', coalesce(sum(s.row_count), 0), 'extents', coalesce(sum(s.extent_count), 0),
    'sizeBytes', coalesce(sum(s.size_bytes), 0))
  INTO v_answer FROM engine.table_totals s WHERE s.table_id = ANY (v_tables);
  UPDATE engine.extents SET end_snapshot = v_head.snapshot_id + 1, deleted_at_ms = v_at
  WHERE table_id = ANY (v_tables) AND end_snapshot IS NULL;
  UPDATE engine.table_totals SET row_count = 0, extent_count = 0, size_bytes = 0 WHERE table_id = ANY (v_tables);
  -- A node that still knows the table must find no key of it.
  DELETE FROM engine.ledger WHERE table_id = ANY (v_tables);
  UPDATE engine.tables SET name = name || '#' || id, folded_name = folded_name || '#' || id, dropped_at_ms = v_at
  WHERE id = ANY (v_tables);
  INSERT INTO engine.drops (folded_database, folded_table, dropped_at_ms) VALUES (v_database.folded_name, v_table, v_at)
  ON CONFLICT (folded_database, folded_table) DO UPDATE SET dropped_at_ms = excluded.dropped_at_ms;
  IF p_table IS NULL THEN
    UPDATE engine.databases SET name = name || '#' || id, folded_name = folded_name || '#' || id, dropped_at_ms = v_at
    WHERE id = p_database;
    PERFORM engine.forget_database(p_database);
  END IF;
  UPDATE engine.head SET schema_generation = schema_generation + 1;
  PERFORM engine.make_snapshot(p_commit, v_head.snapshot_id + 1, v_at, v_head.last_seq, v_answer);
  RETURN v_answer;
END $$;

-- A dropped database goes with the last of its tables.
CREATE FUNCTION engine.forget_database(p_database bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM engine.databases WHERE id = p_database AND dropped_at_ms IS NOT NULL
    AND NOT EXISTS (SELECT FROM engine.tables WHERE database_id = p_database);
END $$;

CREATE FUNCTION engine.forget_table(p_table bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_database bigint;
BEGIN
  PERFORM 1 FROM engine.head FOR UPDATE;
  SELECT database_id INTO v_database FROM engine.tables WHERE id = p_table AND dropped_at_ms IS NOT NULL;
  IF NOT FOUND OR EXISTS (SELECT FROM engine.extents WHERE table_id = p_table) THEN RETURN false; END IF;
  DELETE FROM engine.columns WHERE table_id = p_table;
  DELETE FROM engine.table_totals WHERE table_id = p_table;
  DELETE FROM engine.ledger WHERE table_id = p_table;
  DELETE FROM engine.tables WHERE id = p_table;
  PERFORM engine.forget_database(v_database);
  RETURN true;
END $$;

-- Answers {snapshotId, committedAtMs}; NULL, and nothing happens, when one of the inputs is not alive. p_inputs names
-- the inputs of each group, whose number is the "flush" of its extents.
CREATE FUNCTION engine.delete_rows(
  p_now bigint, p_commit uuid, p_table bigint, p_inputs json, p_rows bigint, p_extents json, p_filters json
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  v_inputs text[] := ARRAY(SELECT json_array_elements_text(g) FROM json_array_elements(p_inputs) AS g);
  v_extents engine.new_extent[] := ARRAY(SELECT x FROM json_populate_recordset(NULL::engine.new_extent, p_extents) x);
  v_filters engine.new_filter[] := ARRAY(SELECT x FROM json_populate_recordset(NULL::engine.new_filter, p_filters) x);
  v_head engine.head;
  v_at bigint;
  v_live record;
  v_rows numeric;
  v_group record;
  v_answer json;
BEGIN
  SELECT * INTO v_head FROM engine.head FOR UPDATE;
  v_at := greatest(engine.now_ms(p_now), v_head.committed_at_ms);
  PERFORM 1 FROM engine.tables WHERE id = p_table AND dropped_at_ms IS NULL;
  IF NOT FOUND THEN RETURN NULL; END IF;
  SELECT count(*) AS extents, coalesce(sum(row_count), 0) AS rows, coalesce(sum(size_bytes), 0) AS bytes INTO v_live
  FROM engine.extents WHERE id = ANY (v_inputs) AND table_id = p_table AND end_snapshot IS NULL;
  IF v_live.extents < cardinality(v_inputs) THEN RETURN NULL; END IF;
  SELECT coalesce(sum(e.row_count), 0) INTO v_rows FROM unnest(v_extents) e;
  IF p_rows < 0 OR v_live.rows <> v_rows + p_rows THEN
    RAISE EXCEPTION '%', json_build_object('inputRows', v_live.rows, 'outputRows', v_rows, 'deletedRows', p_rows)
      USING ERRCODE = 'EN005';
  END IF;
  FOR v_group IN
    SELECT g.ord - 1 AS number, max(e.newest_ns) AS newest
    FROM json_array_elements(p_inputs) WITH ORDINALITY AS g (ids, ord)
    JOIN engine.extents e ON e.id = ANY (engine.texts(g.ids))
    WHERE EXISTS (SELECT FROM unnest(v_extents) o WHERE o.flush = g.ord - 1) GROUP BY g.ord
  LOOP
    PERFORM engine.insert_extents(v_extents, v_filters, ARRAY[v_group.number::integer], v_head.last_seq,
      v_head.snapshot_id + 1, v_group.newest);
  END LOOP;
  UPDATE engine.extents SET end_snapshot = v_head.snapshot_id + 1, deleted_at_ms = v_at WHERE id = ANY (v_inputs);
  UPDATE engine.table_totals
  SET row_count = row_count - v_live.rows, extent_count = extent_count - v_live.extents,
    size_bytes = size_bytes - v_live.bytes
  WHERE table_id = p_table;
  UPDATE engine.tables SET readable_from = v_head.snapshot_id + 1 WHERE id = p_table;
  v_answer := json_build_object('snapshotId', v_head.snapshot_id + 1, 'committedAtMs', v_at);
  PERFORM engine.make_snapshot(
    p_commit, v_head.snapshot_id + 1, v_at, v_head.last_seq + cardinality(v_extents), v_answer);
  RETURN v_answer;
END $$;
`;
