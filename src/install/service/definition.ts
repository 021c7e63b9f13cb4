import { z } from "zod";
import type { Address } from "../../config/kinds.ts";

/** What `engine service` keeps running: the engine of this machine, for one user. */
export type ServiceDefinition = {
  /** The words that start the program, without its arguments. */
  command: readonly string[];
  listen: Address;
  /** ENGINE_HOME of the service. */
  home: string;
  /** The TOML file with the options of the service, its token among them: mode 0600. */
  configFile: string;
};

/** What the system says of the service. */
export type ServiceState = {
  /** Whether it starts by itself. */
  isEnabled: boolean;
  isRunning: boolean;
  /** In milliseconds since 1970; undefined where it does not run, or the system does not say. */
  runningSinceMs: number | undefined;
  /** Why it does not run, as the system names it. */
  detail: string;
};

/** A program of the system that keeps services running. */
export interface ServiceManager {
  /** The file that describes the service to the system. */
  readonly file: string;
  /** How to read the log of the service. */
  readonly logCommand: string;
  /** The text of that file. @throws CliError for what cannot be written there */
  render(definition: ServiceDefinition): string;
  /** Before anything is written. @throws CliError where services cannot be kept running here */
  prepare(): Promise<Notes>;
  /** Has the system read the file, start the service now and whenever the user's services start. */
  activate(options: { hasChanged: boolean }): Promise<void>;
  /** Stops the service; it does not start again. */
  deactivate(): Promise<void>;
  /** After the file is gone. */
  forget(): Promise<void>;
  restart(): Promise<void>;
  state(): Promise<ServiceState>;
}

/** Sentences for the user about what is as they may not expect it. */
export type Notes = readonly string[];

export function serveArguments({ listen }: ServiceDefinition, format: (address: Address) => string): string[] {
  return ["serve", "--addr", format(listen)];
}

/** Seconds that a stopping server gets: a little more than its own limit (`ENGINE_DRAIN_TIMEOUT_SECS`, 30 unless set). */
export const STOP_SECS = 45;

const factsSchema = z.strictObject({
  command: z.array(z.string()),
  listen: z.strictObject({ host: z.string(), port: z.int().min(0).max(65_535) }),
  home: z.string(),
  configFile: z.string(),
});

const MARK = "engine service install wrote this file";

/** One line that says whose file it is, and what a later command must know of it. */
export function headerLine({ command, listen, home, configFile }: ServiceDefinition): string {
  // Nothing in it ends a line, or a comment of XML, as `--` would.
  const facts = JSON.stringify({ command, listen, home, configFile }).replaceAll(/[^ -,.-~]/g, unicodeEscape);
  return `${MARK}: ${facts}`;
}

function unicodeEscape(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** What `headerLine` says in a file; undefined for a file that somebody else wrote. */
export function readHeader(text: string): ServiceDefinition | undefined {
  const line = text.split("\n").find((one) => one.includes(`${MARK}: `));
  const json = line === undefined ? undefined : /\{.*\}/.exec(line)?.[0];
  if (json === undefined) return undefined;
  try {
    return factsSchema.safeParse(JSON.parse(json)).data;
  } catch {
    return undefined;
  }
}
