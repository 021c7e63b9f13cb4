import { UsageError, type Command } from "./commands/command.ts";

export type BenchProgram = {
  /** How it is called, for the help. */
  name: string;
  commands: Readonly<Record<string, Command>>;
};

/**
 * Resolves to the exit code of a command line (`Command.run`). Throws a sentence for what is wrong, with the help where
 * it helps.
 */
export async function runLine(program: BenchProgram, args: readonly string[], signal: AbortSignal): Promise<number> {
  try {
    const [name, ...rest] = args;
    if (name === undefined) throw new UsageError("say what to do");
    const command = Object.hasOwn(program.commands, name) ? program.commands[name] : undefined;
    if (command === undefined) throw new UsageError(`${name} is no command`);
    return await command.run(rest, signal);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new Error(`${error.message}:\n\n${helpOf(program)}`, { cause: error });
  }
}

function helpOf({ name: program, commands }: BenchProgram): string {
  const lines = Object.entries(commands).map(([name, { usage, doc }]) => `  ${name} ${usage}\n      ${doc}\n`);
  return `${program} COMMAND\n\n${lines.join("")}`;
}

/** Runs this process's command line, to its end. */
export async function runProcess(program: BenchProgram): Promise<void> {
  const stop = new AbortController();
  // The round that is under way ends first: its processes and folders are gone then.
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => stop.abort(new Error("stopped")));
  try {
    process.exitCode = await runLine(program, process.argv.slice(2), stop.signal);
  } catch (error) {
    console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = stop.signal.aborted ? 130 : 1;
  }
}
