import { Option, type Command } from "commander";
import {
  callTarget,
  deleteAt,
  fieldCell,
  fieldText,
  listAllFrom,
  targetOf,
  withApiFlags,
  type ApiFlags,
  type Json,
} from "../../client/api.ts";
import type { Target } from "../../client/client.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { collect, type RegisterCommand } from "../../client/command.ts";
import { runChat, type ChatFlags } from "./sandbox-chat.ts";
import { copy } from "./sandbox-copy.ts";
import { runExec, type ExecFlags } from "./sandbox-exec.ts";
import { printLogs } from "./sandbox-logs.ts";
import { SANDBOXES, sandboxPath } from "./sandbox-path.ts";
import { requestFrom, waitUntilUp, type CreateFlags } from "./sandbox-create.ts";
import { runShell } from "./sandbox-shell.ts";
import { registerVolumes } from "./sandbox-volumes.ts";
import { SANDBOX_STATES } from "../contract/states.ts";
import { renderTable } from "../../client/table.ts";
import { visible } from "../../client/text.ts";

const EXAMPLE_ID = "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11";

export const register: RegisterCommand = (program, context) => {
  const group = program.command("sandbox").description("Make isolated machines for coding agents, and work in them.");
  // What follows the command of `exec` is the command's.
  group.enablePositionalOptions();
  registerCreate(group, context);
  registerList(group, context);
  registerShow(group, context);
  registerExec(group, context);
  registerShell(group, context);
  registerChat(group, context);
  registerCopy(group, context);
  registerLogs(group, context);
  registerStats(group, context);
  for (const [name, does] of ACTIONS) registerAction(group, context, { name, does });
  registerRemove(group, context);
  registerVolumes(group, context);
};

function registerCreate(group: Command, context: CliContext): void {
  const command = group
    .command("create")
    .description("Make a sandbox, and wait until it runs; prints its id.")
    .option("--provider <provider>", "coding agent that it is for", "claude-code")
    .option("--name <name>", "what it is called")
    .option("--image <image>", "what it is made from; the provider's default image otherwise")
    .option("--cpus <count>", "most CPUs")
    .option("--memory <mb>", "most memory, in MiB")
    .option("--disk <mb>", "size of its disk, in MiB")
    .option("--processes <count>", "most processes and threads")
    .option("--persistent", "keep its disk when it stops")
    .option("--timeout <seconds>", "stop it after so long")
    .option("--env <name=value>", "environment variable; may be repeated", collect)
    .option("--label <name=value>", "label; may be repeated", collect)
    .option("--allow-host <host>", "host that it may reach: a name, or *.name; may be repeated", collect)
    .option(
      "--credential <id[:variable][@host]>",
      "credential of the store that is added to its requests, outside of it; may be repeated",
      collect,
    )
    .option("--volume <name:path[:ro]>", "named storage, and where it is to be; may be repeated", collect)
    .option("--port <port>", "TCP port that is answered from outside; may be repeated", collect)
    .option("--script <file>", "script that is run when it is made; may be repeated", collect)
    .option("--detach", "do not wait until it runs");
  withExamples(withApiFlags(command), [
    "engine sandbox create",
    "engine sandbox create --name dev --persistent --memory 4096 --allow-host github.com --allow-host '*.npmjs.org'",
  ]).action(context.action((flags: CreateFlags) => create(context, flags)));
}

async function create(context: CliContext, flags: CreateFlags): Promise<number> {
  const body = await requestFrom(flags);
  const target = await targetOf(context, flags);
  const made = await callTarget(context, target, "POST", SANDBOXES, body);
  const id = fieldText(made["id"]);
  const shown = flags.detach === true ? made : await waitUntilUp(context, target, id);
  if (flags.json) await context.writeJson(shown);
  else await context.writeLine(visible(id));
  return EXIT.ok;
}

type ListFlags = ApiFlags & { state?: string; provider?: string; label?: string[] };

function registerList(group: Command, context: CliContext): void {
  const command = group
    .command("list")
    .alias("ls")
    .description("List sandboxes, the newest first.")
    .addOption(new Option("--state <state>", "only those in this state").choices(SANDBOX_STATES))
    .option("--provider <provider>", "only those for this coding agent")
    .option("--label <name=value>", "only those with this label; may be repeated", collect);
  withExamples(withApiFlags(command), ["engine sandbox list", "engine sandbox list --state running --json"]).action(
    context.action((flags: ListFlags) => list(context, flags)),
  );
}

async function list(context: CliContext, flags: ListFlags): Promise<number> {
  const { state, provider, label } = flags;
  const filter = { ...(state && { state }), ...(provider && { provider }), ...(label && { labels: label.join(",") }) };
  const found = await listAllFrom(context, await targetOf(context, flags), SANDBOXES, { filter, page: PAGE });
  const header = ["ID", "NAME", "STATE", "PERSISTENCE", "PROVIDER", "CREATED"];
  if (flags.json) await context.writeJson(found);
  else if (found.length === 0) await context.writeLine("there are no sandboxes");
  else await context.writeLine(renderTable(header, found.map(row), context.style));
  return EXIT.ok;
}

const PAGE = 1_000;

function row({ id, name, state, persistence, agent_provider: provider, created_at: created }: Json) {
  return [id, name, state, persistence, provider, created].map(fieldCell);
}

function registerShow(group: Command, context: CliContext): void {
  const command = group.command("show").description("Show one sandbox.").argument("<id>", "id of the sandbox");
  withExamples(withApiFlags(command), [`engine sandbox show ${EXAMPLE_ID}`]).action(
    context.action(async (id: string, flags: ApiFlags) => {
      await print(context, flags, await callTarget(context, await targetOf(context, flags), "GET", sandboxPath(id)));
      return EXIT.ok;
    }),
  );
}

function registerStats(group: Command, context: CliContext): void {
  const command = group.command("stats").description("Show what a sandbox uses.").argument("<id>", "id of the sandbox");
  withExamples(withApiFlags(command), [`engine sandbox stats ${EXAMPLE_ID}`]).action(
    context.action(async (id: string, flags: ApiFlags) => {
      const path = `${sandboxPath(id)}/stats`;
      await print(context, flags, await callTarget(context, await targetOf(context, flags), "GET", path));
      return EXIT.ok;
    }),
  );
}

const FIELD_WIDTH = 20;

async function print(context: CliContext, flags: ApiFlags, record: Json): Promise<void> {
  if (flags.json) return context.writeJson(record);
  for (const [name, value] of Object.entries(record)) {
    await context.writeLine(visible(`${name.replaceAll("_", " ").padEnd(FIELD_WIDTH)}${fieldText(value)}`));
  }
}

const ACTIONS = [
  ["start", "Start a sandbox that is stopped."],
  ["stop", "Stop a sandbox; the disk of a persistent one stays."],
  ["pause", "Have everything in a sandbox stand still."],
  ["resume", "Have a paused sandbox go on."],
] as const;

function registerAction(group: Command, context: CliContext, { name, does }: { name: string; does: string }): void {
  const command = group.command(name).description(does).argument("<id>", "id of the sandbox");
  withExamples(withApiFlags(command), [`engine sandbox ${name} ${EXAMPLE_ID}`]).action(
    context.action(async (id: string, flags: ApiFlags) => {
      const target = await targetOf(context, flags);
      const sandbox = await callTarget(context, target, "POST", `${sandboxPath(id)}/${name}`);
      if (flags.json) await context.writeJson(sandbox);
      else await context.writeLine(visible(`${id} is ${fieldText(sandbox["state"])}`));
      return EXIT.ok;
    }),
  );
}

function registerRemove(group: Command, context: CliContext): void {
  const command = group
    .command("rm")
    .description("Delete sandboxes with all that is in them.")
    .argument("<id...>", "ids of sandboxes");
  withExamples(withApiFlags(command), [`engine sandbox rm ${EXAMPLE_ID}`]).action(
    context.action((ids: string[], flags: ApiFlags) => remove(context, ids, flags)),
  );
}

async function remove(context: CliContext, ids: readonly string[], flags: ApiFlags): Promise<number> {
  const target = await targetOf(context, flags);
  for (const id of ids) {
    await deleteAt(context, target, sandboxPath(id));
    if (!flags.json) await context.writeLine(visible(`deleted ${id}`));
  }
  if (flags.json) await context.writeJson({ deleted: ids });
  return EXIT.ok;
}

type LogFlags = ApiFlags & { follow?: true; tail: string };

function registerLogs(group: Command, context: CliContext): void {
  const command = group
    .command("logs")
    .description("Print what a sandbox writes: its console, provisioning scripts, and commands run with --log.")
    .argument("<id>", "id of the sandbox")
    .option("-f, --follow", "go on with lines as they come")
    .option("--tail <count>", "lines of the past, at most", "100");
  withExamples(withApiFlags(command), [`engine sandbox logs ${EXAMPLE_ID} --follow`]).action(
    context.action(async (id: string, flags: LogFlags) => {
      const target = await targetOf(context, flags);
      return await printLogs(context, target, {
        id,
        tail: flags.tail,
        follow: flags.follow === true,
        json: flags.json,
      });
    }),
  );
}

function registerExec(group: Command, context: CliContext): void {
  const command = group
    .command("exec")
    .description("Run a command in a sandbox; its output and its exit code are those of this command.")
    .argument("<id>", "id of the sandbox")
    .argument("<command...>", "program and arguments, taken as they are; -- may stand before them")
    .option("-C, --cwd <folder>", "where it is run")
    .option("--env <name=value>", "environment variable; may be repeated", collect)
    .option("--timeout <seconds>", "kill it after so long")
    .option("-i, --stdin", "give it what comes on standard input")
    .option("--log", "what it writes also goes to the log of the sandbox")
    .addOption(new Option("--user <user>", "who runs it").choices(["agent", "root"]).default("agent"))
    .passThroughOptions();
  withExamples(withApiFlags(command), [
    `engine sandbox exec ${EXAMPLE_ID} -- ls -l`,
    `echo hello | engine sandbox exec -i ${EXAMPLE_ID} -- wc -c`,
  ]).action(
    context.action(async (id: string, argv: string[], flags: ExecFlags) => {
      // What follows the id is taken as it is, also two dashes before the command.
      const command = argv[0] === "--" ? argv.slice(1) : argv;
      if (command.length === 0)
        throw new CliError("which command is to be run? see `engine sandbox exec --help`", EXIT.usage);
      return await runExec(context, await targetOf(context, flags), { id, argv: command, flags });
    }),
  );
}

function registerShell(group: Command, context: CliContext): void {
  const command = group
    .command("shell")
    .description("Open a terminal in a sandbox; the exit code is that of its shell.")
    .argument("<id>", "id of the sandbox");
  withExamples(withApiFlags(command), [`engine sandbox shell ${EXAMPLE_ID}`]).action(
    context.action(async (id: string, flags: ApiFlags) => runShell(context, await targetOf(context, flags), id)),
  );
}

function registerChat(group: Command, context: CliContext): void {
  const command = group
    .command("chat")
    .description("Talk to the agent of a sandbox; its answer is printed as it comes, and Ctrl-C interrupts it.")
    .argument("<id>", "id of the sandbox")
    .argument("[message]", "what to say; standard input otherwise, on a terminal line by line")
    .option("--session <session>", "go on with this session; a new one otherwise");
  withExamples(withApiFlags(command), [
    `engine sandbox chat ${EXAMPLE_ID} "What is in this folder?"`,
    `engine sandbox chat ${EXAMPLE_ID} --session 01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a12 < task.md`,
  ]).action(
    context.action(async (id: string, message: string | undefined, flags: ChatFlags) =>
      runChat(context, await targetOf(context, flags), { id, message, flags }),
    ),
  );
}

function registerCopy(group: Command, context: CliContext): void {
  const command = group
    .command("cp")
    .description(
      "Copy a file into a sandbox, or out of it; - is standard input or output, and a folder takes the file's name.",
    )
    .argument("<from>", "file, or <id>:<path>")
    .argument("<to>", "file, folder/, <id>:<path> or <id>:<folder>/");
  withExamples(withApiFlags(command), [
    `engine sandbox cp data.csv ${EXAMPLE_ID}:/home/agent/data.csv`,
    `engine sandbox cp ${EXAMPLE_ID}:/home/agent/result.json -`,
  ]).action(
    context.action(async (from: string, to: string, flags: ApiFlags) => {
      const target: Target = await targetOf(context, flags);
      if (flags.json) throw new CliError("a copy has no answer to print as JSON", EXIT.usage);
      return await copy(context, target, { from, to });
    }),
  );
}
