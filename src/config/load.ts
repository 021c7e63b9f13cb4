import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, resolve } from "node:path";
import { availableCores } from "../core/available-cores.ts";
import { StartupError, messageOf, systemCodeOf } from "../core/errors.ts";
import { nearest } from "../core/nearest.ts";
import { HIDDEN, path, type ReadContext } from "./kinds.ts";
import type { DefaultContext, Option, OptionRows } from "./option.ts";
import { OPTIONS, optionOf, withRows, type Config, type Origins } from "./options.ts";
import { relationProblem, uselessSettings } from "./relations.ts";
import { fileVariableOf, readSecretFile, variablesOf } from "./secret-file.ts";
import { parseConfigFile } from "./toml.ts";

export type ConfigSources = {
  env: Readonly<Record<string, string | undefined>>;
  /** Values of flags by the option that they set. */
  flags?: Readonly<Record<string, string>>;
  /** The options of features; their values are in the configuration beside the others: see `valuesOf`. */
  rows?: OptionRows;
  readFile?: (path: string) => string;
  /** Where relative paths of variables and flags start. */
  workingDir?: string;
  userHome?: string;
  cores?: number;
};

export type LoadedConfig = {
  config: Config;
  origins: Origins;
  /** Sentences about settings that have no effect. */
  warnings: readonly string[];
  /** The options of features that are in it. */
  rows: OptionRows;
};

type Setting = { raw: unknown; origin: string; baseDir: string };

/**
 * Reads the configuration from all its sources. An empty variable counts as unset.
 * @throws StartupError (exit code 2) naming the source, the value and what is accepted.
 */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const workingDir = sources.workingDir ?? process.cwd();
  const contextIn = (baseDir: string): ReadContext => ({
    baseDir,
    get userHome() {
      return sources.userHome ?? ownHome();
    },
  });
  const { rows = {} } = sources;
  const table = withRows(rows);
  const warnings = unknownVariables(sources.env, table);
  const context = contextIn(workingDir);
  const direct = (name: string, option: Option<unknown>) => directSetting(sources, { name, option, context, warnings });
  const configFile = direct("configFile", OPTIONS.configFile);
  const file = readConfigFile(configFile, { ...sources, table }, context);
  warnings.push(...file.warnings);

  const values: Record<string, unknown> = {};
  const origins: Record<string, string> = {};
  const defaults = defaultContext(values, context, sources.cores ?? availableCores());
  for (const [name, option] of Object.entries(table)) {
    const setting = direct(name, option) ?? file.settings.get(option.toml ?? "");
    values[name] =
      setting === undefined ? option.defaultOf(defaults) : readSetting(option, setting, contextIn(setting.baseDir));
    origins[name] = setting?.origin ?? defaultOrigin(option, origins);
  }
  const loaded = { config: values as Config, origins: origins as Origins };
  const problem = relationProblem(loaded, table);
  if (problem !== undefined) throw new StartupError(problem, 2);
  return { ...loaded, rows, warnings: [...warnings, ...uselessSettings(loaded)] };
}

/** What a flag, a variable, or the file that a variable names says about the option. */
function directSetting(
  sources: ConfigSources,
  {
    name,
    option,
    context,
    warnings,
  }: { name: string; option: Option<unknown>; context: ReadContext; warnings: string[] },
): Setting | undefined {
  const { baseDir } = context;
  const variable = variableSetting(sources.env, option.env, baseDir);
  const named = variableSetting(sources.env, fileVariableOf(option), baseDir);
  if (variable !== undefined && named !== undefined) {
    throw new StartupError(`${variable.origin} and ${named.origin} are both set: unset one of them`, 2);
  }
  const flag = sources.flags?.[name];
  if (flag !== undefined) return { raw: flag, origin: option.flag ?? name, baseDir };
  return named === undefined ? variable : secretSetting(named, context, warnings);
}

/** An empty variable counts as unset. */
function variableSetting(env: ConfigSources["env"], name: string | undefined, baseDir: string): Setting | undefined {
  const text = name === undefined ? undefined : env[name];
  return name === undefined || text === undefined || text.trim() === ""
    ? undefined
    : { raw: text, origin: name, baseDir };
}

function secretSetting(named: Setting, context: ReadContext, warnings: string[]): Setting {
  const { text, warnings: found } = readSecretFile(named.origin, readSetting({ kind: path }, named, context) as string);
  warnings.push(...found);
  return { ...named, raw: text };
}

function readSetting(
  option: Pick<Option<unknown>, "kind" | "secret">,
  { raw, origin }: Setting,
  context: ReadContext,
): unknown {
  const value = typeof raw === "string" ? option.kind.parse(raw.trim(), context) : option.kind.parseNative?.(raw);
  if (value !== undefined) return value;
  throw new StartupError(`${origin} is ${shown(option, raw)}; expected ${option.kind.accepts}`, 2);
}

const SHOWN_CHARS = 120;

/** A refused value for a message: on one line, cut short, and without anything secret. */
function shown(option: Pick<Option<unknown>, "kind" | "secret">, raw: unknown): string {
  if (typeof raw !== "string") return option.secret === true ? HIDDEN : cut(tomlText(raw));
  return JSON.stringify(cut(option.kind.hide?.(raw) ?? (option.secret === true ? HIDDEN : raw)));
}

function cut(text: string): string {
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text;
}

function tomlText(value: unknown): string {
  if (Array.isArray(value)) return "an array with other things than origins";
  if (typeof value === "object" && value !== null && !(value instanceof Date)) return "a table";
  return String(value);
}

/**
 * The home of the user of this process. One that no list of users has (a container with an id of its own choice, a
 * service) has none; only what is looked for in it needs one.
 */
function ownHome(): string {
  const home = homeOf();
  if (home !== "") return home;
  throw new StartupError(
    "the user of this process has no home folder: set ENGINE_HOME to a folder for the engine's files, and let no path begin with ~",
    2,
  );
}

function homeOf(): string {
  try {
    return homedir();
  } catch (error) {
    if (systemCodeOf(error) === "ERR_SYSTEM_ERROR") return "";
    throw error;
  }
}

function defaultContext(values: Readonly<Record<string, unknown>>, read: ReadContext, cores: number): DefaultContext {
  return {
    get userHome() {
      return read.userHome;
    },
    cores,
    get home() {
      return values["home"] as string;
    },
    get localDb() {
      return values["localDb"] as string;
    },
    get serverPort() {
      return values["serverPort"] as number | undefined;
    },
    values,
  };
}

/** `default`, and what set the value that the default was derived from when that was set. */
function defaultOrigin(option: Option<unknown>, origins: Readonly<Record<string, string>>): string {
  const source = option.derivedFrom === undefined ? "default" : (origins[option.derivedFrom] ?? "default");
  if (source === "default") return source;
  return source.startsWith("default ") ? source : `default (from ${source})`;
}

function unknownVariables(env: ConfigSources["env"], table: OptionRows): string[] {
  const variables = Object.values(table).flatMap(variablesOf);
  const known = new Set(variables);
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !known.has(name) && env[name] !== "")
    .sort()
    .map((name) => `${cut(name)} is no option of this version and has no effect${hint(name, variables)}`);
}

const PREFIX = "ENGINE_";

/** What all have in common says nothing of what was meant. */
function hint(name: string, known: readonly string[]): string {
  const prefix = name.startsWith(PREFIX) ? PREFIX : "";
  const own = known.filter((one) => one.startsWith(prefix)).map((one) => one.slice(prefix.length));
  const meant = nearest(name.slice(prefix.length), own);
  return meant === undefined ? "" : `; did you mean ${prefix}${meant}?`;
}

type ConfigFile = { settings: Map<string, Setting>; warnings: string[] };

function readConfigFile(
  setting: Setting | undefined,
  { table, readFile }: Pick<ConfigSources, "readFile"> & { table: OptionRows },
  context: ReadContext,
): ConfigFile {
  const found: ConfigFile = { settings: new Map(), warnings: [] };
  if (setting === undefined) return found;
  const path = readSetting(optionOf("configFile"), setting, context) as string;
  const text = readText(path, setting, readFile ?? ((file) => readFileSync(file, "utf8")));
  const keys = Object.values(table).flatMap((option) => option.toml ?? []);
  for (const [key, raw] of parseConfigFile(path, text, new Set(keys))) {
    const origin = `${key} in ${path}`;
    if (keys.includes(key)) found.settings.set(key, { raw, origin, baseDir: dirname(resolve(path)) });
    else found.warnings.push(`${cut(origin)} is no option of this version and has no effect${hint(key, keys)}`);
  }
  return found;
}

function readText(path: string, setting: Setting, readFile: (path: string) => string): string {
  try {
    return readFile(path);
  } catch (error) {
    throw new StartupError(`${setting.origin}: cannot read the configuration file: ${messageOf(error)}`, 2, error);
  }
}
