import { createHash } from "node:crypto";
import { join } from "node:path";
import type { CliContext } from "../../../client/context.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { visible } from "../../../client/text.ts";
import { readIfThere, writeDurably } from "../../../core/durable-file.ts";
import { messageOf } from "../../../core/errors.ts";

/** The session that `engine query` used last with each server: one file per server in the home, for this user alone. */

/** @throws CliError where there is none, or the file cannot be read */
export async function readLastSession(home: string, url: string): Promise<string> {
  const file = fileOf(home, url);
  let text: string | undefined;
  try {
    text = await readIfThere(file);
  } catch (error) {
    throw new CliError(`cannot read the last session: ${visible(messageOf(error))}`, EXIT.usage, { cause: error });
  }
  if (text === undefined) {
    throw new CliError(
      `no session with ${url} to continue: ask without --continue, or name one by --session`,
      EXIT.usage,
    );
  }
  const sessionId = sessionIn(text, url);
  if (sessionId !== undefined) return sessionId;
  throw new CliError(`${visible(file)} is damaged: delete it, or name a session by --session`, EXIT.usage);
}

/** Replaces what was there at once. That it cannot be written is a warning: the answer matters more. */
export async function saveLastSession(
  context: CliContext,
  home: string,
  url: string,
  sessionId: string,
): Promise<void> {
  const text = `${JSON.stringify({ url, session_id: sessionId }, undefined, 2)}\n`;
  try {
    await writeDurably(fileOf(home, url), text, 0o600, context.deps.random);
  } catch (error) {
    context.warn(`--continue will not know this session: ${visible(messageOf(error))}`);
  }
}

function fileOf(home: string, url: string): string {
  const name = createHash("sha256").update(url).digest("hex").slice(0, 32);
  return join(home, "last-sessions", `${name}.json`);
}

function sessionIn(text: string, url: string): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || !("url" in value) || !("session_id" in value)) return undefined;
  return value.url === url && typeof value.session_id === "string" ? value.session_id : undefined;
}
