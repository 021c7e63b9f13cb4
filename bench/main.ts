import { growth } from "./growth/command.ts";
import { proof } from "./proof/command.ts";
import { report } from "./report/command.ts";
import { UsageError, type Command } from "./suite/commands/command.ts";
import { compare } from "./suite/commands/compare.ts";
import { full } from "./suite/commands/full.ts";
import { list } from "./suite/commands/list.ts";
import { peers } from "./suite/commands/peers.ts";
import { quick } from "./suite/commands/quick.ts";
import { run } from "./suite/commands/run.ts";
import { show } from "./suite/commands/show.ts";

const COMMANDS: Readonly<Record<string, Command>> = {
  list,
  run,
  quick,
  full,
  peers,
  compare,
  show,
  growth,
  report,
  proof,
};

/** Resolves to the exit code (`Command.run`). Throws a sentence for what is wrong, with the help where it helps. */
export async function main(
  args: readonly string[],
  signal: AbortSignal = new AbortController().signal,
): Promise<number> {
  try {
    const [name, ...rest] = args;
    if (name === undefined) throw new UsageError("say what to do");
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (command === undefined) throw new UsageError(`${name} is no command`);
    return await command.run(rest, signal);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new Error(`${error.message}:\n\n${help()}`, { cause: error });
  }
}

function help(): string {
  const commands = Object.entries(COMMANDS).map(([name, { usage, doc }]) => `  ${name} ${usage}\n      ${doc}\n`);
  return `npm run bench -- COMMAND\n\n${commands.join("")}`;
}

if (import.meta.main) {
  const stop = new AbortController();
  // The round that is under way ends first: its processes and folders are gone then.
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => stop.abort(new Error("stopped")));
  try {
    process.exitCode = await main(process.argv.slice(2), stop.signal);
  } catch (error) {
    console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = stop.signal.aborted ? 130 : 1;
  }
}
