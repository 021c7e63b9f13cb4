import { TomlError, parse } from "smol-toml";
import { StartupError, messageOf } from "../core/errors.ts";
import { mayHavePrototypeKey, prototypeKeyIn } from "../core/prototype-keys.ts";

/** A file of options is a page or two; anything beyond this is some other file. */
const MAX_CHARS = 1_048_576;

/**
 * Reads a TOML file into dotted keys and their values. Descent stops at a key of `known`, so that a table in the place
 * of a value is refused by the option itself.
 * @throws StartupError (exit code 2) with file, line and column. The message never quotes the file: it holds secrets.
 */
export function parseConfigFile(path: string, text: string, known: ReadonlySet<string>): Map<string, unknown> {
  if (text.length > MAX_CHARS) {
    throw new StartupError(`${path} is no configuration file: it has more than ${MAX_CHARS} characters`, 2);
  }
  const found = new Map<string, unknown>();
  flatten(parseToml(path, text), "", known, found);
  return found;
}

function parseToml(path: string, text: string): unknown {
  const value = parseTomlText(path, text.startsWith("\uFEFF") ? text.slice(1) : text);
  const place = mayHavePrototypeKey(text) ? prototypeKeyIn(value) : undefined;
  if (place !== undefined) throw new StartupError(`${path}: ${place}: the key is not accepted`, 2);
  return value;
}

/** @throws StartupError (exit code 2) with file, line and column. */
export function parseTomlText(path: string, text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw new StartupError(`${path}: ${messageOf(error)}`, 2, error);
    const [reason = "invalid TOML"] = error.message.split("\n");
    throw new StartupError(`${path}, line ${error.line}, column ${error.column}: ${reason}`, 2);
  }
}

function flatten(value: unknown, key: string, known: ReadonlySet<string>, into: Map<string, unknown>): void {
  if (!isTable(value) || known.has(key)) {
    into.set(key, value);
    return;
  }
  for (const [name, inner] of Object.entries(value)) flatten(inner, key === "" ? name : `${key}.${name}`, known, into);
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
