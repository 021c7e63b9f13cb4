import { homedir } from "node:os";
import { join } from "node:path";
import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { withExamples } from "../../../client/examples.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { textCell, renderTable } from "../../../client/table.ts";
import { harmless, visible } from "../../../client/text.ts";
import { fresh, readAgentFile, writeAgentFile } from "../setup/agent-file.ts";
import { isOnPath } from "../setup/on-path.ts";
import { agentNamed, AGENTS, OWN_ENTRY, type Agent } from "../setup/agents.ts";

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("setup")
    .description(
      "Give a coding agent the engine's tools: adds `engine mcp` to the agent's MCP configuration, whose other entries stay. " +
        "Of an agent that it does not know, what to configure is printed.",
    )
    .argument("<agent>", "`list` prints those that are known")
    .option("--print", "print what would be written, and write nothing");
  withExamples(command, ["engine setup list", "engine setup claude-code", "engine setup cursor --print"]).action(
    context.action((key: string, flags: { print?: true }) => setUp(context, key, flags.print === true)),
  );
};

async function setUp(context: CliContext, key: string, isPreview: boolean): Promise<number> {
  if (key === "list") return await list(context);
  const agent = agentNamed(key);
  if (agent === undefined) return await printSnippet(context, key);
  const wanted = await readAgentFile(baseOf(agent), agent.path);
  const file = visible(wanted.file);
  if (isPreview) {
    context.note(wanted.change === "none" ? `${file} stays as it is` : `${file} would be`);
    await context.write(harmless(wanted.text));
    return EXIT.ok;
  }
  if (wanted.change !== "none") await writeAgentFile(wanted, context.deps.random);
  const how = { none: "has the engine already", added: "has the engine now", replaced: "has the engine anew" };
  await context.writeLine(`${file} ${how[wanted.change]}; ${agent.title} reads it when it starts`);
  if (!isOnPath(context))
    context.warn(`${OWN_ENTRY.command} is not on the PATH, where ${agent.title} will look for it`);
  return EXIT.ok;
}

async function list(context: CliContext): Promise<number> {
  const rows = AGENTS.map(({ key, title, base, path }) =>
    [key, title, join(base === "home" ? "~" : ".", ...path)].map(textCell),
  );
  await context.writeLine(renderTable(["AGENT", "NAME", "FILE"], rows, context.style));
  return EXIT.ok;
}

async function printSnippet(context: CliContext, key: string): Promise<number> {
  context.note(visible(`the agent ${key} is not known; most that speak MCP over stdio take this:`));
  await context.writeJson(fresh());
  return EXIT.ok;
}

function baseOf({ base, title }: Agent): string {
  if (base === "project") return process.cwd();
  const home = homedir();
  if (home !== "") return home;
  throw new CliError(`the user of this process has no home folder, where ${title} keeps its configuration`, EXIT.usage);
}
