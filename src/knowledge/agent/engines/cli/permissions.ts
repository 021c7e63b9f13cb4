import { z } from "zod";

/** What a program asks to be let do: only what is needed to tell whether it is a call of ours. */
const asked = z.object({
  toolCall: z.object({
    title: z.string().nullish(),
    kind: z.string().nullish(),
    name: z.string().nullish(),
    _meta: z.looseObject({ claudeCode: z.looseObject({ toolName: z.string().optional() }).optional() }).nullish(),
  }),
  options: z.array(z.object({ optionId: z.string(), kind: z.string() })),
});

/** Kinds that a call of a tool of ours may have; one that edits, deletes, runs or fetches something is none. */
const HARMLESS = new Set(["other", "read", "search", "think"]);

/** As programs call a tool of the MCP server `engine`. */
const PREFIX = /^(?:mcp__engine__|mcp_engine_|engine(?:__|[./:_]))/;

/**
 * The answer to a request for permission. Let through, each time by itself, is what is named as one of our tools, whose
 * calls the run counts and bounds; anything else is refused. A program that lies about a name gains nothing here: it is
 * what it can do without asking that its operator must trust it with.
 */
export function permissionFor(params: unknown, tools: ReadonlySet<string>): object {
  const { data } = asked.safeParse(params);
  if (data === undefined) return CANCELLED;
  const { toolCall, options } = data;
  const optionOf = (kind: string) => options.find((option) => option.kind === kind)?.optionId;
  const optionId = isOurs(toolCall, tools)
    ? optionOf("allow_once")
    : (optionOf("reject_once") ?? optionOf("reject_always"));
  return optionId === undefined ? CANCELLED : { outcome: { outcome: "selected", optionId } };
}

const CANCELLED = { outcome: { outcome: "cancelled" } };

type ToolCall = z.output<typeof asked>["toolCall"];

/** The most exact name counts: a title may quote another tool's. */
function isOurs({ title, kind, name, _meta }: ToolCall, tools: ReadonlySet<string>): boolean {
  if (!HARMLESS.has(kind ?? "other")) return false;
  const called = _meta?.claudeCode?.toolName ?? name ?? title ?? "";
  return tools.has(called) || (PREFIX.test(called) && tools.has(called.replace(PREFIX, "")));
}
