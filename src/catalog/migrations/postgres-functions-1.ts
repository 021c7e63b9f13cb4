/**
 * What writes, as functions of the database: each call is one statement, and so one round trip and one transaction, in
 * which the lock of the head is held for as long as the server works and never while the network does.
 *
 * They decide nothing that can be decided outside. Names, types and limits of columns are judged by the caller against
 * the table as it knows it, and the call says which version that was; when the version has moved, nothing happens and
 * the caller judges again. What only the database can know is judged here: taken keys, leases, times.
 *
 * `p_now` is NULL but in tests, which bring their own time.
 *
 * A node of the version before may call these while a newer one upgrades the catalog, so a function never changes what
 * it takes or answers: the new one gets a new name.
 */
export const FUNCTIONS_1 = `
CREATE FUNCTION engine.now_ms(p_now bigint) RETURNS bigint LANGUAGE sql AS $$
  SELECT coalesce(p_now, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
$$;

CREATE FUNCTION engine.texts(p_texts json) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT ARRAY(SELECT json_array_elements_text(p_texts))
$$;

-- The lease stays as it is until the transaction ends: who wants it next waits.
CREATE FUNCTION engine.check_lease(p_lease json, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF p_lease IS NULL THEN RETURN; END IF;
  PERFORM 1 FROM engine.leases
  WHERE name = p_lease->>'name' AND holder = p_lease->>'holder' AND fence = (p_lease->>'fence')::bigint
    AND expires_at_ms > p_now
  FOR SHARE;
  IF NOT FOUND THEN RAISE EXCEPTION 'null' USING ERRCODE = 'EN001'; END IF;
END $$;

CREATE FUNCTION engine.make_snapshot(p_commit uuid, p_id bigint, p_at bigint, p_last_seq bigint, p_answer json)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO engine.commits (commit_id, made_at_ms, answer) VALUES (p_commit, p_at, p_answer);
  INSERT INTO engine.snapshots (id, committed_at_ms) VALUES (p_id, p_at);
  UPDATE engine.head SET snapshot_id = p_id, committed_at_ms = p_at, last_seq = p_last_seq;
END $$;

-- What the commit was answered, or NULL when it did not happen; then it cannot any more.
CREATE FUNCTION engine.resolve_commit(p_commit uuid, p_now bigint) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO engine.commits (commit_id, made_at_ms) VALUES (p_commit, engine.now_ms(p_now)) ON CONFLICT DO NOTHING;
  RETURN (SELECT answer FROM engine.commits WHERE commit_id = p_commit);
END $$;

-- False, and nothing is changed, when a table is not of the version that the columns were judged by.
CREATE FUNCTION engine.add_columns(p_versions json, p_columns json) RETURNS boolean LANGUAGE plpgsql AS $$
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
  INSERT INTO engine.columns (table_id, id, name, folded_name, type, since_version, since_snapshot)
  SELECT c.table_id, c.id, c.name, c.folded_name, c.type, c.since_version, v_head.snapshot_id + 1
  FROM json_populate_recordset(NULL::engine.new_column, p_columns) c;
  UPDATE engine.head SET schema_generation = schema_generation + 1;
  RETURN true;
END $$;

CREATE FUNCTION engine.create_database(p_name text, p_folded text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM engine.databases WHERE folded_name = p_folded) THEN RETURN false; END IF;
  PERFORM 1 FROM engine.head FOR UPDATE;
  INSERT INTO engine.databases (name, folded_name) VALUES (p_name, p_folded) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE engine.head SET schema_generation = schema_generation + 1;
  RETURN true;
END $$;

CREATE FUNCTION engine.create_table(
  p_database text, p_folded_database text, p_name text, p_folded text, p_retention_days integer, p_columns json
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_database bigint;
  v_table bigint;
BEGIN
  PERFORM engine.create_database(p_database, p_folded_database);
  SELECT id INTO v_database FROM engine.databases WHERE folded_name = p_folded_database;
  PERFORM 1 FROM engine.head FOR UPDATE;
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

CREATE FUNCTION engine.set_retention(p_table bigint, p_days integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM engine.head FOR UPDATE;
  UPDATE engine.tables SET retention_days = p_days WHERE id = p_table;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE engine.head SET schema_generation = schema_generation + 1;
  RETURN true;
END $$;

-- Inserts the extents of those flushes, numbered from p_seq on. No row counts as newer than p_newest_ns.
CREATE FUNCTION engine.insert_extents(
  p_extents engine.new_extent[], p_filters engine.new_filter[], p_flushes integer[],
  p_seq bigint, p_snapshot bigint, p_newest_ns bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_condemned json;
BEGIN
  SELECT json_agg(c.id ORDER BY e.ord) INTO v_condemned
  FROM unnest(p_extents) e JOIN engine.condemned_extents c ON c.id = e.id WHERE e.flush = ANY (p_flushes);
  IF v_condemned IS NOT NULL THEN RAISE EXCEPTION '%', v_condemned USING ERRCODE = 'EN002'; END IF;
  INSERT INTO engine.extents (
    seq, id, table_id, schema_version, object_key, format, format_version, row_count, size_bytes, checksum,
    min_at_ns, max_at_ns, newest_ns, begin_snapshot, column_ids)
  SELECT p_seq + e.ord, e.id, e.table_id, e.schema_version, e.object_key, e.format, e.format_version, e.row_count,
    e.size_bytes, e.checksum, e.min_at_ns, e.max_at_ns, least(e.max_at_ns, p_newest_ns), p_snapshot, e.column_ids
  FROM unnest(p_extents) e WHERE e.flush = ANY (p_flushes);
  INSERT INTO engine.extent_stats (seq, stats)
  SELECT p_seq + e.ord, e.stats FROM unnest(p_extents) e WHERE e.flush = ANY (p_flushes);
  IF cardinality(p_filters) > 0 THEN
    INSERT INTO engine.extent_filters (seq, column_id, kind, filter)
    SELECT p_seq + f.ord, f.column_id, f.kind, decode(f.filter, 'base64')
    FROM unnest(p_filters) f JOIN unnest(p_extents) e ON e.ord = f.ord WHERE e.flush = ANY (p_flushes);
  END IF;
  UPDATE engine.table_totals t
  SET row_count = t.row_count + s.rows, extent_count = t.extent_count + s.extents, size_bytes = t.size_bytes + s.bytes
  FROM (
    SELECT table_id, sum(row_count) AS rows, count(*) AS extents, sum(size_bytes) AS bytes
    FROM unnest(p_extents) e WHERE e.flush = ANY (p_flushes) GROUP BY table_id
  ) s WHERE t.table_id = s.table_id;
END $$;

-- Answers {kind: "done", snapshotId?, committedAtMs?, taken?, replayed?, versions?}; {kind: "replan", taken?, replayed?}
-- when a flush that others of the commit were judged by is sent back; {kind: "stale"} when a table has moved.
CREATE FUNCTION engine.commit_flushes(
  p_now bigint, p_ttl bigint, p_commit uuid, p_lease json, p_flushes json, p_versions json, p_columns json,
  p_extents json, p_filters json, p_entries json
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  v_flushes engine.new_flush[] := ARRAY(SELECT x FROM json_populate_recordset(NULL::engine.new_flush, p_flushes) x);
  v_extents engine.new_extent[] := ARRAY(SELECT x FROM json_populate_recordset(NULL::engine.new_extent, p_extents) x);
  v_filters engine.new_filter[] := ARRAY(SELECT x FROM json_populate_recordset(NULL::engine.new_filter, p_filters) x);
  v_entries engine.new_entry[] := ARRAY(SELECT x FROM json_populate_recordset(NULL::engine.new_entry, p_entries) x);
  v_head engine.head;
  v_now bigint;
  v_at bigint;
  v_taken json;
  v_replayed json;
  v_refused integer[];
  v_more integer[];
  v_stored integer[];
  v_answer json;
BEGIN
  SELECT * INTO v_head FROM engine.head FOR UPDATE;
  v_now := engine.now_ms(p_now);
  v_at := greatest(v_now, v_head.committed_at_ms);
  PERFORM engine.check_lease(p_lease, v_now);

  SELECT json_agg(json_build_object('flush', f.flush, 'snapshotId', s.snapshot_id)), array_agg(f.flush)
  INTO v_replayed, v_refused
  FROM unnest(v_flushes) f JOIN engine.staged s ON s.id_hash = decode(f.staged_hash, 'hex') AND s.id = f.staged;
  IF cardinality(v_entries) > 0 THEN
    SELECT json_agg(json_build_object('flush', e.flush, 'key', e.key, 'snapshotId', l.snapshot_id,
      'extentCount', l.extent_count, 'rows', l.row_count, 'sizeBytes', l.size_bytes)), array_agg(e.flush)
    INTO v_taken, v_more
    FROM unnest(v_entries) e JOIN engine.ledger l
      ON l.table_id = e.table_id AND l.key_hash = decode(e.hash, 'hex') AND l.key = e.key
    WHERE l.created_at_ms > v_now - p_ttl;
  END IF;
  v_refused := coalesce(v_refused, '{}') || coalesce(v_more, '{}');
  IF EXISTS (SELECT FROM unnest(v_flushes) f WHERE f.is_pivot AND f.flush = ANY (v_refused)) THEN
    RETURN json_build_object('kind', 'replan', 'taken', v_taken, 'replayed', v_replayed);
  END IF;
  v_stored := ARRAY(SELECT f.flush FROM unnest(v_flushes) f WHERE f.is_stored AND f.flush <> ALL (v_refused));
  IF cardinality(v_stored) = 0 THEN
    RETURN json_build_object('kind', 'done', 'taken', v_taken, 'replayed', v_replayed);
  END IF;
  IF json_array_length(p_versions) > 0 AND NOT engine.add_columns(p_versions, p_columns) THEN
    RETURN json_build_object('kind', 'stale');
  END IF;

  PERFORM engine.insert_extents(
    v_extents, v_filters, v_stored, v_head.last_seq, v_head.snapshot_id + 1, v_at * 1000000);
  IF cardinality(v_entries) > 0 THEN
    -- An entry that is still there is past its time, or the flush would have been sent back.
    INSERT INTO engine.ledger AS l (
      table_id, key_hash, key, snapshot_id, extent_count, row_count, size_bytes, created_at_ms)
    SELECT e.table_id, decode(e.hash, 'hex'), e.key, v_head.snapshot_id + 1, e.extent_count, e.row_count, e.size_bytes, v_at
    FROM unnest(v_entries) e WHERE e.flush = ANY (v_stored)
    ON CONFLICT (table_id, key_hash) DO UPDATE SET snapshot_id = excluded.snapshot_id,
      extent_count = excluded.extent_count, row_count = excluded.row_count, size_bytes = excluded.size_bytes,
      created_at_ms = excluded.created_at_ms;
  END IF;
  INSERT INTO engine.staged (id_hash, id, snapshot_id, committed_at_ms)
  SELECT decode(f.staged_hash, 'hex'), f.staged, v_head.snapshot_id + 1, v_at
  FROM unnest(v_flushes) f WHERE f.staged IS NOT NULL AND f.flush = ANY (v_stored);
  v_answer := json_build_object(
    'kind', 'done', 'snapshotId', v_head.snapshot_id + 1, 'committedAtMs', v_at, 'taken', v_taken, 'replayed', v_replayed,
    'versions', (
      SELECT json_object_agg(t.id, t.schema_version) FROM engine.tables t
      WHERE t.id IN (SELECT f.table_id FROM unnest(v_flushes) f)));
  PERFORM engine.make_snapshot(
    p_commit, v_head.snapshot_id + 1, v_at, v_head.last_seq + cardinality(v_extents), v_answer);
  RETURN v_answer;
END $$;
`;
