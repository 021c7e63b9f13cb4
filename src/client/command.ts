import type { Command } from "commander";
import type { CliContext } from "./context.ts";

/**
 * Adds one command, with everything below it, to the program. `wholeProgram` builds the tree of all commands, for a
 * command about the others.
 */
export type RegisterCommand = (program: Command, context: CliContext, wholeProgram: () => Promise<Command>) => void;

/** Where a command lives: its file is loaded when a command line names it. */
export type CommandLoader = () => Promise<{ register: RegisterCommand }>;

/** Gathers the values of an option that may be repeated. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}
