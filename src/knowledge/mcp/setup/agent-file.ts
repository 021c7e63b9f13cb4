import { lstat, mkdir, readFile, realpath } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { CliError } from "../../../client/failure.ts";
import { visible } from "../../../client/text.ts";
import { writeDurably } from "../../../core/durable-file.ts";
import { messageOf, systemCodeOf } from "../../../core/errors.ts";
import type { Random } from "../../../core/random.ts";
import { OWN_ENTRY, OWN_KEY, SERVERS_KEY } from "./agents.ts";
import { memberOf, membersAt, skipBlanks, withMember } from "./members.ts";

/** Far more than anybody's servers take. */
const MAX_BYTES = 1_048_576;

/** The configuration of an agent as it is and as it is to be. */
export type AgentFile = {
  /** Where it lies, all links followed. */
  file: string;
  mode: number;
  text: string;
  change: "added" | "replaced" | "none";
};

/**
 * Reads the file at `path` below the folder `base`, and adds our server to it. All else stays as it is, byte for byte.
 * @throws CliError, and nothing is written, where the file is no JSON, or a link leads out of the folder
 */
export async function readAgentFile(base: string, path: readonly string[]): Promise<AgentFile> {
  const asked = join(base, ...path);
  const shown = visible(asked);
  try {
    const file = await realFile(base, asked);
    const found = await lstatIfThere(file);
    if (found === undefined) return { file, mode: 0o644, ...merged("", shown) };
    if (!found.isFile()) throw new CliError(`${shown} is no regular file; nothing was changed`);
    if (found.size > MAX_BYTES) throw new CliError(`${shown} is longer than 1 MiB; nothing was changed`);
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await readFile(file));
    return { file, mode: found.mode & 0o777, ...merged(text, shown) };
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(`cannot read ${shown}: ${messageOf(error)}`, undefined, { cause: error });
  }
}

/** Replaces the file at once. */
export async function writeAgentFile({ file, mode, text }: AgentFile, random: Random): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeDurably(file, text, mode, random);
  } catch (error) {
    throw new CliError(`cannot write ${visible(file)}: ${messageOf(error)}`, undefined, { cause: error });
  }
}

function merged(text: string, shown: string): Pick<AgentFile, "text" | "change"> {
  if (text.trim() === "") return { text: `${JSON.stringify(fresh(), undefined, 2)}\n`, change: "added" };
  const config = parsed(text, shown);
  const root = skipBlanks(text, 0);
  if (!isObject(config)) throw new CliError(`${shown} holds no JSON object; nothing was changed`);
  const servers = memberOf(membersAt(text, root).members, SERVERS_KEY);
  if (servers === undefined) {
    return { text: withMember(text, root, SERVERS_KEY, fresh()[SERVERS_KEY]), change: "added" };
  }
  if (text[servers.valueStart] !== "{") {
    throw new CliError(`"${SERVERS_KEY}" in ${shown} is no object; nothing was changed`);
  }
  const own = memberOf(membersAt(text, servers.valueStart).members, OWN_KEY);
  if (own !== undefined && isDeepStrictEqual(JSON.parse(text.slice(own.valueStart, own.valueEnd)), OWN_ENTRY)) {
    return { text, change: "none" };
  }
  const change = own === undefined ? "added" : "replaced";
  return { text: withMember(text, servers.valueStart, OWN_KEY, OWN_ENTRY), change };
}

/** What a file without anything else holds. */
export function fresh() {
  return { [SERVERS_KEY]: { [OWN_KEY]: OWN_ENTRY } };
}

function parsed(text: string, shown: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CliError(
      `${shown} is no JSON (${visible(messageOf(error))}); mend it first, nothing was changed`,
      undefined,
      {
        cause: error,
      },
    );
  }
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Where a file lies, or would, when all links are followed: below `base`, or there is an error. */
async function realFile(base: string, asked: string): Promise<string> {
  const root = await realpath(base);
  const file = await followed(asked);
  const way = relative(root, file);
  if (way === ".." || way.startsWith(`..${sep}`)) {
    throw new CliError(`${visible(asked)} is a link that leads out of ${visible(base)}; nothing was changed`);
  }
  return file;
}

async function followed(path: string): Promise<string> {
  if ((await lstatIfThere(path)) === undefined) return join(await followed(dirname(path)), basename(path));
  try {
    return await realpath(path);
  } catch (error) {
    if (systemCodeOf(error) !== "ENOENT") throw error;
    throw new CliError(`${visible(path)} is a link to nothing; nothing was changed`, undefined, { cause: error });
  }
}

async function lstatIfThere(path: string) {
  try {
    return await lstat(path);
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
