import { readFile, stat } from "node:fs/promises";
import { countText, fieldText, listIn, type Json } from "../../../client/api.ts";
import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { withExamples } from "../../../client/examples.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { readInput } from "../../../client/prompt.ts";
import { visible } from "../../../client/text.ts";
import { valuesOf } from "../../../config/option.ts";
import { messageOf } from "../../../core/errors.ts";
import { MCP_LIMITS } from "../limits.ts";
import { MCP_OPTIONS } from "../options.ts";
import { callTool, withToolFlags, type ToolFlags } from "./call-tool.ts";

type Flags = ToolFlags & { session?: string; realm?: string };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("distill")
    .description(
      'Keep a transcript in the table `firehose`, and save what its user states outright ("remember …", "we decided …"). ' +
        "Lines may begin with `User:` and `Assistant:`. One that comes again changes nothing.",
    )
    .argument("[file]", "text of at most 1 MiB; standard input unless given")
    .option("--session <id>", "the conversation that it is of")
    .option("--realm <realm>", "where the memories belong; `default` by default");
  withExamples(withToolFlags(command), [
    "engine distill --session 42 < transcript.txt",
    "engine distill notes.txt --realm project:web",
  ]).action(context.action((file: string | undefined, flags: Flags) => distill(context, file, flags)));
};

async function distill(context: CliContext, file: string | undefined, flags: Flags): Promise<number> {
  const transcript = await (file === undefined ? readInput(context, "a transcript") : textIn(file));
  if (transcript.trim() === "") throw new CliError("the transcript is empty", EXIT.usage);
  const answer = await callTool(context, flags, "distill_transcript", {
    transcript,
    session_id: flags.session,
    realm: flags.realm,
  });
  const problem = answer["extraction_error"];
  if (problem !== undefined) context.note(visible(`the engine of the agent found no more: ${fieldText(problem)}`));
  const { config } = await context.loadConfigQuietly({});
  if (valuesOf(MCP_OPTIONS, config).distillVerbose) noteSources(context, answer, flags.session);
  if (flags.json === true) await context.writeJson(answer);
  else await writeSaved(context, answer);
  return EXIT.ok;
}

/** Regular files alone: a device or a pipe has no end that is known before it is read. */
async function textIn(file: string): Promise<string> {
  const what = JSON.stringify(file);
  try {
    const found = await stat(file);
    if (!found.isFile()) throw new CliError(`${what} is no regular file; give it on standard input`, EXIT.usage);
    if (found.size > MCP_LIMITS.transcriptChars) throw new CliError(`${what} is longer than 1 MiB`, EXIT.usage);
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(`cannot read ${what}: ${messageOf(error)}`, EXIT.usage, { cause: error });
  }
}

async function writeSaved(context: CliContext, answer: Json): Promise<void> {
  const saved = listIn(answer, "saved");
  const kept = answer["replayed"] === true ? "was kept before" : "kept";
  const turns = countText(answer["firehose_rows"], "turn");
  await context.writeLine(`${turns} ${kept}, ${countText(saved.length, "statement")} saved`);
  for (const { memory_type: type, outcome, content } of saved) {
    await context.writeLine(visible(`  ${fieldText(type)} (${fieldText(outcome)}): ${fieldText(content)}`));
  }
}

/** What `ENGINE_DISTILL_VERBOSE` says of each statement. */
function noteSources(context: CliContext, answer: Json, session: string | undefined): void {
  const of = session === undefined ? "the transcript" : `session ${session}`;
  for (const { id, outcome, turn, memory_type: type, content } of listIn(answer, "saved")) {
    const what = `${fieldText(type)} ${fieldText(id)} ${fieldText(outcome)}`;
    context.note(visible(`${what} from turn ${fieldText(turn)} of ${of}: ${fieldText(content)}`));
  }
}
