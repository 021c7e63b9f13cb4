import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { baseUrl, bearerToken } from "../config/kinds.ts";
import type { LoadedConfig } from "../config/load.ts";
import { messageOf, systemCodeOf } from "../core/errors.ts";
import type { Random } from "../core/random.ts";
import { CliError, EXIT } from "./failure.ts";

/** The server that a command talks to, where its address came from, and the token it is given. */
export type Target = { url: string; token?: string; origin: string };

const DEFAULT_URL = "http://127.0.0.1:7777";

/** What `engine connect` saves in the engine's home. */
type SavedClient = { url: string; token?: string };

export function savedClientPath(home: string): string {
  return join(home, "client.json");
}

/**
 * Flag, variable or file, then the saved server, then the local one. The saved token goes only to the server that it
 * was saved for.
 * @throws CliError when the saved file is damaged and needed.
 */
export async function resolveTarget({ config, origins }: LoadedConfig): Promise<Target> {
  const needsSaved = config.serverUrl === undefined || config.token === undefined;
  const saved = needsSaved ? await readSavedClient(config.home) : undefined;
  const url = config.serverUrl ?? saved?.url ?? DEFAULT_URL;
  const origin =
    config.serverUrl !== undefined ? origins.serverUrl : saved === undefined ? "default" : "engine connect";
  const token = config.token ?? (saved?.url === url ? saved.token : undefined);
  return token === undefined ? { url, origin } : { url, token, origin };
}

async function readSavedClient(home: string): Promise<SavedClient | undefined> {
  const file = savedClientPath(home);
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return undefined;
    throw new CliError(`cannot read the saved server: ${messageOf(error)}`, EXIT.usage, { cause: error });
  }
  const saved = parseSavedClient(text);
  if (saved === undefined) throw new CliError(`${file} is damaged; run \`engine connect URL\` again`, EXIT.usage);
  return saved;
}

function parseSavedClient(text: string): SavedClient | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || !("url" in value) || typeof value.url !== "string")
    return undefined;
  const context = { baseDir: "/", userHome: "/" };
  const url = baseUrl.parse(value.url, context);
  if (url === undefined) return undefined;
  if (!("token" in value)) return { url };
  const token = typeof value.token === "string" ? bearerToken.parse(value.token, context) : undefined;
  return token === undefined ? undefined : { url, token };
}

/** Saves server and token for this user alone, replacing what was there at once. */
export async function saveClient(home: string, client: SavedClient, random: Random): Promise<string> {
  const file = savedClientPath(home);
  const suffix = Buffer.from(random.fill(new Uint8Array(6))).toString("hex");
  const temporary = `${file}.${suffix}.tmp`;
  try {
    await mkdir(home, { recursive: true, mode: 0o700 });
    const handle = await open(temporary, "wx", 0o600);
    try {
      await handle.writeFile(`${JSON.stringify(client, undefined, 2)}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    // What is told is why it could not be saved, not that there was nothing to take away.
    await rm(temporary, { force: true }).catch(() => undefined);
    throw new CliError(`cannot save the server: ${messageOf(error)}`, EXIT.failed, { cause: error });
  }
  return file;
}
