import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { messageOf } from "../../core/errors.ts";
import {
  callTarget,
  deleteAt,
  fieldCell,
  fieldText,
  listAllFrom,
  sendText,
  targetOf,
  withApiFlags,
  type ApiFlags,
  type Json,
} from "../../client/api.ts";
import type { CliContext } from "../../client/context.ts";
import { withExamples } from "../../client/examples.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { collect, type RegisterCommand } from "../../client/command.ts";
import { readInput } from "../../client/prompt.ts";
import { pairsIn } from "./sandbox-create.ts";
import { followProvisioning } from "./sandbox-progress.ts";
import { renderTable } from "../../client/table.ts";
import { visible } from "../../client/text.ts";

const WORKSPACES = "/api/v1/workspaces";
const EXAMPLE_ID = "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a12";

export const register: RegisterCommand = (program, context) => {
  const group = program.command("workspace").description("Keep definitions of sandboxes, and launch them.");
  registerCreate(group, context);
  registerList(group, context);
  registerShow(group, context);
  registerEdit(group, context);
  registerRemove(group, context);
  registerLaunch(group, context);
  registerExport(group, context);
  registerImport(group, context);
};

function workspacePath(id: string): string {
  return `${WORKSPACES}/${encodeURIComponent(id)}`;
}

type CreateFlags = ApiFlags & {
  provider: string;
  description?: string;
  label?: string[];
  env?: string[];
  repo?: string[];
  allowHost?: string[];
  directory?: string;
};

function registerCreate(group: Command, context: CliContext): void {
  const command = group
    .command("create")
    .description("Make a workspace; prints its id. For all that one can have, import a file.")
    .argument("<name>", "what it is called")
    .option("--provider <provider>", "coding agent that it is for", "claude-code")
    .option("--description <text>", "what it is for")
    .option("--label <name=value>", "label, of its sandboxes too; may be repeated", collect)
    .option("--env <name=value>", "environment variable; may be repeated", collect)
    .option("--repo <url[#branch]>", "repository that is cloned; may be repeated", collect)
    .option("--allow-host <host>", "host that its sandboxes may reach: a name, or *.name; may be repeated", collect)
    .option("--directory <path>", "where repositories are cloned to and the agent begins");
  withExamples(withApiFlags(command), [
    "engine workspace create app --repo https://github.com/org/app.git#main --allow-host '*.npmjs.org'",
  ]).action(context.action((name: string, flags: CreateFlags) => create(context, name, flags)));
}

async function create(context: CliContext, name: string, flags: CreateFlags): Promise<number> {
  const { provider, description, label, env, repo, allowHost, directory } = flags;
  const spec = {
    agent: { provider },
    ...(env && { environment: pairsIn(env, "--env") }),
    ...(repo && { repositories: repo.map(repositoryIn) }),
    ...(allowHost && { network: { enabled: true, allowed_hosts: allowHost } }),
    ...(directory !== undefined && { filesystem: { working_directory: directory } }),
  };
  const labels = label && { labels: pairsIn(label, "--label") };
  const body = { name, spec, ...(description !== undefined && { description }), ...labels };
  const made = await callTarget(context, await targetOf(context, flags), "POST", WORKSPACES, body);
  return await printId(context, flags, made);
}

function repositoryIn(text: string): Json {
  const at = text.lastIndexOf("#");
  return at < 0 ? { url: text } : { url: text.slice(0, at), branch: text.slice(at + 1) };
}

async function printId(context: CliContext, flags: ApiFlags, made: Json): Promise<number> {
  if (flags.json) await context.writeJson(made);
  else await context.writeLine(visible(fieldText(made["id"])));
  return EXIT.ok;
}

type ListFlags = ApiFlags & { name?: string; label?: string[] };

function registerList(group: Command, context: CliContext): void {
  const command = group
    .command("list")
    .alias("ls")
    .description("List workspaces, the newest first.")
    .option("--name <text>", "only those with this in their name")
    .option("--label <name=value>", "only those with this label; may be repeated", collect);
  withExamples(withApiFlags(command), ["engine workspace list", "engine workspace list --name app --json"]).action(
    context.action((flags: ListFlags) => list(context, flags)),
  );
}

async function list(context: CliContext, flags: ListFlags): Promise<number> {
  const { name, label } = flags;
  const filter = { ...(name !== undefined && { name }), ...(label && { labels: label.join(",") }) };
  const found = await listAllFrom(context, await targetOf(context, flags), WORKSPACES, { filter, page: PAGE });
  const rows = found.map((one) => [one["id"], one["name"], one["description"], one["updated_at"]].map(fieldCell));
  if (flags.json) await context.writeJson(found);
  else if (found.length === 0) await context.writeLine("there are no workspaces");
  else await context.writeLine(renderTable(["ID", "NAME", "DESCRIPTION", "UPDATED"], rows, context.style));
  return EXIT.ok;
}

const PAGE = 100;

function registerShow(group: Command, context: CliContext): void {
  const command = group.command("show").description("Show one workspace.").argument("<id>", "id of the workspace");
  withExamples(withApiFlags(command), [`engine workspace show ${EXAMPLE_ID}`]).action(
    context.action(async (id: string, flags: ApiFlags) => {
      const found = await callTarget(context, await targetOf(context, flags), "GET", workspacePath(id));
      if (flags.json) await context.writeJson(found);
      else await printFields(context, found);
      return EXIT.ok;
    }),
  );
}

const FIELD_WIDTH = 20;

async function printFields(context: CliContext, { spec, ...record }: Json): Promise<void> {
  const all = { ...record, ...(typeof spec === "object" ? spec : {}) };
  for (const [name, value] of Object.entries(all)) {
    await context.writeLine(visible(`${name.replaceAll("_", " ").padEnd(FIELD_WIDTH)}${fieldText(value)}`));
  }
}

type EditFlags = ApiFlags & { name?: string; description?: string; label?: string[]; file?: string };

function registerEdit(group: Command, context: CliContext): void {
  const command = group
    .command("edit")
    .description("Change a workspace; what is not given stays as it is.")
    .argument("<id>", "id of the workspace")
    .option("--name <name>", "what it is called")
    .option("--description <text>", "what it is for")
    .option("--label <name=value>", "label, in the place of all that it has; may be repeated", collect)
    .option("--file <file>", "TOML with everything that it is to be; - is standard input");
  withExamples(withApiFlags(command), [
    `engine workspace edit ${EXAMPLE_ID} --name app`,
    `engine workspace edit ${EXAMPLE_ID} --file app.toml`,
  ]).action(context.action((id: string, flags: EditFlags) => edit(context, id, flags)));
}

async function edit(context: CliContext, id: string, flags: EditFlags): Promise<number> {
  const { name, description, label, file } = flags;
  const change = {
    ...(file === undefined ? {} : await contentIn(context, file)),
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    ...(label && { labels: pairsIn(label, "--label") }),
  };
  const changed = await callTarget(context, await targetOf(context, flags), "PUT", workspacePath(id), change);
  return await printId(context, flags, changed);
}

async function contentIn(context: CliContext, path: string): Promise<Json> {
  const { workspaceOfToml } = await import("../control/workspaces/toml.ts");
  const text = await textOf(context, path);
  try {
    const { description = null, ...content } = workspaceOfToml(text);
    return { ...content, description };
  } catch (error) {
    throw new CliError(`${path}: ${messageOf(error)}`, EXIT.usage, { cause: error });
  }
}

async function textOf(context: CliContext, path: string): Promise<string> {
  if (path === "-") return await readInput(context, "a workspace");
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new CliError(`the file cannot be read: ${messageOf(error)}`, EXIT.failed, { cause: error });
  }
}

function registerRemove(group: Command, context: CliContext): void {
  const command = group
    .command("rm")
    .description("Delete workspaces; sandboxes that were launched from them stay.")
    .argument("<id...>", "ids of workspaces");
  withExamples(withApiFlags(command), [`engine workspace rm ${EXAMPLE_ID}`]).action(
    context.action(async (ids: string[], flags: ApiFlags) => {
      const target = await targetOf(context, flags);
      for (const id of ids) {
        await deleteAt(context, target, workspacePath(id));
        if (!flags.json) await context.writeLine(visible(`deleted ${id}`));
      }
      if (flags.json) await context.writeJson({ deleted: ids });
      return EXIT.ok;
    }),
  );
}

type LaunchFlags = ApiFlags & { name?: string; label?: string[]; wait?: true };

function registerLaunch(group: Command, context: CliContext): void {
  const command = group
    .command("launch")
    .description("Make a sandbox from a workspace; prints its id.")
    .argument("<id>", "id of the workspace")
    .option("--name <name>", "what the sandbox is called")
    .option("--label <name=value>", "label of the sandbox, beside those of the workspace; may be repeated", collect)
    .option("--wait", "wait until it runs, and tell of each step on standard error");
  withExamples(withApiFlags(command), [`engine workspace launch ${EXAMPLE_ID} --wait`]).action(
    context.action((id: string, flags: LaunchFlags) => launch(context, id, flags)),
  );
}

async function launch(context: CliContext, id: string, flags: LaunchFlags): Promise<number> {
  const { name, label, wait, json } = flags;
  const target = await targetOf(context, flags);
  const own = { ...(name !== undefined && { name }), ...(label && { labels: pairsIn(label, "--label") }) };
  const made = await callTarget(context, target, "POST", `${workspacePath(id)}/launch`, own);
  const sandboxId = fieldText(made["sandbox_id"]);
  // First: whoever reads it has it, also when the rest fails.
  if (!json) await context.writeLine(visible(sandboxId));
  if (wait) {
    await followProvisioning(context, target, {
      id: sandboxId,
      onStep: ({ step, status }) => {
        if (!json) context.note(visible(`${step}: ${status.replaceAll("_", " ")}`));
      },
    });
  }
  if (json) await context.writeJson(wait ? { ...made, status: "running" } : made);
  return EXIT.ok;
}

function registerExport(group: Command, context: CliContext): void {
  const command = group
    .command("export")
    .description("Print a workspace as TOML, its environment variables included.")
    .argument("<id>", "id of the workspace");
  withExamples(withApiFlags(command), [`engine workspace export ${EXAMPLE_ID} > app.toml`]).action(
    context.action(async (id: string, flags: ApiFlags) => {
      if (flags.json) throw new CliError("a file has no JSON; see `engine workspace show --json`", EXIT.usage);
      const target = await targetOf(context, flags);
      const text = await sendText(context, target, { method: "GET", path: `${workspacePath(id)}/export` });
      await context.writeLine(text.trimEnd());
      return EXIT.ok;
    }),
  );
}

function registerImport(group: Command, context: CliContext): void {
  const command = group
    .command("import")
    .description("Make a workspace from TOML; prints its id.")
    .argument("<file>", "the file; - is standard input");
  withExamples(withApiFlags(command), ["engine workspace import app.toml"]).action(
    context.action(async (file: string, flags: ApiFlags) => {
      const sent = { method: "POST", path: `${WORKSPACES}/import`, text: await textOf(context, file) } as const;
      const answer: unknown = JSON.parse(await sendText(context, await targetOf(context, flags), sent));
      return await printId(context, flags, answer as Json);
    }),
  );
}
