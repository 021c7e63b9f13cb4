import { z } from "zod";
import { AgentFault } from "./fault.ts";

/**
 * What of the updates of ACP becomes events. Thoughts, plans, commands, modes and costs do not: the specification has no
 * event for them. An update of a kind that is not known is passed over: agents may be newer than this.
 */

const resource = z.object({ uri: z.string(), text: z.string().optional() });
const block = z.union([
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("image"), mimeType: z.string(), data: z.base64() }),
  z.object({ type: z.literal("resource_link"), uri: z.string() }),
  z.object({ type: z.literal("resource"), resource }),
  z.object({ type: z.literal("audio") }),
]);
export type UpdateBlock = z.output<typeof block>;

const toolContent = z.union([
  z.object({ type: z.literal("content"), content: block }),
  z.object({ type: z.literal("diff"), path: z.string(), oldText: z.string().nullish(), newText: z.string() }),
  z.object({ type: z.literal("terminal"), terminalId: z.string() }),
]);
export type ToolContent = z.output<typeof toolContent>;

const MAX_ID_CHARS = 1_000;

const tool = z.object({
  toolCallId: z.string().max(MAX_ID_CHARS),
  title: z.string().nullish(),
  name: z.string().nullish(),
  kind: z.string().nullish(),
  status: z.string().nullish(),
  content: z.array(toolContent).nullish(),
  rawInput: z.unknown().optional(),
  rawOutput: z.unknown().optional(),
  // Adapters that are older than `name` have it here.
  _meta: z.looseObject({ claudeCode: z.looseObject({ toolName: z.string().optional() }).optional() }).nullish(),
});
export type ToolUpdate = z.output<typeof tool>;

const kind = z.looseObject({ sessionUpdate: z.string() });
const chunk = z.object({ content: block, messageId: z.string().nullish() });
const notification = z.object({ sessionId: z.string(), update: kind });

export type Update =
  | { type: "text"; text: string; messageId: string | undefined }
  | { type: "block"; block: UpdateBlock; messageId: string | undefined }
  | { type: "tool"; tool: ToolUpdate };

/** An update for a session; undefined where nothing follows from it. Throws `AgentFault` for what is none. */
export function readUpdate(params: unknown): { sessionId: string; update: Update | undefined } {
  try {
    const { sessionId, update } = notification.parse(params);
    return { sessionId, update: updateOf(update) };
  } catch (error) {
    throw new AgentFault("it said an update that is none", { cause: error });
  }
}

function updateOf(update: z.output<typeof kind>): Update | undefined {
  switch (update.sessionUpdate) {
    case "agent_message_chunk": {
      const { content, messageId: given } = chunk.parse(update);
      const messageId = given ?? undefined;
      if (content.type === "text") return { type: "text", text: content.text, messageId };
      return { type: "block", block: content, messageId };
    }
    case "tool_call":
    case "tool_call_update":
      return { type: "tool", tool: tool.parse(update) };
    default:
      return undefined;
  }
}

/** By what the tool is called that an agent asks about. */
export function askedNames(toolCall: unknown): { id: string; names: string[] } | undefined {
  const { data } = tool.safeParse(toolCall);
  return data === undefined ? undefined : { id: data.toolCallId, names: namesOf(data) };
}

/** By what a tool is called: its kind, its title and its name, as far as the agent says them. */
export function namesOf({ kind, title, name, _meta }: Pick<ToolUpdate, "kind" | "title" | "name" | "_meta">): string[] {
  return [kind, title, name, _meta?.claudeCode?.toolName].filter((one) => typeof one === "string");
}
