import { isAbsolute } from "node:path";
import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { EXIT } from "../../../client/failure.ts";
import { projectOf } from "../../filesync/folder.ts";
import { answerHook, endAfter, KEEP, WITHIN_MS } from "../hooks/answer-hook.ts";
import { hookInput, PATH_CHARS, textOf, type HookInput } from "../hooks/hook-input.ts";
import { lastExchanges } from "../hooks/transcript.ts";
import { callTool } from "./call-tool.ts";

const FLAGS = { db: "default" };
const SESSION_CHARS = 200;
/** One may have been interrupted, and another may be going on while this is read. */
const EXCHANGES = 3;
const KEEP_MS = 60_000;

/**
 * What the hooks of the memory plugin run (`install-plugin`). `bin/engine.js` starts `roles/plugin-hook.ts` in its place,
 * which is there sooner, for all that the agent waits for; what is left behind needs the whole program.
 */
export const register: RegisterCommand = (program, context) => {
  program
    .command("plugin-hook", { hidden: true })
    .argument("[event]")
    .option("--within <ms>", "since the process began", String(WITHIN_MS))
    .allowExcessArguments()
    .allowUnknownOption()
    .action(
      context.action((event: string | undefined, { within }: { within: string }) =>
        event === KEEP ? keepTranscript(context) : answerHook(context.deps, event, Number(within)),
      ),
    );
};

async function keepTranscript(context: CliContext): Promise<number> {
  endAfter(context.deps, KEEP_MS);
  try {
    await keep(context, await hookInput(context.deps));
  } catch {
    // Nobody waits for it, and nobody reads what it says.
  }
  return EXIT.ok;
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
