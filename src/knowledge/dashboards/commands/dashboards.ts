import { readFile, writeFile } from "node:fs/promises";
import { Option, type Command } from "commander";
import {
  callTarget,
  countText,
  fieldCell,
  fieldText,
  findAt,
  listAllFrom,
  targetOf,
  withApiFlags,
  type ApiFlags,
  type Json,
} from "../../../client/api.ts";
import type { Target } from "../../../client/client.ts";
import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { withExamples } from "../../../client/examples.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { readInput } from "../../../client/prompt.ts";
import { renderTable } from "../../../client/table.ts";
import { visible } from "../../../client/text.ts";
import { messageOf } from "../../../core/errors.ts";
import { DASHBOARD_LIMITS } from "../limits.ts";

const DASHBOARDS = "/v1/dashboards";
const EXAMPLE_ID = "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a13";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** What a file of a dashboard has, in this order. */
const FILE_FIELDS = ["id", "name", "description", "panels", "settings"] as const;
/** What an answer of the API has besides: the server's to say. */
const SERVER_FIELDS = new Set(["version", "databases", "created_at", "created_by", "updated_at", "updated_by"]);

export const register: RegisterCommand = (program, context) => {
  const group = program.command("dashboards").description("List, copy and delete dashboards.");
  registerList(group, context);
  registerExport(group, context);
  registerImport(group, context);
  registerDelete(group, context);
};

function dashboardPath(id: string): string {
  return `${DASHBOARDS}/${encodeURIComponent(id)}`;
}

type ListFlags = ApiFlags & { name?: string };

function registerList(group: Command, context: CliContext): void {
  const command = group
    .command("list")
    .description("List dashboards, the newest first.")
    .option("--name <name>", "only those of this name");
  withExamples(withApiFlags(command), ["engine dashboards list", "engine dashboards list --name Orders --json"]).action(
    context.action((flags: ListFlags) => list(context, flags)),
  );
}

async function list(context: CliContext, flags: ListFlags): Promise<number> {
  const found = await allOf(context, await targetOf(context, flags), flags.name);
  if (flags.json === true) await context.writeJson(found);
  else if (found.length === 0) await context.writeLine("there are no dashboards");
  else {
    const rows = found.map((one) =>
      ["id", "name", "panel_count", "version", "databases", "updated_at", "updated_by"].map((field) =>
        fieldCell(one[field]),
      ),
    );
    const header = ["ID", "NAME", "PANELS", "VERSION", "DATABASES", "UPDATED", "BY"];
    await context.writeLine(renderTable(header, rows, context.style));
  }
  return EXIT.ok;
}

async function allOf(context: CliContext, target: Target, name: string | undefined): Promise<Json[]> {
  const filter = name === undefined ? {} : { name };
  return await listAllFrom(context, target, DASHBOARDS, { filter, page: DASHBOARD_LIMITS.listed, under: "dashboards" });
}

type ExportFlags = ApiFlags & { output?: string };

function registerExport(group: Command, context: CliContext): void {
  const command = group
    .command("export")
    .description("Print a dashboard as JSON for import, without its version history.")
    .argument("<dashboard>", "id or name of the dashboard")
    .option("--output <file>", "file to write it to (default: standard output)");
  withExamples(withApiFlags(command), [
    "engine dashboards export Orders --output orders.json",
    `engine dashboards export ${EXAMPLE_ID}`,
  ]).action(context.action((wanted: string, flags: ExportFlags) => exportOne(context, wanted, flags)));
}

async function exportOne(context: CliContext, wanted: string, flags: ExportFlags): Promise<number> {
  const target = await targetOf(context, flags);
  const found = await callTarget(context, target, "GET", dashboardPath(await idOf(context, target, wanted)));
  const content = Object.fromEntries(FILE_FIELDS.map((field) => [field, found[field]]));
  const { output } = flags;
  if (output === undefined) {
    await context.writeJson(content);
    return EXIT.ok;
  }
  try {
    await writeFile(output, `${JSON.stringify(content, undefined, 2)}\n`);
  } catch (error) {
    throw new CliError(`the file cannot be written: ${messageOf(error)}`, EXIT.failed, { cause: error });
  }
  const { id, name, version } = found;
  if (flags.json === true) await context.writeJson({ id, name, version, output });
  else await context.writeLine(visible(`dashboard ${fieldText(name)} written to ${output}`));
  return EXIT.ok;
}

type ImportFlags = ApiFlags & { id?: string; new?: true };

function registerImport(group: Command, context: CliContext): void {
  const command = group
    .command("import")
    .description(
      "Create or replace a dashboard from an exported file. The dashboard with the file's id is replaced and keeps its " +
        "earlier versions; if there is none, one is created with that id.",
    )
    .argument("<file>", "the file; - is standard input")
    .option("--id <id>", "id of the dashboard, in the place of the file's")
    .addOption(new Option("--new", "make another dashboard, with an id of its own").conflicts("id"));
  withExamples(withApiFlags(command), [
    "engine dashboards import orders.json",
    "engine dashboards import orders.json --new",
  ]).action(context.action((file: string, flags: ImportFlags) => importOne(context, file, flags)));
}

async function importOne(context: CliContext, file: string, flags: ImportFlags): Promise<number> {
  const { id: fileId, ...content } = await contentOf(context, file);
  const id = flags.new === true ? undefined : (flags.id ?? fileId);
  if (id !== undefined && (typeof id !== "string" || !UUID.test(id))) {
    throw new CliError(`${fieldText(id)} is not a dashboard id: expected a UUID`, EXIT.usage);
  }
  const target = await targetOf(context, flags);
  const before = id === undefined ? undefined : await findAt(context, target, dashboardPath(id));
  if (id === undefined || before === undefined) {
    const made = await callTarget(context, target, "POST", DASHBOARDS, { ...(id !== undefined && { id }), ...content });
    return await report(context, flags, made, "created");
  }
  const changed = await callTarget(context, target, "PATCH", dashboardPath(id), { ...EMPTY, ...content });
  return await report(context, flags, changed, changed["version"] === before["version"] ? "unchanged" : "replaced");
}

/** What a file does not have its dashboard does not have either. */
const EMPTY = { description: null, panels: [], settings: {} };

async function contentOf(context: CliContext, file: string): Promise<Json> {
  const text = await textOf(context, file);
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("expected a JSON object");
    return Object.fromEntries(Object.entries(value).filter(([field]) => !SERVER_FIELDS.has(field)));
  } catch (error) {
    throw new CliError(`${file} is not a dashboard file: ${messageOf(error)}`, EXIT.usage, { cause: error });
  }
}

async function textOf(context: CliContext, file: string): Promise<string> {
  if (file === "-") return await readInput(context, "a dashboard", DASHBOARD_LIMITS.bodyBytes);
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new CliError(`the file cannot be read: ${messageOf(error)}`, EXIT.failed, { cause: error });
  }
}

async function report(context: CliContext, flags: ApiFlags, dashboard: Json, outcome: string): Promise<number> {
  const { id, name, version, panels } = dashboard;
  if (flags.json === true) await context.writeJson({ id, name, version, outcome });
  else {
    const count = countText(Array.isArray(panels) ? panels.length : 0, "panel");
    const line = `dashboard ${fieldText(name)} (${fieldText(id)}) ${outcome}: version ${fieldText(version)}, ${count}`;
    await context.writeLine(visible(line));
  }
  return EXIT.ok;
}

function registerDelete(group: Command, context: CliContext): void {
  const command = group
    .command("delete")
    .description("Delete a dashboard with all its versions. Export it first to keep it.")
    .argument("<dashboard>", "id or name of the dashboard");
  withExamples(withApiFlags(command), [`engine dashboards delete ${EXAMPLE_ID}`]).action(
    context.action(async (wanted: string, flags: ApiFlags) => {
      const target = await targetOf(context, flags);
      const id = await idOf(context, target, wanted);
      const answer = await callTarget(context, target, "DELETE", dashboardPath(id));
      if (flags.json === true) await context.writeJson({ id, ...answer });
      else await context.writeLine(visible(`dashboard ${wanted} deleted`));
      return EXIT.ok;
    }),
  );
}

/** Of the only dashboard of that name; what looks like an id is one. */
async function idOf(context: CliContext, target: Target, wanted: string): Promise<string> {
  if (UUID.test(wanted)) return wanted;
  const ids = (await allOf(context, target, wanted)).map((one) => fieldText(one["id"]));
  const [id, ...others] = ids;
  if (id === undefined) throw new CliError(`there is no dashboard ${wanted}`);
  if (others.length === 0) return id;
  throw new CliError(`${ids.length} dashboards are called ${wanted}; name one by its id: ${ids.join(", ")}`);
}
