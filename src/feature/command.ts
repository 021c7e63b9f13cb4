import type { Command } from "commander";

/** Adds one command of a feature to the program. */
export type RegisterFeatureCommand = (program: Command, tools: CommandTools) => void;

/** Where a command lives: its file is loaded when a command line names it. */
export type FeatureCommandLoader = () => Promise<{ register: RegisterFeatureCommand }>;

/** What the command line gives to the commands of features, which lie below it. */
export type CommandTools = {
  /** Writes to standard output. */
  writeLine(text?: string): Promise<void>;
  writeJson(value: unknown): Promise<void>;
  /** A warning, on standard error. */
  warn(text: string): void;
  /** Wraps the action of a command: the program exits with the code that it returns. */
  action<A extends unknown[]>(run: (...args: A) => Promise<number>): (...args: A) => Promise<void>;
  /** Every command has examples, for `--help` and the reference. */
  withExamples(command: Command, examples: readonly string[]): Command;
  /** Gives a command the flags `--server`, `--token` and `--json`. */
  withServerFlags(command: Command): Command;
  /** Calls the server that the flags or the configuration name. Throws for every answer but a success. */
  call(flags: ServerFlags, request: ServerRequest): Promise<Readonly<Record<string, unknown>>>;
};

export type ServerFlags = { server?: string; token?: string; json?: true };

export type ServerRequest = { method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE"; path: string; body?: unknown };
