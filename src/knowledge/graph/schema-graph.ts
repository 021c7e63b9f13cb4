import type { DatabaseRecord, TableRecord } from "../../catalog/catalog.ts";
import { columnsOf } from "../../server/schemas.ts";
import { ArrayGraph } from "./array-graph.ts";
import type { GraphEdge, GraphNode } from "./model.ts";
import type { StoredGraph } from "./registry.ts";

/** A database as the graph `schema` shows it. */
export type Described = { database: DatabaseRecord; tables: readonly TableRecord[]; graphs: readonly StoredGraph[] };

/**
 * The catalog as a graph. Ids say what a node is: `database:logs`, `table:logs.lines`, `column:logs.lines.body`,
 * `graph:logs.services`; edges are `has_table`, `has_column`, `has_graph`, `has_nodes` and `has_edges`.
 */
export function schemaGraph(described: readonly Described[]): ArrayGraph {
  const nodes: { database: GraphNode[]; table: GraphNode[]; graph: GraphNode[]; column: GraphNode[] } = {
    database: [],
    table: [],
    graph: [],
    column: [],
  };
  const edges: GraphEdge[] = [];
  const add = (kind: keyof typeof nodes, path: string, props: GraphNode["props"]): string => {
    const id = `${kind}:${path}`;
    nodes[kind].push({ id, labels: [kind], realm: null, props });
    return id;
  };
  const link = (src: string, type: string, dst: string) => edges.push({ src, dst, type, realm: null, props: {} });
  for (const { database, tables, graphs } of described) {
    const root = add("database", database.name, { name: database.name });
    for (const table of tables) {
      const path = `${database.name}.${table.name}`;
      const id = add("table", path, { name: table.name, database: database.name });
      link(root, "has_table", id);
      for (const { name, type } of columnsOf(table)) {
        const shown = { name, type, table: table.name, database: database.name };
        link(id, "has_column", add("column", `${path}.${name}`, shown));
      }
    }
    for (const { name, description, nodesTable, edgesTable } of graphs) {
      const shown = { name, database: database.name, ...(description !== "" && { description }) };
      const id = add("graph", `${database.name}.${name}`, shown);
      link(root, "has_graph", id);
      link(id, "has_nodes", `table:${database.name}.${nodesTable}`);
      link(id, "has_edges", `table:${database.name}.${edgesTable}`);
    }
  }
  const all = [...nodes.database, ...nodes.table, ...nodes.graph, ...nodes.column];
  const known = new Set(all.map(({ id }) => id));
  // The table of a graph may be gone.
  return new ArrayGraph(
    all,
    edges.filter(({ dst }) => known.has(dst)),
  );
}
