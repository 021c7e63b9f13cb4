import { z } from "zod";
import { messageOf } from "../../../core/errors.ts";
import { originOf } from "../../../server/origin.ts";
import { defineRoute } from "../../../server/route.ts";
import { FIELDS } from "../fields.ts";
import { MEMORY_LIMITS } from "../limits.ts";
import { recallAnswer } from "../recall/answer.ts";
import type { BriefWriter } from "../recall/brief.ts";
import { RECALL_LIMITS } from "../recall/limits.ts";
import type { Question } from "../recall/question.ts";
import { inDatabase, TAG, type MemoryDeps } from "./deps.ts";

/** A question, by the names of the wire. */
export const recallBody = z.strictObject({
  query: z
    .string()
    .max(RECALL_LIMITS.queryChars)
    .refine((text) => text.isWellFormed(), "accepted is Unicode text")
    .refine((text) => text.trim() !== "", "is empty"),
  realms: z
    .array(FIELDS.realm)
    .max(RECALL_LIMITS.realms)
    .default([])
    .describe("Where to look; empty: in all realms that the caller may see."),
  memory_type: FIELDS.word.nullish().describe("Only memories of this type."),
  tags: FIELDS.tags.default([]).describe("A memory must have all of them."),
  importance_min: FIELDS.importance.nullish(),
  as_of: FIELDS.time.nullish().describe("What held then; what holds now unless given. RFC 3339."),
  known_at: FIELDS.time
    .nullish()
    .describe("By what was recorded until then; what held at that time unless `as_of` says another. RFC 3339."),
  include_invalidated: z.boolean().default(false).describe("Also what does not hold any more."),
  limit: z
    .int()
    .min(1)
    .max(MEMORY_LIMITS.recallItems)
    .nullish()
    .describe("Of memories; what the settings say (10) unless given."),
  expand_hops: z
    .int()
    .min(0)
    .max(MEMORY_LIMITS.recallHops)
    .nullish()
    .describe("How far to follow edges; what the settings say (1) unless given."),
  mode: z
    .enum(["fast", "agentic"])
    .default("fast")
    .describe("`agentic` adds a brief, which an engine (a language model) writes."),
});

/** Why there is no brief. */
const NO_ENGINE = "this process has no engine: only an engine can write a brief";

export const recallRoute = defineRoute({
  method: "POST",
  path: "/v1/agent/memory/query",
  role: "read",
  tag: TAG,
  summary: "Recall memories",
  description:
    "Finds memories by their words, by the entities that the question names, by the edges between them and, where an " +
    "embedding model is configured, by their meaning. Every change that was acknowledged before the request is found, whichever node took it. Ranks are by " +
    "`score`; `score_parts` says where it comes from. A text that says the same as a better one is left out. While the " +
    "index of the memory is being built questions wait ten seconds, and are told to come back then.",
  headers: inDatabase,
  json: recallBody,
  compress: true,
  responses: [{ status: 200, description: "What was found.", type: "application/json", schema: recallAnswer }],
  errors: ["bad_request_body", "database_not_found", "too_many_requests"],
  handler:
    ({ memory, recall, brief }: MemoryDeps) =>
    async (call) => {
      const { caller, headers, json } = call;
      const answer = await recall.recall(await memory.scope(caller, headers["x-database"]), questionOf(json));
      const asked = { question: json.query, origin: originOf(call), signal: call.request.signal };
      const body = json.mode === "agentic" ? await withBrief(answer, asked, brief) : answer;
      return { status: 200, headers: { "Content-Type": "application/json; charset=utf-8" }, body };
    },
});

export function questionOf(json: Omit<z.output<typeof recallBody>, "mode">): Question {
  return {
    query: json.query,
    realms: json.realms,
    memoryType: json.memory_type ?? undefined,
    tags: json.tags,
    importanceMin: json.importance_min ?? undefined,
    asOfUs: json.as_of ?? undefined,
    knownAtUs: json.known_at ?? undefined,
    includeInvalidated: json.include_invalidated,
    limit: json.limit ?? undefined,
    expandHops: json.expand_hops ?? undefined,
  };
}

/** The answer, which is an object with members, with what an engine says of it, or why that is nothing. */
async function withBrief(
  answer: string,
  asked: Omit<Parameters<BriefWriter>[0], "memories">,
  brief: BriefWriter | undefined,
): Promise<string> {
  const written = await briefOf(answer, asked, brief);
  return `${answer.slice(0, -1)},${JSON.stringify(written).slice(1)}`;
}

async function briefOf(
  answer: string,
  asked: Omit<Parameters<BriefWriter>[0], "memories">,
  brief: BriefWriter | undefined,
): Promise<Pick<z.input<typeof recallAnswer>, "brief" | "brief_memories" | "brief_error">> {
  if (brief === undefined) return { brief: null, brief_error: NO_ENGINE };
  const { memories } = JSON.parse(answer) as { memories: { id: string; content: string }[] };
  try {
    const { text, memoryIds } = await brief({ ...asked, memories });
    return { brief: text, brief_memories: memoryIds };
  } catch (error) {
    asked.signal.throwIfAborted();
    return { brief: null, brief_error: messageOf(error) };
  }
}
