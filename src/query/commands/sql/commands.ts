import { foldName } from "../../../core/names.ts";
import { nearest } from "../../../core/nearest.ts";
import type { CliContext } from "../../../client/context.ts";
import { CliError } from "../../../client/failure.ts";
import { FORMATS, isBinary, type Format } from "../../../client/row-writers.ts";
import { renderTable, textCell, type Cell } from "../../../client/table.ts";
import { visible } from "../../../client/text.ts";
import type { SchemaDatabase, SchemaTable, SchemaTree } from "./schema-tree.ts";

/** What the commands of the shell read and change. */
export type ShellState = {
  database: string;
  format: Format;
  showsTime: boolean;
  /** As it is now. */
  readTree: () => Promise<SchemaTree>;
};

type ShellCommand = {
  name: string;
  argument: string;
  help: string;
  /** "quit" ends the shell. */
  run: (context: CliContext, state: ShellState, argument: string) => Promise<"quit" | undefined>;
};

export const COMMANDS: readonly ShellCommand[] = [
  { name: "\\d", argument: "[TABLE]", help: "list the tables, or the columns of one", run: describe },
  { name: "\\l", argument: "", help: "list the databases", run: listDatabases },
  { name: "\\c", argument: "DATABASE", help: "go on in another database", run: useDatabase },
  {
    name: "\\format",
    argument: "[FORMAT]",
    help: `how rows are printed: ${shownFormats().join(", ")}`,
    run: setFormat,
  },
  { name: "\\timing", argument: "[on|off]", help: "show how long each statement takes", run: setTiming },
  { name: "\\?", argument: "", help: "show this", run: help },
  { name: "\\q", argument: "", help: "end (also Ctrl-D)", run: () => Promise.resolve("quit") },
];

/** @throws CliError for what is no command, or fails. */
export async function runCommand(context: CliContext, state: ShellState, line: string): Promise<"quit" | undefined> {
  const [, name = "", argument = ""] = /^(\\\S*)\s*(.*?)[\s;]*$/s.exec(line) ?? [];
  const command = COMMANDS.find((one) => one.name === name);
  if (command === undefined) throw new CliError(`there is no command ${visible(name)}; \\? shows them`);
  return await command.run(context, state, argument);
}

async function describe(context: CliContext, state: ShellState, argument: string): Promise<undefined> {
  const { tables, name: database } = databaseIn(await state.readTree(), state.database);
  const name = unquoted(argument);
  if (name !== "") {
    const table = tables.find((one) => foldName(one.name) === foldName(name));
    if (table === undefined)
      throw new CliError(`there is no table ${visible(name)} in ${database}${hint(name, tables)}`);
    await printTable(context, table);
  } else if (tables.length === 0) await context.writeLine(`database ${database} has no tables`);
  else {
    const rows = tables.map((table) => [textCell(table.name), count(table.columns.length)]);
    await context.writeLine(renderTable(["TABLE", "COLUMNS"], rows, context.style));
  }
  return undefined;
}

async function printTable(context: CliContext, { columns, clusterBy }: SchemaTable): Promise<void> {
  const rows = columns.map(({ name, type }) => [textCell(name), textCell(type)]);
  await context.writeLine(renderTable(["COLUMN", "TYPE"], rows, context.style));
  if (clusterBy.length > 0) await context.writeLine(`clustered by ${clusterBy.map(visible).join(", ")}`);
}

async function listDatabases(context: CliContext, state: ShellState): Promise<undefined> {
  const tree = await state.readTree();
  const rows = tree.map(({ name, tables }) => [textCell(name), count(tables.length)]);
  if (rows.length === 0) await context.writeLine("there are no databases");
  else await context.writeLine(renderTable(["DATABASE", "TABLES"], rows, context.style));
  return undefined;
}

async function useDatabase(context: CliContext, state: ShellState, argument: string): Promise<undefined> {
  const name = unquoted(argument);
  if (name === "") throw new CliError("\\c takes the name of a database; \\l lists them");
  state.database = databaseIn(await state.readTree(), name).name;
  return undefined;
}

async function setFormat(context: CliContext, state: ShellState, argument: string): Promise<undefined> {
  const format = shownFormats().find((one) => one === argument);
  if (argument === "") await context.writeLine(`format: ${state.format}`);
  else if (format === undefined) {
    throw new CliError(`${visible(argument)} is no format that a terminal shows: ${shownFormats().join(", ")} are`);
  } else state.format = format;
  return undefined;
}

async function setTiming(context: CliContext, state: ShellState, argument: string): Promise<undefined> {
  if (!["", "on", "off"].includes(argument)) throw new CliError("\\timing takes on or off");
  state.showsTime = argument === "" ? !state.showsTime : argument === "on";
  await context.writeLine(`timing is ${state.showsTime ? "on" : "off"}`);
  return undefined;
}

async function help(context: CliContext): Promise<undefined> {
  const lines = COMMANDS.map(({ name, argument, help: text }) => `  ${`${name} ${argument}`.padEnd(20)}${text}`);
  const rest = "A statement ends with ; and may have many lines. Ctrl-C cancels it, or clears what is typed.";
  await context.writeLine([...lines, rest].join("\n"));
  return undefined;
}

function shownFormats(): Format[] {
  return FORMATS.filter((format) => !isBinary(format));
}

function databaseIn(tree: SchemaTree, name: string): SchemaDatabase {
  const found = tree.find((one) => foldName(one.name) === foldName(name));
  if (found !== undefined) return found;
  throw new CliError(`there is no database ${visible(name)}${hint(name, tree)}`);
}

function hint(name: string, known: readonly { name: string }[]): string {
  const meant = nearest(
    name,
    known.map((one) => one.name),
  );
  return meant === undefined ? "" : `; did you mean ${visible(meant)}?`;
}

function unquoted(text: string): string {
  return /^"(?:[^"]|"")*"$/.test(text) ? text.slice(1, -1).replaceAll('""', '"') : text;
}

function count(value: number): Cell {
  return { text: value.toLocaleString("en-US"), align: "right" };
}
