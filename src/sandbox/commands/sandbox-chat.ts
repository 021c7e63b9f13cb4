import { linesOf as linesWithin } from "../../core/lines.ts";
import { callTarget, fieldText, type ApiFlags, type Json } from "../../client/api.ts";
import { openClient, type Target } from "../../client/client.ts";
import type { CliContext } from "../../client/context.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { readInput } from "../../client/prompt.ts";
import { ChatTurn } from "./sandbox-chat-turn.ts";
import { sandboxPath, sessionPath } from "./sandbox-path.ts";

export type ChatFlags = ApiFlags & { session?: string };

type Chat = { id: string; message: string | undefined; flags: ChatFlags };

/** As the server has it for one text. */
const MOST_CHARS = 1_048_576;

/**
 * Talks to the agent of a sandbox: one message from the command or standard input, or line by line where that is a
 * terminal. What the agent says comes out here, what it does on standard error; with `--json` each event is a line.
 */
export async function runChat(context: CliContext, target: Target, { id, message, flags }: Chat): Promise<number> {
  const isTyped = message === undefined && context.deps.stdin.isTTY === true;
  const said = isTyped ? undefined : (message ?? (await readInput(context, "a message")));
  if (said?.trim() === "") throw new CliError("there is nothing to say", EXIT.usage);
  const sessionId = await openSession(context, target, { id, session: flags.session });
  const client = await openClient(target, `engine/${context.deps.version}`);
  const say = (text: string) =>
    new ChatTurn(context, { client, target, sessionId, json: flags.json === true }).run(messageOf(text));
  try {
    return await (said === undefined ? converse(context, say) : say(said));
  } finally {
    await client.close();
  }
}

async function openSession(
  context: CliContext,
  target: Target,
  { id, session }: { id: string; session: string | undefined },
): Promise<string> {
  if (session === undefined) {
    const made = await callTarget(context, target, "POST", `${sandboxPath(id)}/sessions`, {});
    const sessionId = fieldText(made["id"]);
    context.note(`session ${sessionId}`);
    return sessionId;
  }
  const found = await callTarget(context, target, "GET", `${sessionPath(session)}?limit=1`);
  if (found["sandbox_id"] !== id) throw new CliError("the session is one of another sandbox", EXIT.usage);
  return session;
}

/** Until the end of what is typed. */
async function converse(context: CliContext, say: (said: string) => Promise<number>): Promise<number> {
  const { stdin, stderr } = context.deps;
  let code: number = EXIT.ok;
  stderr.write("> ");
  const lines = linesWithin(stdin as AsyncIterable<Uint8Array>, { maxLineBytes: MOST_CHARS, tooLong });
  for await (const line of lines) {
    if (line.trim() !== "") code = await say(line);
    stderr.write("> ");
  }
  context.note("");
  return code;
}

function tooLong(): CliError {
  return new CliError(`a message has at most ${MOST_CHARS} characters`, EXIT.usage);
}

function messageOf(text: string): Json {
  return { role: "user", content: [{ type: "text", text }] };
}
