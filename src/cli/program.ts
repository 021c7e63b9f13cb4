import { Command, CommanderError } from "commander";
import type { CommandLoader } from "../client/command.ts";
import type { CliContext } from "../client/context.ts";
import { summaryOf } from "./command-tree.ts";
import { CliError, EXIT } from "../client/failure.ts";
import { commandsOf } from "../feature/collect.ts";
import type { FeatureParts } from "../feature/feature.ts";

type Features = readonly FeatureParts[];

/** Commands of no feature, or of more than one. A command line loads only the one that it names. */
const COMMANDS: Readonly<Record<string, CommandLoader>> = {
  serve: () => import("./commands/serve.ts"),
  server: () => import("./commands/server.ts"),
  connect: () => import("./commands/connect.ts"),
  status: () => import("./commands/status.ts"),
  config: () => import("./commands/config.ts"),
  credentials: () => import("./commands/credentials.ts"),
  worker: () => import("./commands/worker.ts"),
  "create-database": () => import("./commands/create-database.ts"),
  "create-table": () => import("./commands/create-table.ts"),
  "alter-table": () => import("./commands/alter-table.ts"),
  "drop-table": () => import("./commands/drop-table.ts"),
  "drop-database": () => import("./commands/drop-database.ts"),
  "list-tables": () => import("./commands/list-tables.ts"),
  completions: () => import("./commands/completions.ts"),
  version: () => import("./commands/version.ts"),
};

/**
 * Parses the command line and runs what it names; the exit code is left in the context.
 * @throws CliError (exit code 2) for wrong usage, or whatever the command throws.
 */
export async function runProgram(argv: readonly string[], context: CliContext, features: Features): Promise<void> {
  const [named] = argv;
  const program = await buildProgram(context, features, named);
  const usageErrors: string[] = [];
  configureOutput(program, context, usageErrors);
  try {
    await program.parseAsync(argv.length === 0 ? ["--help"] : [...argv], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return;
    throw usageFailure(argv, usageErrors, program, error);
  }
}

/** The tree of commands: the one that is named, or all. */
export async function buildProgram(context: CliContext, features: Features, named?: string): Promise<Command> {
  const commands = allCommands(features);
  const only = named !== undefined && Object.hasOwn(commands, named) ? [named] : Object.keys(commands);
  const program = new Command("engine");
  program
    .description("A context engine: NDJSON events in, durable columnar extents, SQL out.")
    .version(context.deps.version, "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .helpCommand("help [command]", "show help for a command")
    .configureHelp({ subcommandTerm: (command) => command.name(), subcommandDescription: summaryOf })
    .exitOverride();
  for (const name of only) {
    const load = commands[name];
    if (load !== undefined) (await load()).register(program, context, () => buildProgram(context, features));
  }
  // After the name of a command `--version` is that command's (`engine update`). Last, for commands would inherit it.
  return program.enablePositionalOptions();
}

/** The command line's own, then those of the features. Throws for a name that two of them have. */
function allCommands(features: Features): Readonly<Record<string, CommandLoader>> {
  const own = commandsOf(features);
  const twice = Object.keys(own).find((name) => Object.hasOwn(COMMANDS, name));
  if (twice !== undefined) throw new Error(`a feature has the command ${twice}, which the program has`);
  return { ...COMMANDS, ...own };
}

/** Commander prints a usage error at once and in several lines; here it is kept, to become one line. */
function configureOutput(program: Command, context: CliContext, usageErrors: string[]): void {
  const output = {
    writeOut: (text: string) => void context.deps.stdout.write(text),
    writeErr: (text: string) => void context.deps.stderr.write(text),
    outputError: (text: string) => void usageErrors.push(text),
    getOutHelpWidth: () => context.deps.stdout.columns ?? 100,
    getErrHelpWidth: () => context.deps.stderr.columns ?? 100,
    getOutHasColors: () => false,
    getErrHasColors: () => false,
  };
  const configure = (command: Command): void => {
    command.configureOutput(output).exitOverride();
    command.commands.forEach(configure);
  };
  configure(program);
}

function usageFailure(argv: readonly string[], said: string[], program: Command, error: CommanderError): CliError {
  const path = commandPath(argv, program);
  // A group without its subcommand prints its help, which is the answer.
  if (said.length === 0) return new CliError(`${path} needs a command; see \`${path} --help\``, EXIT.usage);
  const text = said
    .join(" ")
    .replace(/^error: /, "")
    .replace(/\s+/g, " ")
    .trim()
    .replace(/\.$/, "");
  return new CliError(`${text}; see \`${path} --help\``, EXIT.usage, { cause: error });
}

/** The command that the arguments name, as far as they do: `engine ingest push`. */
function commandPath(argv: readonly string[], program: Command): string {
  let path = "engine";
  let at = program;
  for (const word of argv) {
    const next = at.commands.find((command) => command.name() === word);
    if (next === undefined) break;
    path += ` ${word}`;
    at = next;
  }
  return path;
}
