import type { Command } from "commander";

const EXAMPLES = new WeakMap<Command, readonly string[]>();

/** Gives a command its examples, for `--help` and the reference. */
export function withExamples(command: Command, examples: readonly string[]): Command {
  EXAMPLES.set(command, examples);
  return command.addHelpText("after", `\nExamples:\n${examples.map((line) => `  ${line}`).join("\n")}`);
}

export function examplesOf(command: Command): readonly string[] {
  return EXAMPLES.get(command) ?? [];
}
