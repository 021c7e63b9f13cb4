import type { DatabaseRecord } from "../../catalog/catalog.ts";
import { foldName } from "../../core/names.ts";
import { NOW, type RecordRow, type RecordStore } from "../../db/records.ts";
import { GRAPH_LIMITS } from "./limits.ts";

/** The columns of a graph's tables. Those of nodes: `id`, `labels`; of edges: `src`, `dst`, `type`; of both: `realm`. */
export type GraphColumns = {
  id: string;
  labels: string;
  src: string;
  dst: string;
  type: string;
  realm?: string;
};

export const DEFAULT_COLUMNS: GraphColumns = { id: "id", labels: "labels", src: "src", dst: "dst", type: "type" };

/** A graph over two tables of its database. */
export type StoredGraph = {
  name: string;
  nodesTable: string;
  edgesTable: string;
  columns: GraphColumns;
  description: string;
};

/** Names of graphs that are always there. */
export const BUILT_IN = {
  schema: "Databases, their tables, columns and graphs, as the catalog has them.",
  memory: "What is remembered: memories, entities and what links them.",
} as const;

export type BuiltIn = keyof typeof BUILT_IN;

export function isBuiltIn(name: string): name is BuiltIn {
  return Object.hasOwn(BUILT_IN, name);
}

type Database = Pick<DatabaseRecord, "id">;

/** The graphs over tables, as records of the catalog. Nobody's rights are asked. */
export class GraphRegistry {
  readonly #records: Pick<RecordStore, "rows" | "write">;

  constructor(records: Pick<RecordStore, "rows" | "write">) {
    this.#records = records;
  }

  /** In the order of their names. */
  async list({ id }: Database): Promise<StoredGraph[]> {
    const sql = `SELECT * FROM graphs WHERE database_id = ? ORDER BY folded_name LIMIT ${GRAPH_LIMITS.graphs}`;
    return (await this.#records.rows(sql, [id])).map(graphOfRow);
  }

  async find({ id }: Database, name: string): Promise<StoredGraph | undefined> {
    const sql = "SELECT * FROM graphs WHERE database_id = ? AND folded_name = ?";
    const [row] = await this.#records.rows(sql, [id, foldName(name)]);
    return row === undefined ? undefined : graphOfRow(row);
  }

  /** Resolves to whether there was none of that name, and it was made. */
  async add({ id }: Database, graph: StoredGraph): Promise<boolean> {
    const sql =
      "INSERT INTO graphs (database_id, folded_name, name, nodes_table, edges_table, columns, description, created_at_ms) " +
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING name";
    const { name, nodesTable, edgesTable, columns, description } = graph;
    const texts = [foldName(name), name, nodesTable, edgesTable, JSON.stringify(columns), description];
    return (await this.#records.write({ sql, values: [id, ...texts, NOW] })).length > 0;
  }

  /** Resolves to whether there was one. */
  async remove({ id }: Database, name: string): Promise<boolean> {
    const sql = "DELETE FROM graphs WHERE database_id = ? AND folded_name = ? RETURNING name";
    return (await this.#records.write({ sql, values: [id, foldName(name)] })).length > 0;
  }
}

function graphOfRow(row: RecordRow): StoredGraph {
  return {
    name: String(row["name"]),
    nodesTable: String(row["nodes_table"]),
    edgesTable: String(row["edges_table"]),
    columns: JSON.parse(String(row["columns"])) as GraphColumns,
    description: String(row["description"]),
  };
}
