import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import { defineRoute, jsonResponse } from "../../../server/route.ts";
import { FIELDS } from "../fields.ts";
import type { EdgeRecord, NodeRecord } from "../model.ts";
import { nodeKey } from "../save.ts";
import { memoryNode, wireNode } from "../wire.ts";
import { inDatabase, TAG, timeParameter, type MemoryDeps } from "./deps.ts";

/** One node of a memory. */

const params = z.object({ id: FIELDS.id });
const node = { status: 200, type: "application/json", schema: memoryNode } as const;

export const getNodeRoute = defineRoute({
  method: "GET",
  path: "/v1/agent/memory/nodes/{id}",
  role: "read",
  tag: TAG,
  summary: "A memory or an entity",
  params,
  headers: inDatabase,
  query: z.object({
    history: z.enum(["true", "false"]).default("false").describe("`true`: all its versions besides, the newest first."),
    as_of: timeParameter("What held at that time."),
    known_at: timeParameter("What was recorded by that time."),
  }),
  responses: [{ ...node, schema: memoryNode.extend({ history: z.array(memoryNode).optional() }), description: "It." }],
  errors: ["not_found", "database_not_found", "invalid_parameter"],
  handler:
    ({ memory }: MemoryDeps) =>
    async ({ caller, headers, params: { id }, query }) => {
      const scope = await memory.scope(caller, headers["x-database"]);
      const moment = { asOfUs: query.as_of, knownAtUs: query.known_at };
      const found = wireOf(await memory.get(scope, nodeKey(id), moment));
      if (query.history === "false") return jsonResponse(200, found);
      const versions = await memory.history(scope, nodeKey(id));
      const history = versions.flatMap((version) =>
        version.kind === "node" && !version.erased ? [wireNode(version.record)] : [],
      );
      return jsonResponse(200, { ...found, history });
    },
});

export const invalidateNodeRoute = defineRoute({
  method: "POST",
  path: "/v1/agent/memory/nodes/{id}/invalidate",
  role: "write",
  tag: TAG,
  summary: "Say that a memory does not hold any more",
  description: "What it said stays in its history. One that is invalidated already stays as it is.",
  params,
  headers: inDatabase,
  json: z
    .strictObject({
      reason: FIELDS.reason.nullish(),
      valid_to: FIELDS.time.nullish().describe("Since when it does not hold; now unless given. RFC 3339."),
    })
    .optional(),
  responses: [{ ...node, description: "It, as it is now." }],
  errors: ["not_found", "database_not_found", "bad_request_body"],
  handler:
    ({ memory }: MemoryDeps) =>
    async ({ caller, headers, params: { id }, json }) => {
      const scope = await memory.scope(caller, headers["x-database"]);
      const said = { reason: json?.reason ?? undefined, validToUs: json?.valid_to ?? undefined };
      return jsonResponse(200, wireOf(await memory.invalidate(scope, nodeKey(id), said)));
    },
});

export const restoreNodeRoute = defineRoute({
  method: "POST",
  path: "/v1/agent/memory/nodes/{id}/restore",
  role: "write",
  tag: TAG,
  summary: "Take an invalidation back",
  params,
  headers: inDatabase,
  responses: [{ ...node, description: "It, as it is now." }],
  errors: ["not_found", "database_not_found"],
  handler:
    ({ memory }: MemoryDeps) =>
    async ({ caller, headers, params: { id } }) => {
      const scope = await memory.scope(caller, headers["x-database"]);
      return jsonResponse(200, wireOf(await memory.restore(scope, nodeKey(id))));
    },
});

export const eraseNodeRoute = defineRoute({
  method: "DELETE",
  path: "/v1/agent/memory/nodes/{id}",
  role: "write",
  tag: TAG,
  summary: "Erase a memory or an entity",
  description:
    "All its versions, and those of its edges. Tombstones stay, which have replicas erase them too. Audited.",
  params,
  headers: inDatabase,
  responses: [
    {
      status: 200,
      description: "Erased.",
      type: "application/json",
      schema: z.object({ erased: z.int().describe("Records: the node and its edges.") }),
    },
  ],
  errors: ["not_found", "database_not_found"],
  handler:
    ({ memory }: MemoryDeps) =>
    async ({ caller, headers, params: { id }, clientAddress: address, requestId }) => {
      const scope = await memory.scope(caller, headers["x-database"]);
      const erased = await memory.erase(scope, nodeKey(id), { caller, address, requestId });
      return jsonResponse(200, { erased });
    },
});

function wireOf(record: NodeRecord | EdgeRecord) {
  if ("src" in record) throw new EngineError("internal", `the node ${record.id} is stored as an edge`);
  return wireNode(record);
}
