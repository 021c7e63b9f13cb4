import { spawn } from "node:child_process";
import { basename, isAbsolute } from "node:path";
import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { EXIT } from "../../../client/failure.ts";
import { readInput } from "../../../client/prompt.ts";
import { projectOf } from "../../filesync/folder.ts";
import { programCommand } from "../../../core/distribution.ts";
import { recalledNotes } from "../hooks/recalled-notes.ts";
import { lastExchanges } from "../hooks/transcript.ts";
import { callTool } from "./call-tool.ts";

/** What the plugin's hooks run, and what one of them leaves running behind it. */
const KEEP = "keep-transcript";
const FLAGS = { db: "default" };
/** Memories; entities that they are linked to may come with them. */
const LIMIT = 6;
const QUERY_CHARS = 2_000;
const PATH_CHARS = 4_096;
const SESSION_CHARS = 200;
/** One may have been interrupted, and another may be going on while this is read. */
const EXCHANGES = 3;
const KEEP_MS = 60_000;

type HookInput = Readonly<Record<string, unknown>>;

/**
 * Answers a hook of the memory plugin (`install-plugin`). Whatever goes wrong, it says nothing and ends with 0, in time: an
 * agent's prompt never waits for the memory.
 */
export const register: RegisterCommand = (program, context) => {
  program
    .command("plugin-hook", { hidden: true })
    .argument("[event]")
    .option("--within <ms>", "since the process began", "300")
    .allowExcessArguments()
    .allowUnknownOption()
    .action(context.action((event: string | undefined, flags: { within: string }) => answer(context, event, flags)));
};

async function answer(context: CliContext, event: string | undefined, { within }: { within: string }): Promise<number> {
  const { clock } = context.deps;
  const withinMs = event === KEEP ? KEEP_MS : Number(within) - clock.monotonicMs();
  // Nothing that hangs (a name that is looked up, input that does not end) holds the process up. `monotonicMs` begins with it.
  clock.after(Math.max(0, withinMs || 0), () => process.exit(EXIT.ok), { background: true });
  try {
    if (event === "Stop" || event === "SessionEnd") keepBehind();
    else if (event === "SessionStart" || event === "UserPromptSubmit")
      await recall(context, event, await inputOf(context));
    else if (event === KEEP) await keep(context, await inputOf(context));
  } catch {
    // A hook that fails says nothing.
  }
  return EXIT.ok;
}

async function inputOf(context: CliContext): Promise<HookInput> {
  const value: unknown = JSON.parse(await readInput(context, "a hook"));
  return typeof value === "object" && value !== null ? { ...value } : {};
}

async function recall(
  context: CliContext,
  event: "SessionStart" | "UserPromptSubmit",
  input: HookInput,
): Promise<void> {
  const query = event === "SessionStart" ? questionAbout(input) : beginningOf(input["prompt"]);
  if (query === "") return;
  const answered = await callTool(context, FLAGS, "recall_memory", { query, limit: LIMIT }, { isBrief: true });
  const additionalContext = recalledNotes(answered);
  if (additionalContext === undefined) return;
  await context.write(`${JSON.stringify({ hookSpecificOutput: { hookEventName: event, additionalContext } })}\n`);
}

function beginningOf(prompt: unknown): string {
  return typeof prompt === "string" ? prompt.slice(0, QUERY_CHARS).toWellFormed().trim() : "";
}

/** There is no prompt yet: what was noted about the project. */
function questionAbout(input: HookInput): string {
  const project = basename(textOf(input["cwd"], PATH_CHARS));
  return project === "" ? "" : `${project} project: decisions, preferences, conventions, procedures`;
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

async function keep(context: CliContext, input: HookInput): Promise<void> {
  const path = textOf(input["transcript_path"], PATH_CHARS);
  if (!isAbsolute(path) || !path.endsWith(".jsonl")) return;
  const folder = textOf(input["cwd"], PATH_CHARS);
  const session = textOf(input["session_id"], SESSION_CHARS);
  for (const messages of await lastExchanges(path, EXCHANGES)) {
    await callTool(context, FLAGS, "distill_transcript", {
      messages,
      session_id: session === "" ? undefined : session,
      // The realm of the project's memory files, which get what is saved there.
      realm: folder === "" ? undefined : `project:${projectOf(folder)}`,
    });
  }
}

/** Empty where it is no text, or a longer one. */
function textOf(value: unknown, maxChars: number): string {
  return typeof value === "string" && value.length <= maxChars ? value : "";
}
