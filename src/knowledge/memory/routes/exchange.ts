import { z } from "zod";
import { defineRoute, jsonResponse } from "../../../server/route.ts";
import { MEMORY_LIMITS } from "../limits.ts";
import type { RecordKind } from "../rows.ts";
import type { MemoryScope, MemoryService } from "../service.ts";
import { usToText } from "../times.ts";
import { memoryEdge, memoryNode, memoryTombstone, wireVersion } from "../wire.ts";
import { inDatabase, TAG, timeParameter, type MemoryDeps } from "./deps.ts";

/** Memories between replicas, and between the service and files. */

const records = {
  memory_nodes: z.array(z.union([memoryNode, memoryTombstone])),
  memory_edges: z.array(z.union([memoryEdge, memoryTombstone])),
};

const counts = z.object({
  created: z.int().describe("The id was not there, or erased."),
  updated: z.int().describe("It became the current version."),
  unchanged: z.int().describe("It was there already."),
  superseded: z.int().describe("A later version is current; it is a former one."),
  erased: z.int(),
});

export const importRoute = defineRoute({
  method: "POST",
  path: "/v1/agent/memory/import",
  role: "write",
  tag: TAG,
  summary: "Import memories",
  description:
    "All records are applied in one commit, or none: an item that is not accepted is named by its index. Of the versions of " +
    "an id the one with the latest `origin_updated_at` is current afterwards, whatever the order in which they come. " +
    "Items without `id` and `origin_updated_at` are saved as if they were said now.",
  headers: inDatabase,
  json: z
    .strictObject({
      memory_nodes: z.array(z.unknown()).default([]).describe("As exported; only `content` must be there."),
      memory_edges: z.array(z.unknown()).default([]).describe("As exported; only `src` and `dst` must be there."),
    })
    .describe(`At most ${MEMORY_LIMITS.importItems} items.`),
  jsonLimitBytes: MEMORY_LIMITS.importBytes,
  responses: [
    {
      status: 200,
      description: "What came of the items.",
      type: "application/json",
      schema: z.object({ nodes: counts, edges: counts }),
    },
  ],
  errors: ["bad_request_body", "body_too_large", "database_not_found", "too_many_requests"],
  handler:
    ({ memory }: MemoryDeps) =>
    async ({ caller, headers, json }) =>
      jsonResponse(200, await memory.import(await memory.scope(caller, headers["x-database"]), json)),
});

export const exportRoute = defineRoute({
  method: "GET",
  path: "/v1/agent/memory/export",
  role: "read",
  tag: TAG,
  summary: "Export memories",
  description: "All current versions that the caller may see, and tombstones, by id, as the import takes them.",
  headers: inDatabase,
  responses: [{ status: 200, description: "Streamed.", type: "application/json", schema: z.object(records) }],
  errors: ["database_not_found"],
  handler:
    ({ memory }: MemoryDeps) =>
    async ({ caller, headers }) => {
      const scope = await memory.scope(caller, headers["x-database"]);
      return {
        status: 200,
        headers: { "Content-Type": "application/json; charset=utf-8" },
        body: exported(memory, scope),
      };
    },
});

export const changesRoute = defineRoute({
  method: "GET",
  path: "/v1/agent/memory/changes",
  role: "read",
  tag: TAG,
  summary: "Memories that changed",
  description:
    "Current versions, and tombstones, whose `updated_at` is after `since`, in the order of their commits. Ask again with " +
    "`until` for `since`: nothing is missed, and no version comes twice. With `has_more` there is more already.",
  headers: inDatabase,
  query: z.object({
    since: timeParameter("RFC 3339 time; everything unless given."),
    realm: z.string().optional().describe("Only of this realm; all that the caller may see unless given."),
  }),
  responses: [
    {
      status: 200,
      description: `About ${MEMORY_LIMITS.changesItems} of them; a commit is never split.`,
      type: "application/json",
      schema: z.object({ ...records, until: z.string(), has_more: z.boolean() }),
    },
  ],
  errors: ["database_not_found", "invalid_parameter"],
  handler:
    ({ memory }: MemoryDeps) =>
    async ({ caller, headers, query: { since, realm } }) => {
      const scope = await memory.scope(caller, headers["x-database"]);
      const page = await memory.changes(scope, {
        ...(since !== undefined && { sinceUs: since }),
        ...(realm !== undefined && { realm }),
      });
      const of = (kind: RecordKind) => page.versions.filter((version) => version.kind === kind).map(wireVersion);
      return jsonResponse(200, {
        memory_nodes: of("node"),
        memory_edges: of("edge"),
        until: usToText(page.untilUs),
        has_more: page.hasMore,
      });
    },
});

async function* exported(memory: MemoryService, scope: MemoryScope): AsyncGenerator<Uint8Array> {
  yield Buffer.from('{"memory_nodes":[');
  yield* exportedOf(memory, scope, "node");
  yield Buffer.from('],"memory_edges":[');
  yield* exportedOf(memory, scope, "edge");
  yield Buffer.from("]}");
}

async function* exportedOf(memory: MemoryService, scope: MemoryScope, kind: RecordKind): AsyncGenerator<Uint8Array> {
  let isFirst = true;
  for await (const page of memory.export(scope, kind)) {
    const text = page.map((version) => JSON.stringify(wireVersion(version))).join(",");
    yield Buffer.from(isFirst ? text : `,${text}`);
    isFirst = false;
  }
}
