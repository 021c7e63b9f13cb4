import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import { FIELDS } from "../../memory/fields.ts";
import { MEMORY_TYPES, type NodeRecord } from "../../memory/model.ts";
import { nodeKey, type Saved } from "../../memory/save.ts";
import { MCP_LIMITS } from "../limits.ts";
import { databaseArgument, defineTool, truncatedField } from "../tool.ts";
import { nodeOf, toolNode } from "./nodes.ts";

/** Tools that write memories. What their arguments may be, beyond their types, the service of memories says. */

const said = {
  content: z.string(),
  memory_type: z.enum(MEMORY_TYPES).default("fact"),
  realm: z.string().optional(),
  importance: z.number().optional(),
  topic_key: z.string().optional(),
  tags: z.array(z.string()).optional(),
};

/** `outcome` is `created`, `updated` or `confirmed`: it was there already. */
const saved = { id: z.string(), outcome: z.string() };

export const saveMemory = defineTool({
  name: "save_memory",
  title: "Save a memory",
  description:
    "Remembers one fact, decision, preference, learning or procedure for later sessions. Keys and passwords are masked.",
  role: "write",
  hints: { idempotent: true },
  input: z.strictObject({
    ...said,
    content: said.content.describe("One statement that is understood on its own."),
    realm: said.realm.describe("`default`, `project:<folder>` or `user:<name>`."),
    importance: said.importance.describe("0 to 1; 0.5 unless given."),
    topic_key: said.topic_key.describe("A stable key: saving it again replaces what it said."),
    source: z.string().optional(),
    valid_from: z.string().optional().describe("RFC 3339."),
    valid_to: z.string().optional(),
    database: databaseArgument,
  }),
  output: z.object(saved),
  run: async ({ deps: { memory }, caller, database }, { database: named, ...fields }) => {
    const scope = await memory.scope(caller, named ?? database);
    return outcomeOf(await memory.saveNode(scope, { ...fields, kind: "memory" }));
  },
});

export const saveMemories = defineTool({
  name: "save_memories",
  title: "Save several memories",
  description: "Like save_memory, for many at once. Each is saved or refused on its own.",
  role: "write",
  hints: { idempotent: true },
  input: z.strictObject({
    memories: z.array(z.strictObject(said)).min(1).max(MCP_LIMITS.memories),
    database: databaseArgument,
  }),
  output: z.object({
    saved: z.array(z.looseObject({ index: z.int(), ...saved })),
    refused: z.array(z.looseObject({ index: z.int(), message: z.string() })),
    truncated: truncatedField,
  }),
  lists: ["refused", "saved"],
  run: async ({ deps: { memory }, caller, database }, input) => {
    const scope = await memory.scope(caller, input.database ?? database);
    // The writer puts what comes together into one commit.
    const each = await Promise.allSettled(
      input.memories.map((fields) => memory.saveNode(scope, { ...fields, kind: "memory" })),
    );
    const refused: { index: number; code: string; message: string }[] = [];
    const done = each.flatMap((one, index) => {
      if (one.status === "fulfilled") return [{ index, ...outcomeOf(one.value) }];
      // Whether it was saved is not known of others: the whole call says so.
      if (!isRefusal(one.reason)) throw one.reason;
      refused.push({ index, code: one.reason.code, message: one.reason.message });
      return [];
    });
    return { saved: done, refused };
  },
});

export const invalidateMemory = defineTool({
  name: "invalidate_memory",
  title: "Invalidate a memory",
  description: "Says that a memory or entity no longer holds. What it said stays in its history.",
  role: "write",
  hints: { idempotent: true },
  input: z.strictObject({
    id: FIELDS.id,
    reason: FIELDS.reason.optional(),
    valid_to: FIELDS.time.optional().describe("Since when; now unless given (RFC 3339)."),
    database: databaseArgument,
  }),
  output: z.object({ memory: toolNode, truncated: truncatedField }),
  run: async ({ deps: { memory }, caller, database }, { id, reason, valid_to, database: named }) => {
    const scope = await memory.scope(caller, named ?? database);
    return { memory: nodeOf(await memory.invalidate(scope, nodeKey(id), { reason, validToUs: valid_to })) };
  },
});

export const forgetMemory = defineTool({
  name: "forget_memory",
  title: "Forget a memory",
  description:
    "Erases a memory or entity, all its versions and its edges, for good. To correct one, save or invalidate it.",
  role: "write",
  hints: { destructive: true },
  input: z.strictObject({ id: FIELDS.id, database: databaseArgument }),
  output: z.object({ erased: z.int().describe("Records: it and its edges.") }),
  run: async ({ deps: { memory }, caller, database, address, requestId }, { id, database: named }) => {
    const scope = await memory.scope(caller, named ?? database);
    return { erased: await memory.erase(scope, nodeKey(id), { caller, address, requestId }) };
  },
});

const link = z.strictObject({
  node_id: z.string(),
  namespace: z.string().optional().describe("`memory` or a graph."),
  rel: z.string().optional().describe("Default: related_to."),
});

export const ingestEntity = defineTool({
  name: "ingest_entity",
  title: "Save an entity",
  description:
    "Creates or updates a person, service, repository or the like, and links it with nodes. One of the same realm, kind " +
    "and name is the same entity.",
  role: "write",
  hints: { idempotent: true },
  input: z.strictObject({
    name: z.string(),
    kind: z.string().describe("In lower case: `person`, `service`, …"),
    content: z.string().optional().describe("What is to be said of it."),
    realm: z.string().optional(),
    props: z.looseObject({}).optional(),
    links: z.array(link).max(MCP_LIMITS.links).default([]),
    database: databaseArgument,
  }),
  output: z.object({ ...saved, edges: z.array(z.object(saved)) }),
  run: async ({ deps: { memory }, caller, database }, { database: named, kind, links, ...fields }) => {
    const scope = await memory.scope(caller, named ?? database);
    // Before anything is written: an entity without the links that it was given would look finished.
    for (const { node_id: id, namespace = "memory" } of links) {
      if (namespace === "memory") await memory.get(scope, nodeKey(id));
    }
    const entity = await memory.saveNode(scope, { ...fields, kind: "entity", entity_kind: kind });
    const edges = [];
    for (const { node_id: dst, namespace, rel } of links) {
      edges.push(outcomeOf(await memory.saveEdge(scope, { src: entity.record.id, dst, namespace, rel })));
    }
    return { ...outcomeOf(entity), edges };
  },
});

function outcomeOf({ record: { id }, outcome }: Saved<Pick<NodeRecord, "id">>) {
  return { id, outcome };
}

function isRefusal(error: unknown): error is EngineError {
  return error instanceof EngineError && error.status < 500 && error.withheld === undefined;
}
