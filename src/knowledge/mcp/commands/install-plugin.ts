import { readFile, realpath } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { withExamples } from "../../../client/examples.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { readSavedClient } from "../../../client/saved-client.ts";
import { visible } from "../../../client/text.ts";
import { packageFolder } from "../../../core/distribution.ts";
import { messageOf, systemCodeOf } from "../../../core/errors.ts";
import { agentHome } from "../install/agent-home.ts";
import { planFolder, writeFolder } from "../install/owned-folder.ts";
import { PLUGIN_NAME, pluginFiles, type PluginOptions } from "../install/plugin-files.ts";
import { isOnPath } from "../setup/on-path.ts";

type Flags = { target?: string; force?: true };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("install-plugin")
    .description(
      "Write the memory plugin of a terminal coding agent: hooks, MCP server, slash commands and a skill. Its server is the " +
        "one saved by `engine connect`, with its token; without one it is `engine mcp`.",
    )
    .option("--target <dir>", `folder of the plugin; ~/.claude/skills/${PLUGIN_NAME} by default, which the agent loads`)
    .option("--force", "write into a folder with files of others, and replace those of the same names");
  withExamples(command, ["engine install-plugin", "engine install-plugin --target ./engine-memory"]).action(
    context.action((flags: Flags) => installPlugin(context, flags)),
  );
};

async function installPlugin(context: CliContext, { target, force }: Flags): Promise<number> {
  if (target?.trim() === "") throw new CliError("--target names no folder", EXIT.usage);
  const folder = await followed(
    target === undefined ? join(await agentHome(context), "skills", PLUGIN_NAME) : resolve(target),
  );
  const server = await savedServer(context);
  const licence = await readFile(join(packageFolder(), "LICENSE"), "utf8");
  const plan = await planFolder(folder, pluginFiles({ version: context.deps.version, licence, server }), {
    force: force === true,
    isOursAlone: true,
    advice: "choose another --target, or replace its files with --force",
  });
  const isNew = await writeFolder(plan, context.deps.random);
  const shown = visible(folder);
  const how =
    server === undefined ? "`engine mcp`" : `${server.url}${server.token === undefined ? "" : ", with its token"}`;
  await context.writeLine(`${shown} ${isNew ? "has the plugin" : "has the plugin already"}; its server is ${how}`);
  const loads =
    target === undefined ? "the agent loads it when it starts next" : `try it with \`claude --plugin-dir ${shown}\``;
  await context.writeLine(loads);
  if (!isOnPath(context)) context.warn("engine is not on the PATH, where the plugin's hooks will look for it");
  return EXIT.ok;
}

/** What `engine connect` saved. A token from the environment stays in the environment. */
async function savedServer(context: CliContext): Promise<PluginOptions["server"]> {
  const { config } = await context.loadConfig({});
  const saved = await readSavedClient(config.home);
  if (saved === undefined) return undefined;
  const { url, token, session } = saved;
  if (session !== undefined) {
    const next =
      "make one with `engine token create NAME --role write`, then save it with `engine connect URL --token TOKEN`";
    throw new CliError(`the token that \`engine login\` saved ends too soon for a plugin; ${next}`, EXIT.usage);
  }
  if (`${url}${token ?? ""}`.includes("${")) {
    throw new CliError("the saved server has ${ in its address or token, which the agent would take for a variable");
  }
  return { url, ...(token !== undefined && { token }) };
}

/** Where the links of the user's own lead; below the folder none is followed. */
async function followed(folder: string): Promise<string> {
  try {
    return await realpath(folder);
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return folder;
    throw new CliError(`cannot read ${visible(folder)}: ${visible(messageOf(error))}`, EXIT.failed, { cause: error });
  }
}
