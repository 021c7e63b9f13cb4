/**
 * Cluster columns: names of columns as a JSON array, for columns are never renamed or dropped. Nodes of the version
 * before go on with `create_table`, whose tables have none.
 */
export const CLUSTER_COLUMNS = `
ALTER TABLE engine.tables ADD COLUMN cluster_by text NOT NULL DEFAULT '[]';

CREATE FUNCTION engine.create_clustered_table(
  p_database text, p_folded_database text, p_name text, p_folded text, p_retention_days integer, p_cluster_by text,
  p_columns json
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF NOT engine.create_table(p_database, p_folded_database, p_name, p_folded, p_retention_days, p_columns) THEN
    RETURN false;
  END IF;
  UPDATE engine.tables t SET cluster_by = p_cluster_by
  FROM engine.databases d WHERE d.folded_name = p_folded_database AND t.database_id = d.id AND t.folded_name = p_folded;
  RETURN true;
END $$;

CREATE FUNCTION engine.set_cluster_by(p_table bigint, p_cluster_by text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM engine.head FOR UPDATE;
  UPDATE engine.tables SET cluster_by = p_cluster_by WHERE id = p_table;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE engine.head SET schema_generation = schema_generation + 1;
  RETURN true;
END $$;
`;
