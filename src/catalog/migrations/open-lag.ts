/**
 * How old rows of a table may become before they are published for other programs; NULL leaves it to
 * `ENGINE_ICEBERG_MAX_LAG_SECS`. Nodes of the version before go on, and know the server's bound alone.
 */
export const SQLITE_OPEN_LAG = "ALTER TABLE tables ADD COLUMN open_lag_secs INTEGER;\n";

export const POSTGRES_OPEN_LAG = `
ALTER TABLE engine.tables ADD COLUMN open_lag_secs integer;

CREATE FUNCTION engine.set_open_lag(p_table bigint, p_open_lag_secs integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM engine.head FOR UPDATE;
  UPDATE engine.tables SET open_lag_secs = p_open_lag_secs WHERE id = p_table;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE engine.head SET schema_generation = schema_generation + 1;
  RETURN true;
END $$;

-- As before, with the bound.
CREATE OR REPLACE FUNCTION engine.create_table_with(
  p_database text, p_folded_database text, p_name text, p_folded text, p_settings json, p_columns json
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF NOT engine.create_table(
    p_database, p_folded_database, p_name, p_folded, (p_settings->>'retention_days')::integer, p_columns
  ) THEN
    RETURN false;
  END IF;
  UPDATE engine.tables t
  SET cluster_by = p_settings->>'cluster_by', infer_types = (p_settings->>'infer_types')::boolean,
    open_lag_secs = (p_settings->>'open_lag_secs')::integer
  FROM engine.databases d WHERE d.folded_name = p_folded_database AND t.database_id = d.id AND t.folded_name = p_folded;
  UPDATE engine.columns k SET origin = c.origin
  FROM json_populate_recordset(NULL::engine.new_column, p_columns) c, engine.databases d, engine.tables t
  WHERE d.folded_name = p_folded_database AND t.database_id = d.id AND t.folded_name = p_folded
    AND k.table_id = t.id AND k.id = c.id AND c.origin IS NOT NULL;
  RETURN true;
END $$;
`;
