import { z } from "zod";
import { EngineError } from "../../../core/errors.ts";
import type { Fabric } from "../../../fabric/fabric.ts";
import { holdIn, optionalFence } from "../../../fabric/routes/jobs-leased.ts";
import { defineRoute, jsonResponse } from "../../../server/route.ts";
import { DREAMING_LIMITS } from "../limits.ts";
import { PROPOSE_TOOL } from "../proposals.ts";
import type { DreamDesk } from "./desk.ts";
import { answerIn, applyAnswer, applyRequest, nextAnswer, overOf, type NextAnswer } from "./wire.ts";

/** What the routes of dreams on workers work with. */
export type DreamDeskRoutesDeps = { desk: DreamDesk; fabric: Fabric };

const common = { role: "worker", tag: "Jobs", method: "POST" } as const;
const ofJob = z.object({ id: z.string() });

export const nextRoute = defineRoute({
  ...common,
  path: "/v1/jobs/{id}/dreaming/next",
  summary: "The next question of a dream",
  description:
    "For the worker that holds a job of the kind `dreaming`: what the model is to be shown next, and which engine it is. Until " +
    "the question is answered the same events come again, under another `position`. The run begins with the first question.",
  params: ofJob,
  headers: optionalFence,
  responses: [{ status: 200, description: "A question, or the end.", type: "application/json", schema: nextAnswer }],
  errors: ["invalid_header", "not_found", "lease_lost", "conflict", "insufficient_storage"],
  handler:
    ({ desk, fabric }: DreamDeskRoutesDeps) =>
    async (call) => {
      const step = await desk.next(await holdIn(fabric, call), call.request.signal);
      if (!("question" in step))
        return jsonResponse(200, { ...overOf(step), question: null, engine: null, tool: null });
      const { position, instructions, content, maxOutputTokens, timeLeftMs } = step.question;
      const { name, description, inputSchema } = PROPOSE_TOOL;
      const body: NextAnswer = {
        over: false,
        result: null,
        failure: null,
        question: { position, instructions, content, max_output_tokens: maxOutputTokens, time_left_ms: timeLeftMs },
        engine: step.engine,
        tool: { name, description, input_schema: inputSchema },
      };
      return jsonResponse(200, body);
    },
});

export const applyRoute = defineRoute({
  ...common,
  path: "/v1/jobs/{id}/dreaming/apply",
  summary: "Answer a question of a dream",
  description:
    "For the worker that holds the job: what the model proposes, or why it gave no answer: exactly one of `proposals`, `failure` " +
    "and `late`. Each proposal is checked; what is accepted is written with the end of the run, in one commit. The same answer " +
    "again is like the first; one to another question is a `conflict`.",
  params: ofJob,
  headers: optionalFence,
  json: applyRequest,
  jsonLimitBytes: DREAMING_LIMITS.answerBytes,
  responses: [{ status: 200, description: "It is taken.", type: "application/json", schema: applyAnswer }],
  errors: ["bad_request_body", "invalid_header", "not_found", "lease_lost", "conflict", "insufficient_storage"],
  handler:
    ({ desk, fabric }: DreamDeskRoutesDeps) =>
    async (call) => {
      const hold = await holdIn(fabric, call);
      const answer = answerIn(call.json);
      if (answer === undefined) {
        throw new EngineError("bad_request_body", "accepted is exactly one of proposals, failure and late");
      }
      const { position } = call.json;
      const end = await desk.apply(hold, { position, answer, signal: call.request.signal });
      return jsonResponse(200, end === undefined ? { over: false, result: null, failure: null } : overOf(end));
    },
});

export const DREAM_DESK_ROUTES = [nextRoute, applyRoute];
