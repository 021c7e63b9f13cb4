import { z } from "zod";
import { line, text } from "../../contract/text-fields.ts";
import type { Subagent } from "../../contract/spec.ts";
import { SUBAGENT_FILES } from "../../contract/agents/subagent-files.ts";

/** The field `subagents` of a create request. */

const MAX_SUBAGENTS = 32;
const MAX_TOOLS = 64;
const LINE_CHARS = 1_024;
const MODEL_CHARS = 255;
/** It is an argument of a command: Linux takes 128 KiB. */
const PROMPT_CHARS = 16_384;
const NAME = /^[a-z][a-z0-9-]{0,63}$/;
const TOOL = /^[A-Za-z][\w.-]{0,127}$/;

const subagent = z.strictObject({
  name: z.string().regex(NAME, "accepted are up to 64 lower-case letters, digits and `-`, a letter first"),
  description: line(LINE_CHARS).describe("By which the agent knows when it is of use."),
  prompt: text(PROMPT_CHARS).min(1),
  model: line(MODEL_CHARS).nullish().describe("By the agent's own name for it; that of the agent by default."),
  tools: z
    .array(z.string().regex(TOOL, "accepted are names of tools"))
    .min(1)
    .max(MAX_TOOLS)
    .nullish()
    .describe("By the agent's own names for them; all by default."),
});

export const subagentsField = z
  .array(subagent)
  .max(MAX_SUBAGENTS)
  .default([])
  .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, "two subagents have the same name")
  .describe("Agents that the agent may give work to. Not all agents take them.");

/** What the agent does not take is an issue. */
export function toSubagents(
  given: z.output<typeof subagentsField>,
  agentProvider: string,
  context: Pick<z.RefinementCtx, "addIssue">,
): readonly Subagent[] {
  if (given.length > 0 && !SUBAGENT_FILES.has(agentProvider)) {
    const message = `accepted are those of ${[...SUBAGENT_FILES.keys()].join(" and ")}: this agent has no such setting`;
    context.addIssue({ code: "custom", message, path: ["subagents"] });
  }
  return given.map(({ model, tools, ...rest }) => ({ ...rest, model: model ?? undefined, tools: tools ?? undefined }));
}

/** The field that says the same, with every value. */
export function fromSubagents(subagents: readonly Subagent[] = []): Record<string, unknown>[] {
  return subagents.map(({ model = null, tools = null, ...rest }) => ({ ...rest, model, tools }));
}
