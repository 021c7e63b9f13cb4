import { join } from "node:path";
import { baseUrl, bearerToken } from "../config/kinds.ts";
import { readIfThere, writeDurably } from "../core/durable-file.ts";
import { messageOf } from "../core/errors.ts";
import type { Random } from "../core/random.ts";
import { CliError, EXIT } from "./failure.ts";

/** What `engine connect` and `engine login` save in the engine's home. */
export type SavedClient = { url: string; token?: string; session?: SavedSession };

/** What renews a token that `engine login` got, and when that token ends by the clock of this machine. */
export type SavedSession = { refreshToken: string; expiresAtMs: number };

function savedClientPath(home: string): string {
  return join(home, "client.json");
}

/** @throws CliError when the file is damaged or cannot be read. */
export async function readSavedClient(home: string): Promise<SavedClient | undefined> {
  const file = savedClientPath(home);
  let text: string | undefined;
  try {
    text = await readIfThere(file);
  } catch (error) {
    throw new CliError(`cannot read the saved server: ${messageOf(error)}`, EXIT.usage, { cause: error });
  }
  if (text === undefined) return undefined;
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
  if (token === undefined) return undefined;
  if (!("refresh_token" in value)) return { url, token };
  const session = parseSession(value);
  return session === undefined ? undefined : { url, token, session };
}

function parseSession(value: { refresh_token: unknown; expires_at?: unknown }): SavedSession | undefined {
  const { refresh_token: refreshToken, expires_at: expiresAt } = value;
  if (typeof refreshToken !== "string" || typeof expiresAt !== "string") return undefined;
  const expiresAtMs = Date.parse(expiresAt);
  return Number.isNaN(expiresAtMs) ? undefined : { refreshToken, expiresAtMs };
}

function textOf({ url, token, session }: SavedClient): string {
  const expiry = session === undefined ? {} : { expires_at: new Date(session.expiresAtMs).toISOString() };
  const renewal = session === undefined ? {} : { refresh_token: session.refreshToken, ...expiry };
  return `${JSON.stringify({ url, ...(token === undefined ? {} : { token }), ...renewal }, undefined, 2)}\n`;
}

/** Saves server and token for this user alone, replacing what was there at once. */
export async function saveClient(home: string, client: SavedClient, random: Random): Promise<string> {
  const file = savedClientPath(home);
  try {
    await writeDurably(file, textOf(client), 0o600, random);
  } catch (error) {
    throw new CliError(`cannot save the server: ${messageOf(error)}`, EXIT.failed, { cause: error });
  }
  return file;
}
