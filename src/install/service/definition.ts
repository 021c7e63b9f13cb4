import { z } from "zod";
import { formatAddress, type Address } from "../../config/kinds.ts";

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

/** A service of this program, by the names that systems know it by. */
export type ServiceUnit<D> = {
  /** Of systemd. */
  unit: string;
  /** Of launchd. */
  label: string;
  description: string;
  /** The file in ENGINE_HOME that launchd writes what it says to. */
  log: string;
  /** The command that installs it. */
  installedBy: string;
  /** What the system is told of it. */
  textOf(definition: D): UnitText;
  /** What a text of ours says; undefined for one that somebody else wrote. */
  definitionIn(text: string): D | undefined;
};

export type UnitText = {
  /** Of whom the file is, on one line: see `headerLine`. */
  header: string;
  remark: string;
  /** The program and its arguments. */
  words: readonly string[];
  environment: Readonly<Record<string, string>>;
  /** ENGINE_HOME of the service. */
  home: string;
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
export interface ServiceManager<D = ServiceDefinition> {
  /** The file that describes the service to the system. */
  readonly file: string;
  /** How to read the log of the service. */
  readonly logCommand: string;
  /** The text of that file. @throws CliError for what cannot be written there */
  render(definition: D): string;
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

/** `engine serve`. */
export const SERVE_UNIT: ServiceUnit<ServiceDefinition> = {
  unit: "engine.service",
  label: "engine.serve",
  description: "engine, the context engine of this machine",
  log: "service.log",
  installedBy: "engine service install",
  textOf: (definition) => ({
    header: headerLine(definition),
    remark: "Options of the service belong in the file that ENGINE_CONFIG names.",
    words: [...definition.command, "serve", "--addr", formatAddress(definition.listen)],
    environment: { ENGINE_HOME: definition.home, ENGINE_CONFIG: definition.configFile },
    home: definition.home,
  }),
  definitionIn: readHeader,
};

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
  return factsLine(MARK, { command, listen, home, configFile });
}

/** Facts as JSON behind a mark. Nothing in it ends a line, or a comment of XML, as `--` would. */
export function factsLine(mark: string, facts: Readonly<Record<string, unknown>>): string {
  return `${mark}: ${JSON.stringify(facts).replaceAll(/[^ -,.-~]/g, unicodeEscape)}`;
}

function unicodeEscape(char: string): string {
  return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** What `headerLine` says in a file; undefined for a file that somebody else wrote. */
export function readHeader(text: string): ServiceDefinition | undefined {
  return factsIn(text, MARK, factsSchema);
}

/** What `factsLine` wrote. */
export function factsIn<S extends z.ZodType>(text: string, mark: string, schema: S): z.output<S> | undefined {
  const line = text.split("\n").find((one) => one.includes(`${mark}: `));
  const json = line === undefined ? undefined : /\{.*\}/.exec(line)?.[0];
  if (json === undefined) return undefined;
  try {
    return schema.safeParse(JSON.parse(json)).data;
  } catch {
    return undefined;
  }
}
