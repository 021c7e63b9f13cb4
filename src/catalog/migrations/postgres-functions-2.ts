/** The rest of the catalog's functions: see `postgres-functions-1.ts`. */
export const FUNCTIONS_2 = `
-- The extents that died, with a snapshot made of it; none, and no snapshot, when nothing did.
CREATE FUNCTION engine.end_extents(p_now bigint, p_commit uuid, p_lease json, p_table bigint, p_ids json)
RETURNS SETOF engine.extents LANGUAGE plpgsql AS $$
DECLARE
  v_ids text[] := engine.texts(p_ids);
  v_head engine.head;
  v_now bigint;
  v_at bigint;
BEGIN
  SELECT * INTO v_head FROM engine.head FOR UPDATE;
  v_now := engine.now_ms(p_now);
  v_at := greatest(v_now, v_head.committed_at_ms);
  PERFORM engine.check_lease(p_lease, v_now);
  RETURN QUERY UPDATE engine.extents e SET end_snapshot = v_head.snapshot_id + 1, deleted_at_ms = v_at
  WHERE e.id = ANY (v_ids) AND e.table_id = p_table AND e.end_snapshot IS NULL RETURNING e.*;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE engine.table_totals t
  SET row_count = t.row_count - s.rows, extent_count = t.extent_count - s.extents, size_bytes = t.size_bytes - s.bytes
  FROM (
    SELECT sum(e.row_count) AS rows, count(*) AS extents, sum(e.size_bytes) AS bytes
    FROM engine.extents e WHERE e.id = ANY (v_ids) AND e.table_id = p_table AND e.end_snapshot = v_head.snapshot_id + 1
  ) s WHERE t.table_id = p_table;
  PERFORM engine.make_snapshot(p_commit, v_head.snapshot_id + 1, v_at, v_head.last_seq,
    json_build_object('snapshotId', v_head.snapshot_id + 1, 'committedAtMs', v_at));
END $$;

-- Answers {snapshotId, committedAtMs}; NULL, and nothing happens, when one of the inputs is not alive.
CREATE FUNCTION engine.merge_extents(
  p_now bigint, p_commit uuid, p_lease json, p_table bigint, p_inputs json, p_extents json, p_filters json
) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  v_inputs text[] := engine.texts(p_inputs);
  v_extents engine.new_extent[] := ARRAY(SELECT x FROM json_populate_recordset(NULL::engine.new_extent, p_extents) x);
  v_filters engine.new_filter[] := ARRAY(SELECT x FROM json_populate_recordset(NULL::engine.new_filter, p_filters) x);
  v_head engine.head;
  v_now bigint;
  v_at bigint;
  v_live record;
  v_rows numeric;
  v_answer json;
BEGIN
  SELECT * INTO v_head FROM engine.head FOR UPDATE;
  v_now := engine.now_ms(p_now);
  v_at := greatest(v_now, v_head.committed_at_ms);
  PERFORM engine.check_lease(p_lease, v_now);
  SELECT count(*) AS extents, sum(row_count) AS rows, sum(size_bytes) AS bytes, max(newest_ns) AS newest INTO v_live
  FROM engine.extents WHERE id = ANY (v_inputs) AND table_id = p_table AND end_snapshot IS NULL;
  IF v_live.extents < cardinality(v_inputs) THEN RETURN NULL; END IF;
  SELECT coalesce(sum(e.row_count), 0) INTO v_rows FROM unnest(v_extents) e;
  IF v_live.rows <> v_rows THEN
    RAISE EXCEPTION '%', json_build_object('inputRows', v_live.rows, 'outputRows', v_rows) USING ERRCODE = 'EN004';
  END IF;
  UPDATE engine.extents SET end_snapshot = v_head.snapshot_id + 1, deleted_at_ms = v_at WHERE id = ANY (v_inputs);
  UPDATE engine.table_totals
  SET row_count = row_count - v_live.rows, extent_count = extent_count - v_live.extents,
    size_bytes = size_bytes - v_live.bytes
  WHERE table_id = p_table;
  PERFORM engine.insert_extents(
    v_extents, v_filters, ARRAY[0], v_head.last_seq, v_head.snapshot_id + 1, v_live.newest);
  v_answer := json_build_object('snapshotId', v_head.snapshot_id + 1, 'committedAtMs', v_at);
  PERFORM engine.make_snapshot(
    p_commit, v_head.snapshot_id + 1, v_at, v_head.last_seq + cardinality(v_extents), v_answer);
  RETURN v_answer;
END $$;

-- Forgets extents (or, with p_only_look, none) unless one of them can still be read; the ids of those that it forgot.
CREATE FUNCTION engine.forget_extents(p_now bigint, p_lease json, p_ids json, p_only_look boolean)
RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  v_ids text[] := engine.texts(p_ids);
  v_oldest bigint;
  v_problem json;
BEGIN
  PERFORM 1 FROM engine.head FOR UPDATE;
  PERFORM engine.check_lease(p_lease, engine.now_ms(p_now));
  SELECT oldest_snapshot INTO v_oldest FROM engine.horizon;
  SELECT json_build_object('id', e.id, 'end', e.end_snapshot, 'oldest', greatest(v_oldest, t.oldest_snapshot))
  INTO v_problem
  FROM engine.extents e JOIN engine.tables t ON t.id = e.table_id
  WHERE e.id = ANY (v_ids)
    AND (e.end_snapshot IS NULL OR e.end_snapshot > greatest(v_oldest, t.oldest_snapshot))
  ORDER BY array_position(v_ids, e.id) LIMIT 1;
  IF v_problem IS NOT NULL THEN RAISE EXCEPTION '%', v_problem USING ERRCODE = 'EN003'; END IF;
  IF p_only_look THEN RETURN; END IF;
  RETURN QUERY WITH gone AS (DELETE FROM engine.extents WHERE id = ANY (v_ids) RETURNING seq, id, table_id),
    stats AS (DELETE FROM engine.extent_stats WHERE seq IN (SELECT seq FROM gone)),
    filters AS (DELETE FROM engine.extent_filters WHERE seq IN (SELECT seq FROM gone)),
    counted AS (
      UPDATE engine.table_totals t SET forgotten_extents = t.forgotten_extents + g.extents
      FROM (SELECT table_id, count(*) AS extents FROM gone GROUP BY table_id) g WHERE t.table_id = g.table_id)
  SELECT gone.id FROM gone;
END $$;

-- Those of the ids that are condemned now: all that no extent has.
CREATE FUNCTION engine.condemn_extents(p_ids json) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  v_ids text[] := engine.texts(p_ids);
BEGIN
  -- A commit that is under way may be bringing one of them in.
  PERFORM 1 FROM engine.head FOR UPDATE;
  INSERT INTO engine.condemned_extents (id)
  SELECT i.id FROM unnest(v_ids) AS i (id) WHERE NOT EXISTS (SELECT FROM engine.extents e WHERE e.id = i.id)
  ON CONFLICT DO NOTHING;
  RETURN QUERY SELECT c.id FROM engine.condemned_extents c WHERE c.id = ANY (v_ids);
END $$;

-- Up to where snapshots may become unreadable: not past the head, and none that a live reader holds.
CREATE FUNCTION engine.expirable(p_now bigint, p_before bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM engine.horizon FOR UPDATE;
  DELETE FROM engine.snapshot_holds WHERE expires_at_ms <= engine.now_ms(p_now);
  RETURN least(
    p_before, (SELECT snapshot_id FROM engine.head), (SELECT min(oldest_snapshot) FROM engine.snapshot_holds));
END $$;

CREATE FUNCTION engine.expire_snapshots(p_now bigint, p_lease json, p_before bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_bound bigint := engine.expirable(p_now, p_before);
BEGIN
  PERFORM engine.check_lease(p_lease, engine.now_ms(p_now));
  UPDATE engine.horizon SET oldest_snapshot = greatest(oldest_snapshot, v_bound);
END $$;

CREATE FUNCTION engine.expire_table(p_now bigint, p_table bigint, p_before bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_bound bigint := engine.expirable(p_now, p_before);
BEGIN
  UPDATE engine.tables SET oldest_snapshot = greatest(oldest_snapshot, v_bound) WHERE id = p_table;
END $$;

-- False, and nothing is said, when the snapshot cannot be read any more.
CREATE FUNCTION engine.hold_snapshots(p_now bigint, p_node text, p_oldest bigint, p_ttl bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_oldest bigint;
BEGIN
  SELECT oldest_snapshot INTO v_oldest FROM engine.horizon FOR SHARE;
  IF p_oldest < v_oldest THEN RETURN false; END IF;
  INSERT INTO engine.snapshot_holds (node, oldest_snapshot, expires_at_ms)
  VALUES (p_node, p_oldest, engine.now_ms(p_now) + p_ttl)
  ON CONFLICT (node) DO UPDATE
  SET oldest_snapshot = excluded.oldest_snapshot, expires_at_ms = excluded.expires_at_ms;
  RETURN true;
END $$;

-- The fence, or NULL while somebody else holds the lease.
CREATE FUNCTION engine.acquire_lease(p_now bigint, p_name text, p_holder text, p_ttl bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_lease engine.leases;
  v_now bigint;
BEGIN
  INSERT INTO engine.leases (name, holder, fence, expires_at_ms) VALUES (p_name, p_holder, 0, 0)
  ON CONFLICT DO NOTHING;
  SELECT * INTO v_lease FROM engine.leases WHERE name = p_name FOR UPDATE;
  v_now := engine.now_ms(p_now);
  IF v_lease.holder <> p_holder AND v_lease.expires_at_ms > v_now THEN RETURN NULL; END IF;
  IF v_lease.expires_at_ms <= v_now THEN v_lease.fence := v_lease.fence + 1; END IF;
  UPDATE engine.leases SET holder = p_holder, fence = v_lease.fence, expires_at_ms = v_now + p_ttl WHERE name = p_name;
  RETURN v_lease.fence;
END $$;
`;
