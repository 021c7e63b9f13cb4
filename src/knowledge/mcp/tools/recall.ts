import { z } from "zod";
import { FIELDS } from "../../memory/fields.ts";
import type { RecallAnswer } from "../../memory/recall/answer.ts";
import { overviewOf } from "../../memory/routes/overview.ts";
import { questionOf, recallBody } from "../../memory/routes/query.ts";
import { nodeKey } from "../../memory/save.ts";
import { databaseArgument, defineTool, truncatedField } from "../tool.ts";
import { nodeOf, shortNode, toolNode } from "./nodes.ts";

/** Tools that read memories. */

const scored = toolNode.extend({ score: z.number() });

export const recallMemory = defineTool({
  name: "recall_memory",
  title: "Recall memories",
  description:
    "Finds what was remembered, by a question in plain words. Ask before you answer anything that earlier sessions may " +
    "have decided, and before you ask the user again. The best come first.",
  role: "read",
  input: z.strictObject({
    query: recallBody.shape.query,
    realms: recallBody.shape.realms.describe("All that you may see unless given."),
    memory_type: recallBody.shape.memory_type.describe(""),
    tags: recallBody.shape.tags.describe("All of them."),
    importance_min: recallBody.shape.importance_min,
    as_of: recallBody.shape.as_of.describe("What held then (RFC 3339)."),
    known_at: recallBody.shape.known_at.describe("What was recorded by then."),
    include_invalidated: recallBody.shape.include_invalidated.describe(""),
    limit: recallBody.shape.limit.describe("Of memories; 10 unless set otherwise."),
    expand_hops: recallBody.shape.expand_hops.describe("How far to follow edges."),
    database: databaseArgument,
  }),
  output: z.object({
    memories: z.array(scored),
    entities: z.array(scored),
    edges: z.array(z.looseObject({ src: z.string(), rel: z.string(), dst: z.string() })),
    as_of: z.string(),
    truncated: truncatedField,
  }),
  lists: ["memories", "entities", "edges"],
  run: async ({ deps, caller, database }, input) => {
    const scope = await deps.memory.scope(caller, input.database ?? database);
    const answer = JSON.parse(await deps.recall.recall(scope, questionOf(input))) as RecallAnswer;
    return {
      memories: answer.memories.map(shortScored),
      entities: answer.entities.map(shortScored),
      edges: answer.edges.map(({ src, rel, dst, namespace }) => ({ src, rel, dst, namespace })),
      as_of: answer.as_of,
    };
  },
});

function shortScored({ score, ...node }: RecallAnswer["memories"][number]) {
  return { ...shortNode(node), score };
}

export const getMemory = defineTool({
  name: "get_memory",
  title: "Get a memory",
  description: "One memory or entity by its id, as it is or was at a time; with `history` all its versions.",
  role: "read",
  input: z.strictObject({
    id: FIELDS.id,
    history: z.boolean().default(false),
    as_of: FIELDS.time.optional().describe("What held then (RFC 3339)."),
    known_at: FIELDS.time.optional().describe("What was recorded by then."),
    database: databaseArgument,
  }),
  output: z.object({ memory: toolNode, history: z.array(toolNode).optional(), truncated: truncatedField }),
  lists: ["history"],
  run: async ({ deps: { memory }, caller, database }, input) => {
    const scope = await memory.scope(caller, input.database ?? database);
    const key = nodeKey(input.id);
    const found = nodeOf(await memory.get(scope, key, { asOfUs: input.as_of, knownAtUs: input.known_at }));
    if (!input.history) return { memory: found };
    const versions = await memory.history(scope, key);
    return { memory: found, history: versions.flatMap((each) => (each.erased ? [] : [nodeOf(each.record)])) };
  },
});

export const memoryOverviewTool = defineTool({
  name: "memory_overview",
  title: "Overview of the memory",
  description: "How much is remembered, in which realms, and how many raw observations there are.",
  role: "read",
  input: z.strictObject({ database: databaseArgument }),
  output: z.object({
    memories: z.int(),
    entities: z.int(),
    edges: z.int(),
    realms: z.array(z.looseObject({ realm: z.string(), kind: z.string(), count: z.int() })),
    firehose_rows: z.int(),
    index: z.looseObject({ state: z.string() }),
    truncated: truncatedField,
  }),
  lists: ["realms"],
  run: async ({ deps, caller, database }, input) => {
    const name = input.database ?? database;
    return await overviewOf(deps, await deps.memory.scope(caller, name), name);
  },
});
