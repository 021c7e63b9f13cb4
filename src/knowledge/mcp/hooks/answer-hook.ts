import { spawn } from "node:child_process";
import { basename } from "node:path";
import type { ContextDeps } from "../../../client/context.ts";
import { EXIT } from "../../../client/failure.ts";
import { savedTarget } from "../../../client/saved-target.ts";
import { loadConfig } from "../../../config/load.ts";
import { programCommand } from "../../../core/distribution.ts";
import { messagesTo } from "../stdio/post-message.ts";
import { socketPathOf } from "../stdio/socket-path.ts";
import { hookInput, PATH_CHARS, textOf, type HookInput } from "./hook-input.ts";
import { recalledNotes } from "./recalled-notes.ts";

/**
 * Answers a hook of the memory plugin (`install-plugin`). Whatever goes wrong, it says nothing and ends with 0, in time: an
 * agent's prompt never waits for the memory. Everything here is loaded at each prompt, from a bundle of its own
 * (`roles/plugin-hook.ts`): it imports neither the command line nor the options of features.
 */

/** What a hook leaves running behind it: that is the command `plugin-hook keep-transcript` of the whole program. */
export const KEEP = "keep-transcript";
/** Since the process began. */
export const WITHIN_MS = 300;
/** Memories; entities that they are linked to may come with them. */
const LIMIT = 6;
const QUERY_CHARS = 2_000;
const DATABASE = "default";

export type HookDeps = Pick<ContextDeps, "env" | "stdin" | "stdout" | "clock">;

/** `withinMs`: since the process began. */
export async function answerHook(deps: HookDeps, event: string | undefined, withinMs: number): Promise<number> {
  endAfter(deps, withinMs - deps.clock.monotonicMs());
  try {
    if (event === "Stop" || event === "SessionEnd") keepBehind();
    else if (event === "SessionStart" || event === "UserPromptSubmit") await recall(deps, event, await hookInput(deps));
  } catch {
    // A hook that fails says nothing.
  }
  return EXIT.ok;
}

/** Nothing that hangs (a name that is looked up, input that does not end) holds the process up. */
export function endAfter({ clock }: Pick<HookDeps, "clock">, delayMs: number): void {
  clock.after(Math.max(0, delayMs || 0), () => process.exit(EXIT.ok), { background: true });
}

async function recall(deps: HookDeps, event: "SessionStart" | "UserPromptSubmit", input: HookInput): Promise<void> {
  const query = event === "SessionStart" ? questionAbout(input) : beginningOf(input["prompt"]);
  if (query === "") return;
  const additionalContext = recalledNotes(await recalled(deps, query));
  if (additionalContext === undefined) return;
  deps.stdout.write(`${JSON.stringify({ hookSpecificOutput: { hookEventName: event, additionalContext } })}\n`);
}

function beginningOf(prompt: unknown): string {
  return typeof prompt === "string" ? prompt.slice(0, QUERY_CHARS).toWellFormed().trim() : "";
}

/** There is no prompt yet: what was noted about the project. */
function questionAbout(input: HookInput): string {
  const project = basename(textOf(input["cwd"], PATH_CHARS));
  return project === "" ? "" : `${project} project: decisions, preferences, conventions, procedures`;
}

/** Asks once, opens no engine and renews no session: the process may end at any time. */
async function recalled({ env }: HookDeps, query: string): Promise<Readonly<Record<string, unknown>>> {
  const loaded = loadConfig({ env });
  const place = (await savedTarget(loaded)) ?? { socketPath: socketPathOf(loaded.config.home) };
  const messenger = messagesTo(place, DATABASE);
  const params = { name: "recall_memory", arguments: { query, limit: LIMIT } };
  let answer: Readonly<Record<string, unknown>> = {};
  try {
    await messenger.post(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }), {
      signal: new AbortController().signal,
      onMessage: async (message) => void (answer = membersOf(membersOf(message)["result"])),
    });
  } finally {
    messenger.close();
  }
  return answer["isError"] === true ? {} : membersOf(answer["structuredContent"]);
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** The agent waits for its hooks, so what takes longer goes on without this process, and reads the input in its place. */
function keepBehind(): void {
  const [command = "", ...args] = programCommand();
  const child = spawn(command, [...args, "plugin-hook", KEEP], {
    detached: true,
    stdio: ["inherit", "ignore", "ignore"],
  });
  child.on("error", () => undefined);
  child.unref();
}
