/**
 * A `vector` column has no NULLs, so it only comes to a table without rows, and rows that were read before it came are
 * read again. Nodes of the version before go on without asking: they may still bring such rows, which then read NULL.
 */
export const VECTOR_COLUMNS = `
-- 'rows', and nothing is changed, when one of the tables has some; 'stale' as add_columns says; else 'added'.
CREATE FUNCTION engine.add_columns_to_empty(p_versions json, p_columns json) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM engine.head FOR UPDATE;
  IF EXISTS (
    SELECT FROM json_populate_recordset(NULL::engine.new_version, p_versions) v
    JOIN engine.table_totals s ON s.table_id = v.table_id WHERE s.row_count > 0
  ) THEN RETURN 'rows'; END IF;
  RETURN CASE WHEN engine.add_columns(p_versions, p_columns) THEN 'added' ELSE 'stale' END;
END $$;

-- Answers {kind, flushes} with those that were sealed before a vector column came; NULL when none was. To be asked under
-- the lock of the head. A table that has not changed since, which is nearly every one, costs one look at its row.
CREATE FUNCTION engine.flushes_before_vectors(p_flushes json) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  v_flushes integer[] := ARRAY(
    SELECT f.flush FROM json_to_recordset(p_flushes) AS f (flush integer, table_id bigint, sealed_under integer)
    JOIN engine.tables t ON t.id = f.table_id AND t.schema_version > f.sealed_under
    WHERE EXISTS (
      SELECT FROM engine.columns c
      WHERE c.table_id = f.table_id AND c.since_version > f.sealed_under AND c.type LIKE 'vector(%'));
BEGIN
  IF cardinality(v_flushes) = 0 THEN RETURN NULL; END IF;
  RETURN json_build_object('kind', 'before_vectors', 'flushes', v_flushes);
END $$;
`;
