import { z } from "zod";
import type { ErrorCode } from "../../../core/errors.ts";
import { defineRoute, jsonResponse, type Call } from "../../../server/route.ts";
import { databaseHeader } from "../../../server/schemas.ts";
import { GRAPH_LIMITS } from "../limits.ts";
import { DIRECTIONS } from "../model.ts";
import type { Asking } from "../queries.ts";
import type { GraphPlace, GraphService } from "../service.ts";

/** What the routes of graphs work with. */
export type GraphDeps = { graphs: GraphService };

const TAG = "Graphs";

const ABOUT =
  "Of the graph `schema`, `memory`, or one over two tables of the database, which `engine create-graph` makes. It shows " +
  "what the caller may see; a graph over tables is read by queries, within the budgets of queries.";

/** Text that a query can compare. */
function text(maxChars: number) {
  return z
    .string()
    .max(maxChars)
    .refine((value) => value.isWellFormed() && !value.includes("\0"), "accepted is Unicode text without NUL");
}

/** The fields of questions, as routes and tools take them. */
export const QUESTION = {
  id: text(GRAPH_LIMITS.idChars).min(1),
  realm: text(GRAPH_LIMITS.realmChars),
  depth: z.coerce.number().int().min(0).max(GRAPH_LIMITS.depth).default(GRAPH_LIMITS.defaultDepth),
  direction: z.enum(DIRECTIONS).default("both"),
  neighbours: z.int().min(1).max(GRAPH_LIMITS.edges).default(GRAPH_LIMITS.neighbours),
  text: text(GRAPH_LIMITS.textChars),
  labels: z.array(text(GRAPH_LIMITS.idChars)).max(GRAPH_LIMITS.labels).default([]),
  found: z.int().min(1).max(GRAPH_LIMITS.foundMost).default(GRAPH_LIMITS.found),
  offset: z.int().min(0).max(GRAPH_LIMITS.offset).default(0),
} as const;

const params = z.object({ graph: z.string().describe("`schema`, `memory`, or the name of a graph over tables.") });
const nodeParams = params.extend({ id: QUESTION.id });
const headers = z.object({ "x-database": databaseHeader });
const ofRealm = z.object({ realm: QUESTION.realm.optional().describe("Only of this realm.") });

const props = z.record(z.string(), z.unknown());
const graphNode = z.object({
  id: z.string(),
  labels: z.array(z.string()),
  realm: z.string().nullable(),
  props: props.describe("What else is known of it, without what is null."),
});
const graphEdge = z.object({
  src: z.string(),
  dst: z.string(),
  type: z.string(),
  realm: z.string().nullable(),
  props,
});
const graphPart = z.object({
  nodes: z.array(graphNode).describe("Long texts are cut off; `…/nodes/{id}` has them whole."),
  edges: z.array(graphEdge).describe("Both ends are among the nodes."),
  truncated: z.boolean().describe("There is more than was asked for, or than is shown at a time."),
});
const counted = z.array(z.object({ name: z.string(), count: z.int() }));

const answer = <S extends z.ZodType>(schema: S, description: string) =>
  [{ status: 200, description, type: "application/json", schema }] as const;

/** Of the queries that a graph over tables is read by, besides those of every route. */
const QUERY_ERRORS = [
  "budget_exceeded",
  "execution_error",
  "insufficient_storage",
  "invalid_query",
  "query_failed",
  "snapshot_expired",
  "too_many_requests",
  "unavailable",
] as const satisfies readonly ErrorCode[];
const errors = ["not_found", "database_not_found", "table_not_found", "invalid_parameter", ...QUERY_ERRORS] as const;
const common = { role: "read", tag: TAG, params, headers, errors } as const;

function askingOf({
  caller,
  clientAddress: address,
  requestId,
  request,
}: Pick<Call, "caller" | "clientAddress" | "requestId" | "request">): Asking {
  return { caller, address, requestId, signal: request.signal };
}

function placeOf({
  params: { graph },
  headers: { "x-database": database },
}: {
  params: { graph: string };
  headers: { "x-database": string };
}): GraphPlace {
  return { database, graph };
}

const graphsRoute = defineRoute({
  method: "GET",
  path: "/v1/graph",
  role: "read",
  tag: TAG,
  summary: "Graphs of a database",
  headers,
  responses: answer(
    z.object({
      graphs: z.array(
        z.object({ name: z.string(), kind: z.enum(["schema", "memory", "tables"]), description: z.string() }),
      ),
    }),
    "Those that are always there first.",
  ),
  errors: [],
  handler:
    ({ graphs }: GraphDeps) =>
    async ({ caller, headers: { "x-database": database } }) =>
      jsonResponse(200, { graphs: await graphs.list(caller, database) }),
});

const graphOverviewRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/graph/{graph}/overview",
  summary: "The nodes with the most edges, and the edges among them",
  description: ABOUT,
  query: ofRealm.extend({
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .max(GRAPH_LIMITS.nodes)
      .default(GRAPH_LIMITS.overviewNodes)
      .describe("Most nodes."),
  }),
  compress: true,
  responses: answer(graphPart, "A part of the graph."),
  handler:
    ({ graphs }: GraphDeps) =>
    async (call) => {
      const {
        query: { realm, limit },
      } = call;
      return jsonResponse(200, await graphs.overview(askingOf(call), placeOf(call), { realm, limit }));
    },
});

const graphStatsRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/graph/{graph}/stats",
  summary: "How many nodes and edges a graph has",
  description: ABOUT,
  query: ofRealm,
  responses: answer(z.object({ nodes: z.int(), edges: z.int() }), "Counts, with edges whose ends are no nodes."),
  handler:
    ({ graphs }: GraphDeps) =>
    async (call) => {
      const {
        query: { realm },
      } = call;
      return jsonResponse(200, await graphs.counts(askingOf(call), placeOf(call), { realm }));
    },
});

const graphSchemaRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/graph/{graph}/schema",
  summary: "Labels of nodes and types of edges",
  description: ABOUT,
  responses: answer(
    z.object({ labels: counted, edge_types: counted }),
    `The most frequent first, at most ${GRAPH_LIMITS.vocabulary} of each.`,
  ),
  handler:
    ({ graphs }: GraphDeps) =>
    async (call) => {
      const { labels, edgeTypes } = await graphs.vocabulary(askingOf(call), placeOf(call));
      return jsonResponse(200, { labels, edge_types: edgeTypes });
    },
});

const graphNodeRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/graph/{graph}/nodes/{id}",
  summary: "A node of a graph",
  description: ABOUT,
  params: nodeParams,
  responses: answer(graphNode, "It, with all that is known of it."),
  handler:
    ({ graphs }: GraphDeps) =>
    async (call) => {
      const {
        params: { id },
      } = call;
      return jsonResponse(200, await graphs.node(askingOf(call), placeOf(call), id));
    },
});

const graphSubgraphRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/graph/{graph}/nodes/{id}/subgraph",
  summary: "What is around a node",
  description: `The node, all that is at most \`depth\` edges away, and the edges among these: at most ${GRAPH_LIMITS.nodes} nodes and ${GRAPH_LIMITS.edges} edges. ${ABOUT}`,
  params: nodeParams,
  query: z.object({ depth: QUESTION.depth.describe("Edges from the node.") }),
  compress: true,
  responses: answer(graphPart, "A part of the graph; the node itself is first."),
  handler:
    ({ graphs }: GraphDeps) =>
    async (call) => {
      const {
        params: { id },
        query: { depth },
      } = call;
      const question = { id, depth, limit: GRAPH_LIMITS.nodes };
      return jsonResponse(200, await graphs.subgraph(askingOf(call), placeOf(call), question));
    },
});

const graphNeighborsRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/graph/{graph}/neighbors",
  summary: "Nodes one edge away",
  description: `Ids that are no node's are passed over. ${ABOUT}`,
  json: z.strictObject({
    node_ids: z.array(QUESTION.id).min(1).max(GRAPH_LIMITS.askedIds),
    direction: QUESTION.direction.describe("Along edges, from `src` to `dst`, against them, or either."),
    only_internal: z.boolean().default(false).describe("Only edges among the nodes that are named."),
    limit: QUESTION.neighbours.describe("Most edges."),
  }),
  compress: true,
  responses: answer(graphPart, "The nodes that are named, those one edge away, and these edges."),
  errors: [...errors, "bad_request_body"],
  handler:
    ({ graphs }: GraphDeps) =>
    async (call) => {
      const { json } = call;
      const { node_ids: ids, direction, only_internal: onlyInternal, limit } = json;
      const question = { ids, direction, onlyInternal, limit };
      return jsonResponse(200, await graphs.neighbours(askingOf(call), placeOf(call), question));
    },
});

const graphSearchRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/graph/{graph}/search",
  summary: "Find nodes by words and labels",
  description: `Every word must occur in the id, a label or a text of the node, in whatever letter case. ${ABOUT}`,
  json: z.strictObject({
    text: QUESTION.text.default("").describe("Words; all nodes without any."),
    labels: QUESTION.labels.describe("Only nodes with one of these."),
    realm: QUESTION.realm.nullish().describe("Only of this realm."),
    limit: QUESTION.found.describe("Most nodes."),
    offset: QUESTION.offset.describe("How many to pass over."),
  }),
  compress: true,
  responses: answer(
    z.object({ nodes: z.array(graphNode), total: z.int().describe("Of all that fit.") }),
    "Nodes with the shortest texts first, so names come before what only mentions them.",
  ),
  errors: [...errors, "bad_request_body"],
  handler:
    ({ graphs }: GraphDeps) =>
    async (call) => {
      const { json } = call;
      const question = { ...json, realm: json.realm ?? undefined };
      return jsonResponse(200, await graphs.search(askingOf(call), placeOf(call), question));
    },
});

export const GRAPH_ROUTES = [
  graphsRoute,
  graphOverviewRoute,
  graphStatsRoute,
  graphSchemaRoute,
  graphNodeRoute,
  graphSubgraphRoute,
  graphNeighborsRoute,
  graphSearchRoute,
];
