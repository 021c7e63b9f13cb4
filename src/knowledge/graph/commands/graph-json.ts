import type { StoredGraph } from "../registry.ts";

/** A graph as commands print it. */
export function graphJson({ name, nodesTable, edgesTable, columns, description }: StoredGraph) {
  const { id, labels, src, dst, type, realm } = columns;
  return { name, nodes: nodesTable, edges: edgesTable, columns: { id, labels, src, dst, type, realm }, description };
}
