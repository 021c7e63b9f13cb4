import type { RequestPermissionRequest, RequestPermissionResponse } from "@agentclientprotocol/sdk";
import { mayUse, restrictsTools, type AgentRules } from "../../contract/agents/tool-rules.ts";

/**
 * The answer to an agent that asks. It is let do the one thing that it asks for; for good only where the agent offers
 * nothing else and nothing is restricted. Where it offers no fitting answer, the question is cancelled.
 */
export function answerTo(
  rules: AgentRules,
  { options }: Pick<RequestPermissionRequest, "options">,
  names: readonly string[],
): RequestPermissionResponse {
  const optionOf = (kind: string) => options.find((option) => option.kind === kind)?.optionId;
  const optionId = mayUse(rules, names)
    ? (optionOf("allow_once") ?? (restrictsTools(rules) ? undefined : optionOf("allow_always")))
    : (optionOf("reject_once") ?? optionOf("reject_always"));
  return optionId === undefined ? CANCELLED : { outcome: { outcome: "selected", optionId } };
}

/** Of a turn that is to end, or that there is not. */
export const CANCELLED: RequestPermissionResponse = { outcome: { outcome: "cancelled" } };
