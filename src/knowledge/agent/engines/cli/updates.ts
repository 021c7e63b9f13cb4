import { z } from "zod";
import { AgentFault } from "./agent-fault.ts";

const update = z.object({ update: z.looseObject({ sessionUpdate: z.string() }) });
const chunk = z.object({ content: z.looseObject({ type: z.string(), text: z.string().optional() }) });

const KINDS: ReadonlyMap<string, "text" | "thinking"> = new Map([
  ["agent_message_chunk", "text"],
  ["agent_thought_chunk", "thinking"],
]);

/**
 * What a program says, of an update of its session. Calls of tools, plans, modes and costs say nothing: what our tools did
 * is told by the run, and the program has no others. Throws `AgentFault` for what is no update.
 */
export function saidIn(params: unknown): { kind: "text" | "thinking"; text: string } | undefined {
  try {
    const { update: told } = update.parse(params);
    const kind = KINDS.get(told.sessionUpdate);
    if (kind === undefined) return undefined;
    const { type, text } = chunk.parse(told).content;
    return type === "text" && text !== undefined ? { kind, text } : undefined;
  } catch (error) {
    throw new AgentFault("it said an update that is none", { cause: error });
  }
}
