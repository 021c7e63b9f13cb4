import { z } from "zod";
import { ENGINE_KINDS, type EngineConfig } from "./engine.ts";

/** The engine as it goes over the wire and into the table of settings. */

const MODEL_CHARS = 200;

const model = z
  .string()
  .min(1)
  .max(MODEL_CHARS)
  .refine((text) => text.trim() === text && !/\p{C}/u.test(text), {
    message: "accepted is a name without control characters, and without space around it",
  })
  .describe("As the provider calls it.");

const extras = z.strictObject({
  max_output_tokens: z
    .int()
    .min(16)
    .max(200_000)
    .optional()
    .describe("Of one answer of the model; 8192 unless it is given."),
  temperature: z
    .number()
    .min(0)
    .max(2)
    .optional()
    .describe("At most 1 for `anthropic`, and there not together with a budget to think."),
  thinking_budget_tokens: z
    .int()
    .min(1_024)
    .max(100_000)
    .optional()
    .describe("Of `anthropic`: tokens that the model may think, besides those of its answer."),
  reasoning_effort: z.enum(["low", "medium", "high"]).optional().describe("Of `openai` and `localmodel`."),
});

export const engineFields = z.strictObject({
  kind: z
    .enum(ENGINE_KINDS)
    .describe(
      "`anthropic` and `openai` are asked with a key; `localmodel` is a server of chat completions; `cli` is the program " +
        "of the option ENGINE_AGENT_COMMAND.",
    ),
  model,
  credential_id: z
    .uuid()
    .nullable()
    .default(null)
    .describe(
      "A credential of the kind `api_key` that its owner shares, and that is of no certain databases; null for the key " +
        "of the operator. Not of `localmodel` and `cli`, which are sent no key.",
    ),
  host: z
    .string()
    .max(2_048)
    .nullable()
    .default(null)
    .describe("Of `localmodel`: one of the addresses that the operator lists; null for the first of them."),
  extras: extras.prefault({}).describe("How the model is asked. What is not given is the provider's to decide."),
});

export type EngineFields = z.output<typeof engineFields>;

export function toConfig({ credential_id, ...rest }: EngineFields): EngineConfig {
  return { ...rest, credentialId: credential_id };
}

export function toFields({ kind, model: modelName, credentialId, host, extras: own }: EngineConfig): EngineFields {
  return { kind, model: modelName, credential_id: credentialId, host, extras: own };
}
