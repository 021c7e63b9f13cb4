import { z } from "zod";
import type { GraphPart } from "../../graph/model.ts";
import type { Asking } from "../../graph/queries.ts";
import { QUESTION } from "../../graph/routes/graph.ts";
import { MCP_LIMITS } from "../limits.ts";
import { databaseArgument, defineTool, truncatedField, type ToolCall } from "../tool.ts";

/** Tools about graphs. */

const graph = z.string().max(128).default("memory").describe("schema, memory or a graph of list_graphs.");
const nodes = z.array(z.looseObject({ id: z.string(), labels: z.array(z.string()) }));
const edges = z.array(z.looseObject({ src: z.string(), dst: z.string(), type: z.string() }));
const part = { nodes, edges, truncated: truncatedField };

export const listGraphs = defineTool({
  name: "list_graphs",
  title: "List graphs",
  description: "Graphs of a database: the catalog, the memory, and tables that are read as nodes and edges.",
  role: "read",
  input: z.strictObject({ database: databaseArgument }),
  output: z.object({
    graphs: z.array(z.object({ name: z.string(), kind: z.string(), description: z.string() })),
    truncated: truncatedField,
  }),
  lists: ["graphs"],
  run: async ({ deps: { graphs }, caller, database }, input) => ({
    graphs: await graphs.list(caller, input.database ?? database),
  }),
});

export const graphSearch = defineTool({
  name: "graph_search",
  title: "Search a graph",
  description: "Nodes of a graph whose id, labels or texts have all the words.",
  role: "read",
  input: z.strictObject({
    graph,
    text: QUESTION.text.default(""),
    labels: QUESTION.labels.describe("Only nodes with one of these."),
    limit: z.int().min(1).max(MCP_LIMITS.nodes).default(20),
    database: databaseArgument,
  }),
  output: z.object({ nodes, total: z.int(), truncated: truncatedField }),
  lists: ["nodes"],
  run: async (call, { graph: name, text, labels, limit, database }) => {
    const question = { text, labels, limit, realm: undefined, offset: 0 };
    const found = await call.deps.graphs.search(askingOf(call), placeOf(call, name, database), question);
    return {
      nodes: [...found.nodes],
      total: found.total,
      ...(found.total > found.nodes.length && { truncated: true }),
    };
  },
});

export const graphNeighbors = defineTool({
  name: "graph_neighbors",
  title: "Neighbors in a graph",
  description: "What nodes of a graph are linked to: one edge away.",
  role: "read",
  input: z.strictObject({
    graph,
    node_ids: z.array(QUESTION.id).min(1).max(MCP_LIMITS.nodes),
    direction: QUESTION.direction,
    limit: z.int().min(1).max(MCP_LIMITS.rows).default(50).describe("Most edges."),
    database: databaseArgument,
  }),
  output: z.object(part),
  lists: ["nodes", "edges"],
  run: async (call, { graph: name, node_ids: ids, direction, limit, database }) => {
    const question = { ids, direction, limit, onlyInternal: false };
    return shownPart(await call.deps.graphs.neighbours(askingOf(call), placeOf(call, name, database), question));
  },
});

export const graphSubgraph = defineTool({
  name: "graph_subgraph",
  title: "Around a node",
  description: "A node of a graph, what is around it, and the edges among these; the nearest first.",
  role: "read",
  input: z.strictObject({
    graph,
    node_id: QUESTION.id,
    depth: z.int().min(0).max(5).default(2).describe("Edges away."),
    limit: z.int().min(1).max(MCP_LIMITS.nodes).default(50).describe("Most nodes."),
    database: databaseArgument,
  }),
  output: z.object(part),
  lists: ["nodes", "edges"],
  run: async (call, { graph: name, node_id: id, depth, limit, database }) => {
    const question = { id, depth, limit };
    return shownPart(await call.deps.graphs.subgraph(askingOf(call), placeOf(call, name, database), question));
  },
});

function askingOf({ caller, address, requestId, signal }: ToolCall): Asking {
  return { caller, address, requestId, signal };
}

function placeOf(call: ToolCall, name: string, database: string | undefined) {
  return { database: database ?? call.database, graph: name };
}

function shownPart({ nodes: found, edges: among, truncated }: GraphPart) {
  return { nodes: [...found], edges: [...among], ...(truncated && { truncated }) };
}
