import type { Migration } from "../../db/migration.ts";

/** Graphs over tables, by database. `columns` is JSON: a `GraphColumns`. */
const GRAPHS = `
CREATE TABLE graphs (
  database_id bigint NOT NULL,
  folded_name text NOT NULL,
  name text NOT NULL,
  nodes_table text NOT NULL,
  edges_table text NOT NULL,
  columns text NOT NULL,
  description text NOT NULL,
  created_at_ms bigint NOT NULL,
  PRIMARY KEY (database_id, folded_name)
);
`;

export const GRAPH_MIGRATIONS: readonly Migration[] = [{ name: "graphs", sqlite: 20, postgres: 17, sql: GRAPHS }];
