/**
 * Extents whose Parquet file has nanosecond columns beside its microsecond ones (`format/parquet-times.ts`):
 * `extents.ns_column_ids` is a JSON array of the ids of those columns, NULL for an extent without any. With it a query
 * knows what to read of a file before it opens it.
 *
 * Nodes of the version before go on: what they write has none, and they refuse to read Parquet of version 2 anyway.
 */
export const SQLITE_NANOSECOND_COLUMNS = `
ALTER TABLE extents ADD COLUMN ns_column_ids TEXT;
`;

export const POSTGRES_NANOSECOND_COLUMNS = `
ALTER TABLE engine.extents ADD COLUMN ns_column_ids text;
ALTER TYPE engine.new_extent ADD ATTRIBUTE ns_column_ids text;

-- As before, with the nanosecond columns.
CREATE OR REPLACE FUNCTION engine.insert_extents(
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
    min_at_ns, max_at_ns, newest_ns, begin_snapshot, column_ids, ns_column_ids)
  SELECT p_seq + e.ord, e.id, e.table_id, e.schema_version, e.object_key, e.format, e.format_version, e.row_count,
    e.size_bytes, e.checksum, e.min_at_ns, e.max_at_ns, least(e.max_at_ns, p_newest_ns), p_snapshot, e.column_ids,
    e.ns_column_ids
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
`;
