import { z } from "zod";
import { checkMayUse } from "../../../auth/caller.ts";
import { valuesOf } from "../../../config/option.ts";
import { EngineError } from "../../../core/errors.ts";
import type { FeatureDeps } from "../../../feature/feature.ts";
import { defineRoute } from "../../../server/route.ts";
import { databaseHeader } from "../../../server/schemas.ts";
import { MEMORY_LIMITS } from "../limits.ts";
import { checkRealm, realmRights } from "../realms.ts";
import { textToUs } from "../times.ts";
import { recallAnswer } from "./answer.ts";
import { RECALL_LIMITS } from "./limits.ts";
import { RECALL_OPTIONS } from "./options.ts";
import type { Asked, Question } from "./question.ts";
import { RecallClient } from "./recall-client.ts";

const time = z.string().transform((text, context) => {
  const us = textToUs(text);
  if (us !== undefined) return us;
  context.addIssue({ code: "custom", message: "accepted is an RFC 3339 time with an offset" });
  return z.NEVER;
});

const text = z.string().refine((value) => value.isWellFormed(), "accepted is Unicode text");

const recallBody = z.strictObject({
  query: text.max(RECALL_LIMITS.queryChars).refine((value) => value.trim() !== "", "is empty"),
  realms: z
    .array(text)
    .max(RECALL_LIMITS.realms)
    .default([])
    .describe("Where to look; empty: in all realms that the caller may see."),
  memory_type: text.nullish(),
  tags: z.array(text).max(RECALL_LIMITS.tags).default([]).describe("A memory must have all of them."),
  importance_min: z.number().min(0).max(1).nullish(),
  as_of: time.nullish().describe("What held then. RFC 3339."),
  known_at: time
    .nullish()
    .describe("By what was recorded until then; what held at that time unless `as_of` says another. RFC 3339."),
  include_invalidated: z.boolean().default(false).describe("Also what does not hold any more."),
  limit: z.int().min(1).max(MEMORY_LIMITS.recallItems).nullish().describe("Of memories; by the settings unless given."),
  expand_hops: z
    .int()
    .min(0)
    .max(MEMORY_LIMITS.recallHops)
    .nullish()
    .describe("How far to follow edges; by the settings unless given."),
  mode: z.enum(["fast", "agentic"]).default("fast").describe("`agentic` adds a brief by an engine."),
});

/** Why there is no brief. */
const NO_ENGINE = "no engine is configured that could write a brief";

export const recallRoute = defineRoute({
  method: "POST",
  path: "/v1/agent/memory/query",
  role: "read",
  tag: "Memory",
  summary: "Recall memories",
  description:
    "Finds memories by their words, by the entities that the question names and by the edges between them, without a " +
    "model. Every change that was acknowledged before the request is found, whichever node took it. Ranks are by " +
    "`score`; `score_parts` says where it comes from. A text that says the same as a better one is left out.",
  headers: z.object({ "x-database": databaseHeader }),
  json: recallBody,
  compress: true,
  responses: [{ status: 200, description: "What was found.", type: "application/json", schema: recallAnswer }],
  errors: ["bad_request_body", "database_not_found", "too_many_requests"],
  handler: ({ catalog, clock, config, log }: FeatureDeps) => {
    const { memoryPpr: ppr, memoryClassDecay: classDecay } = valuesOf(RECALL_OPTIONS, config);
    const acquireTimeoutMs = config.catalogAcquireTimeoutSecs * 1000;
    const source = { catalog: config.catalogUrl, acquireTimeoutMs };
    const client = new RecallClient({ source, options: { ppr, classDecay }, log });
    return async ({ caller, headers, json }) => {
      const name = headers["x-database"];
      checkMayUse(caller, name);
      const rights = realmRights(caller);
      for (const realm of json.realms) checkRealm(rights, realm);
      const database = await catalog.database(name);
      if (database === undefined)
        throw new EngineError("database_not_found", `database ${JSON.stringify(name)} does not exist`);
      const asked: Asked = { question: questionOf(json), rights, nowUs: clock.nowMs() * 1_000 };
      const answer = await client.recall(database.id, asked);
      const body = json.mode === "agentic" ? withoutBrief(answer) : answer;
      return { status: 200, headers: { "Content-Type": "application/json; charset=utf-8" }, body };
    };
  },
});

function questionOf(json: z.output<typeof recallBody>): Question {
  return {
    query: json.query,
    realms: json.realms.map((realm) => realm.trim().normalize("NFC")),
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

/** The answer, which is an object with members, with two more. */
function withoutBrief(answer: string): string {
  return `${answer.slice(0, -1)},"brief":null,"brief_error":${JSON.stringify(NO_ENGINE)}}`;
}
