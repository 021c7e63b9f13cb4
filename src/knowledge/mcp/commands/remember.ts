import { Option } from "commander";
import { fieldText } from "../../../client/api.ts";
import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { withExamples } from "../../../client/examples.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { visible } from "../../../client/text.ts";
import { MEMORY_TYPES } from "../../memory/model.ts";
import { callTool, withToolFlags, type ToolFlags } from "./call-tool.ts";

type Flags = ToolFlags & { type: string; realm?: string; importance?: string; topicKey?: string };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("remember")
    .description("Save a memory. One that says the same already is confirmed.")
    .argument("<content>", "one statement that is understood on its own")
    .addOption(new Option("--type <type>", "what it is").choices(MEMORY_TYPES).default("fact"))
    .option("--realm <realm>", "where it belongs: `default` by default, `project:<folder>`, `user:<name>`")
    .option("--importance <number>", "from 0 to 1; 0.5 by default")
    .option("--topic-key <key>", "a stable key: what was saved with it before is updated");
  withExamples(withToolFlags(command), [
    'engine remember "The gateway listens on port 8080" --topic-key gateway-port',
    'engine remember "We deploy on Tuesdays only" --type decision --realm project:web --importance 0.8',
  ]).action(context.action((content: string, flags: Flags) => remember(context, content, flags)));
};

async function remember(context: CliContext, content: string, flags: Flags): Promise<number> {
  const saved = await callTool(context, flags, "save_memory", {
    content,
    memory_type: flags.type,
    realm: flags.realm,
    importance: importanceOf(flags.importance),
    topic_key: flags.topicKey,
  });
  if (flags.json === true) await context.writeJson(saved);
  else await context.writeLine(visible(`memory ${fieldText(saved["id"])} ${fieldText(saved["outcome"])}`));
  return EXIT.ok;
}

function importanceOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const importance = /^(\d+(\.\d*)?|\.\d+)$/.test(text) ? Number(text) : -1;
  if (importance < 0 || importance > 1) throw new CliError("--importance is a number from 0 to 1", EXIT.usage);
  return importance;
}
