import type { Log } from "../../../../core/log.ts";
import { namesPrivatePath } from "../../../../core/private-paths.ts";
import type { EngineProblem } from "../engine.ts";

/** Why a program cannot go on with a prompt, in words for whoever asked. */
export class AgentFault extends Error {
  readonly code: "engine_failed" | "engine_timeout";
  readonly isOfContent: boolean;

  constructor(
    message: string,
    {
      code = "engine_failed",
      isOfContent = false,
      cause,
    }: ErrorOptions & Partial<Pick<AgentFault, "code" | "isOfContent">> = {},
  ) {
    super(message, { cause });
    this.name = "AgentFault";
    this.code = code;
    this.isOfContent = isOfContent;
  }
}

const MESSAGE_CHARS = 500;
const HIDDEN = "••••";
/** A shorter value of the environment is no secret, and may be a part of any word. */
const SECRET_CHARS = 8;

/**
 * What an error of a prompt means. A program that failed once is not asked the same again. Its last words are for the log
 * alone where they name a place of this server's.
 */
export function problemOfAgent(
  error: unknown,
  { secrets, log }: { secrets: readonly string[]; log: Log },
): EngineProblem {
  const fault = faultIn(error);
  if (fault === undefined) return { code: "engine_failed", message: "the agent's program failed", retryable: false };
  const { code, isOfContent } = fault;
  let message = fault.message.replaceAll(/\p{C}+/gu, " ").trim();
  for (const secret of secrets) if (secret.length >= SECRET_CHARS) message = message.replaceAll(secret, HIDDEN);
  if (message.length > MESSAGE_CHARS) message = `${message.slice(0, MESSAGE_CHARS - 1).toWellFormed()}…`;
  if (namesPrivatePath(message)) {
    log.warn({ reason: message }, "the agent's program failed");
    message = "the agent's program failed; the log of the server says more";
  }
  return { code, message, retryable: false, isOfContent };
}

const MAX_CAUSES = 8;

function faultIn(error: unknown): AgentFault | undefined {
  let next = error;
  for (let depth = 0; depth < MAX_CAUSES && next instanceof Error; depth++) {
    if (next instanceof AgentFault) return next;
    next = next.cause;
  }
  return undefined;
}
