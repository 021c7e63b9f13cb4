import { z } from "zod";
import { publicText } from "../../../core/errors.ts";
import { FABRIC_LIMITS } from "../../../fabric/limits.ts";
import { boundedText } from "../../../fabric/refusals.ts";
import { engineFields } from "../../agent/engines/fields.ts";
import { maskSecrets } from "../../memory/secrets.ts";
import { DREAMING_LIMITS } from "../limits.ts";
import type { DreamAnswer, DreamResult } from "../loop.ts";

/** A dream on a worker as it goes over the wire, for the server and for the worker. */

const MOST_TOKENS = 1_000_000_000;
/** What is kept of an engine's words. */
const MESSAGE_CHARS = 500;
const MOST_MALFORMED = 1_000;
const MOST_PAUSE_MS = FABRIC_LIMITS.backoffMs.max;
const tokens = z.int().min(0).max(MOST_TOKENS);

/** Why an engine may give no answer. */
const ENGINE_FAILURES = [
  "engine_failed",
  "engine_timeout",
  "rate_limited",
  "context_too_large",
  "not_configured",
] as const;

const dreamResult = z.object({ run_id: z.string(), events_scanned: z.int(), memories_written: z.int() });

const over = {
  over: z
    .boolean()
    .describe("There are no more questions: complete the job with `result`, or fail it as `failure` says."),
  result: dreamResult.nullable().describe("What the dream came to: the result of the job."),
  failure: z
    .object({ error: z.string(), retryable: z.boolean(), retry_after_ms: z.int().nullable() })
    .nullable()
    .describe("How the job is to be failed: the body of `POST /v1/jobs/{id}/fail`."),
};

export const nextAnswer = z.object({
  ...over,
  question: z
    .object({
      position: z.string().describe("Names the question: its answer is applied under it."),
      instructions: z.string().describe("What the model is told."),
      content: z
        .string()
        .describe(
          "What the model is shown: events, and memories that have to do with them, with their secrets masked.",
        ),
      max_output_tokens: z.int().describe("Of the answer."),
      time_left_ms: z.int().describe("After it the dream asks no further: say `late` then."),
    })
    .nullable(),
  engine: engineFields
    .nullable()
    .describe(
      "The engine that is to be asked. The job names its `credential_id`, so that the worker may fetch the key.",
    ),
  tool: z
    .object({
      name: z.string(),
      description: z.string(),
      input_schema: z.record(z.string(), z.unknown()).describe("JSON Schema."),
    })
    .nullable()
    .describe("The tool with which the model hands in its proposals."),
});
export type NextAnswer = z.output<typeof nextAnswer>;

export const applyAnswer = z.object(over);
export type ApplyAnswer = z.output<typeof applyAnswer>;

const failure = z.strictObject({
  code: z.enum(ENGINE_FAILURES),
  message: z.string().max(2_000),
  retryable: z.boolean().default(false),
  retry_after_ms: z.int().min(0).max(MOST_PAUSE_MS).optional(),
  is_of_content: z.boolean().default(false).describe("It is about what was shown: fewer events are shown next."),
});

export const applyRequest = z.strictObject({
  position: z.string().max(100).describe("Of the question."),
  usage: z.strictObject({ input_tokens: tokens, output_tokens: tokens }).describe("What the question took."),
  proposals: z
    .array(z.unknown())
    .max(DREAMING_LIMITS.proposals)
    .optional()
    .describe("What the model handed in with the tool. Each is checked on its own."),
  malformed: z.int().min(0).max(MOST_MALFORMED).default(0).describe("Proposals that were left out as unreadable."),
  failure: failure.optional().describe("Why the engine gave no answer, in place of proposals."),
  late: z.boolean().default(false).describe("The time was up before the answer was there."),
});
export type ApplyRequest = z.output<typeof applyRequest>;

/** Undefined unless the request has exactly one of proposals, a failure and `late`. */
export function answerIn({
  usage,
  proposals,
  malformed,
  failure: failed,
  late,
}: ApplyRequest): DreamAnswer | undefined {
  const { input_tokens, output_tokens } = usage;
  const spent = { usage: { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens } };
  if (Number(proposals !== undefined) + Number(failed !== undefined) + Number(late) !== 1) return undefined;
  if (proposals !== undefined) return { ...spent, proposals, malformed };
  if (failed === undefined) return { ...spent, isLate: true };
  const { code, message, retryable, retry_after_ms: retryAfterMs, is_of_content: isOfContent } = failed;
  // A worker may quote anything, and whoever reads runs is shown it.
  return {
    ...spent,
    failure: {
      code,
      message: boundedText(publicText(maskSecrets(message)), MESSAGE_CHARS),
      retryable,
      retryAfterMs,
      isOfContent,
    },
  };
}

/** The body that says it. */
export function requestOf(position: string, answer: DreamAnswer): z.input<typeof applyRequest> {
  const input_tokens = Math.min(answer.usage.input_tokens, MOST_TOKENS);
  const output_tokens = Math.min(answer.usage.output_tokens, MOST_TOKENS);
  const said = { position, usage: { input_tokens, output_tokens } };
  if ("proposals" in answer) {
    return { ...said, proposals: [...answer.proposals], malformed: Math.min(answer.malformed, MOST_MALFORMED) };
  }
  if ("isLate" in answer) return { ...said, late: true };
  const { code, message, retryable, retryAfterMs, isOfContent } = answer.failure;
  const known = ENGINE_FAILURES.find((each) => each === code) ?? "engine_failed";
  const wait = retryAfterMs === undefined ? {} : { retry_after_ms: Math.min(Math.round(retryAfterMs), MOST_PAUSE_MS) };
  return {
    ...said,
    failure: { code: known, message: message.slice(0, 2_000), retryable, is_of_content: isOfContent, ...wait },
  };
}

/** The same shape of an end, for both answers. */
export function overOf(
  end:
    | { result: DreamResult }
    | { failure: { error: string; retryable?: boolean | undefined; retryAfterMs?: number | undefined } },
): ApplyAnswer {
  if ("result" in end) return { over: true, result: end.result, failure: null };
  const { error, retryable = false, retryAfterMs } = end.failure;
  const retry_after_ms = retryAfterMs === undefined ? null : Math.round(retryAfterMs);
  return { over: true, result: null, failure: { error, retryable, retry_after_ms } };
}
