import { z } from "zod";
import { defineRoute, jsonResponse } from "../../../server/route.ts";
import type { MemoryScope } from "../service.ts";
import { memorySettings } from "../settings.ts";
import { inDatabase, TAG, type MemoryDeps } from "./deps.ts";

/** The memory of a database as a whole. */

const memoryOverview = z.object({
  memories: z.int().describe("In all realms that the caller may see, without what is invalidated."),
  entities: z.int(),
  edges: z.int(),
  realms: z.array(
    z.object({
      realm: z.string(),
      kind: z.enum(["memory", "entity", "edge"]),
      count: z.int().describe("Current versions, with those that are invalidated."),
      invalidated: z.int(),
    }),
  ),
  firehose_rows: z.int().describe("Rows of the table `firehose`: raw observations."),
  index: z
    .object({
      state: z.enum(["none", "building", "ready"]).describe("`none`: the first question has it built."),
      commits: z.int().describe("How many commits are in; a question adds what is missing."),
      size_bytes: z.int(),
    })
    .describe("What recall searches, on the node that answers."),
  embedding: z
    .object({
      state: z
        .enum(["off", "ready", "behind", "failing"])
        .describe("`off`: no model is configured; recall goes by words and links."),
      model: z.string().nullable(),
      commits: z.int().describe("How many commits are embedded."),
      reason: z.string().nullable().describe("Why it is off or failing."),
    })
    .describe("The vectors by which memories are found by meaning, on the node that answers."),
  reranking: z
    .object({
      state: z.enum(["off", "loading", "ready", "failing"]),
      model: z.string().nullable(),
      reason: z.string().nullable().describe("Why it is failing, or off though configured."),
    })
    .describe("The model that rates the best memories of a recall anew, on the node that answers."),
});

export const overviewRoute = defineRoute({
  method: "GET",
  path: "/v1/agent/memory/overview",
  role: "read",
  tag: TAG,
  summary: "What the memory holds",
  headers: inDatabase,
  responses: [{ status: 200, description: "Counts.", type: "application/json", schema: memoryOverview }],
  errors: ["database_not_found"],
  handler:
    (deps: MemoryDeps) =>
    async ({ caller, headers: { "x-database": database } }) =>
      jsonResponse(200, await overviewOf(deps, await deps.memory.scope(caller, database), database)),
});

type MemoryCounts = Omit<z.output<typeof memoryOverview>, "realms"> & {
  realms: { realm: string; kind: string; count: number; invalidated: number }[];
};

/** The counts of one memory, as they go over the wire. */
export async function overviewOf(
  { memory, recall }: MemoryDeps,
  scope: MemoryScope,
  database: string,
): Promise<MemoryCounts> {
  const { counts, firehoseRows } = await memory.overview(scope, database);
  const { state, commits, sizeBytes } = await recall.indexOf(scope);
  const embedding = await recall.embeddingOf(scope);
  const { reranking } = recall;
  const valid = (kind: string): number =>
    counts.reduce((sum, each) => sum + (each.kind === kind ? each.current - each.invalidated : 0), 0);
  return {
    memories: valid("memory"),
    entities: valid("entity"),
    edges: valid("edge"),
    realms: counts.map(({ realm, kind, current, invalidated }) => ({ realm, kind, count: current, invalidated })),
    firehose_rows: firehoseRows,
    index: { state, commits, size_bytes: sizeBytes },
    embedding: { ...embedding, model: embedding.model ?? null, reason: embedding.reason ?? null },
    reranking: { ...reranking, model: reranking.model ?? null, reason: reranking.reason ?? null },
  };
}

const settingsResponse = { status: 200, type: "application/json", schema: memorySettings } as const;

export const settingsRoute = defineRoute({
  method: "GET",
  path: "/v1/agent/memory/settings",
  role: "read",
  tag: TAG,
  summary: "Settings of the memory",
  headers: inDatabase,
  responses: [{ ...settingsResponse, description: "All, with the defaults of those that nobody has set." }],
  errors: ["database_not_found"],
  handler:
    ({ memory }: MemoryDeps) =>
    async ({ caller, headers }) =>
      jsonResponse(200, await memory.settings(await memory.scope(caller, headers["x-database"]))),
});

export const changeSettingsRoute = defineRoute({
  method: "PUT",
  path: "/v1/agent/memory/settings",
  role: "read",
  tag: TAG,
  summary: "Change settings of the memory",
  description: "Replaces all of them: what is not given has its default again. Audited.",
  headers: inDatabase,
  json: memorySettings,
  responses: [{ ...settingsResponse, description: "All, as they are now." }],
  errors: ["database_not_found", "bad_request_body"],
  handler:
    ({ memory }: MemoryDeps) =>
    async ({ caller, headers: { "x-database": database }, json, clientAddress: address, requestId }) => {
      const scope = await memory.scope(caller, database);
      await memory.changeSettings(scope, database, json, { caller, address, requestId });
      return jsonResponse(200, json);
    },
});
