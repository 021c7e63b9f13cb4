import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { StartupError, messageOf } from "../core/errors.ts";
import type { Option } from "./option.ts";

/**
 * Secrets in files: `ENGINE_X_FILE` names a file that holds what `ENGINE_X` would, for every option with something
 * secret in it. A process's variables are shown by tools that list processes and containers; a file has an owner.
 */

/** Longer than any secret: whatever passes it is some other file. */
const MAX_SECRET_BYTES = 1_048_576;

/** Where containers have their secrets, which nobody else is there to read. */
const MOUNTED = "/run/secrets/";

const READABLE_BY_OTHERS = 0o004;
const WRITABLE_BY_OTHERS = 0o002;

/** The variable that names a file with the option's value; undefined for an option without a secret. */
export function fileVariableOf({ env, secret }: Pick<Option<unknown>, "env" | "secret">): string | undefined {
  return env === undefined || secret !== true ? undefined : `${env}_FILE`;
}

/** Every variable that sets the option. */
export function variablesOf(option: Pick<Option<unknown>, "env" | "secret">): string[] {
  return [option.env, fileVariableOf(option)].filter((name) => name !== undefined);
}

export type SecretText = { text: string; warnings: readonly string[] };

/**
 * Reads a secret without the line break that editors and `echo` leave behind it.
 * @throws StartupError (exit code 2), which names the variable and the file, and nothing of what is in it.
 */
export function readSecretFile(variable: string, path: string): SecretText {
  const problem = (sentence: string, cause?: unknown) => new StartupError(`${variable}: ${sentence}`, 2, cause);
  let file: number;
  try {
    // A pipe that nobody writes to would be waited for.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw problem(`cannot read the secret: ${messageOf(error)}`, error);
  }
  try {
    const status = fstatSync(file);
    if (!status.isFile()) throw problem(`${path} is not a file`);
    const isWide = (bit: number) => (status.mode & bit) !== 0;
    if (isWide(WRITABLE_BY_OTHERS)) {
      throw problem(`every user of this machine can write ${path}: take that from them (chmod o-w)`);
    }
    if (status.size > MAX_SECRET_BYTES) throw problem(`${path} has more than ${MAX_SECRET_BYTES} bytes`);
    const text = utf8Of(readFileSync(file));
    if (text === undefined) throw problem(`${path} is not UTF-8 text`);
    if (text.trim() === "") throw problem(`${path} is empty`);
    const isExposed = isWide(READABLE_BY_OTHERS) && !path.startsWith(MOUNTED);
    const warnings = isExposed
      ? [`${variable}: every user of this machine can read ${path}; chmod 0400 keeps it for its owner`]
      : [];
    return { text: text.replace(/\r?\n$/, ""), warnings };
  } finally {
    closeSync(file);
  }
}

function utf8Of(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
