import { join } from "node:path";
import { systemCodeOf } from "../core/errors.ts";
import { apiFailure, connectionFailure, openClient, readApiError, readText, type Target } from "./client.ts";
import type { CliContext } from "./context.ts";
import { CliError, EXIT } from "./failure.ts";
import { readSavedClient, saveClient, type SavedClient, type SavedSession } from "./saved-client.ts";

/** A saved client that `engine login` made. */
export type SignedIn = { url: string; token: string; session: SavedSession };

/** A token is renewed when it has less than this left. */
const EARLY_MS = 30_000;
const TIMEOUT_MS = 30_000;
/** Longer than a renewal by another command can take. */
const LOCK_TIMEOUT_MS = 60_000;

/** The token of a saved session, renewed when it is about to end: also in the middle of a command that runs for long. */
export function renewedToken(context: CliContext, home: string, saved: SignedIn): () => Promise<string> {
  let current = saved;
  let renewing: Promise<SignedIn> | undefined;
  return async () => {
    if (!endsSoon(context, current.session)) return current.token;
    renewing ??= renew(context, home, current).finally(() => {
      renewing = undefined;
    });
    current = await renewing;
    return current.token;
  };
}

function endsSoon(context: CliContext, { expiresAtMs }: SavedSession): boolean {
  return expiresAtMs - context.deps.clock.nowMs() < EARLY_MS;
}

/**
 * A refresh token is good for one use, and a second use ends the session: of the commands that run at the same time one
 * renews, and the others take what it saved.
 */
async function renew(context: CliContext, home: string, known: SignedIn): Promise<SignedIn> {
  const release = await lock(home);
  try {
    const saved = await readSignedIn(home);
    if (saved?.url !== known.url) throw new CliError(`you are no longer signed in at ${known.url}`, EXIT.auth);
    if (saved.token !== known.token && !endsSoon(context, saved.session)) return saved;
    const next = await refresh(context, saved);
    // Whoever signed in or out meanwhile has the last word.
    const latest = await readSignedIn(home);
    if (latest?.session.refreshToken === saved.session.refreshToken) await saveClient(home, next, context.deps.random);
    return next;
  } finally {
    release();
  }
}

async function readSignedIn(home: string): Promise<SignedIn | undefined> {
  const saved = await readSavedClient(home);
  if (saved?.token === undefined || saved.session === undefined) return undefined;
  return { url: saved.url, token: saved.token, session: saved.session };
}

async function refresh(context: CliContext, { url, session }: SignedIn): Promise<SignedIn> {
  const target: Target = { url, origin: "engine login" };
  const body = { refresh_token: session.refreshToken };
  const { status, answer } = await postForTokens(context, target, "/v1/auth/refresh", body);
  if (status === 401) {
    throw new CliError(`your session at ${url} has ended; sign in again with \`engine login\``, EXIT.auth);
  }
  return { url, ...signedInBy(context, answer) };
}

/** Sends a request that is answered with tokens; a refusal of what was shown (401) is left to the caller. */
export async function postForTokens(
  context: CliContext,
  target: Target,
  path: string,
  body: unknown,
): Promise<{ status: 200; answer: Record<string, unknown> } | { status: 401; answer?: undefined; message: string }> {
  const client = await openClient(target, `engine/${context.deps.version}`);
  try {
    const headers = { "content-type": "application/json" };
    const reply = await client.send({
      method: "POST",
      path,
      headers,
      body: JSON.stringify(body),
      timeoutMs: TIMEOUT_MS,
    });
    if (reply.status === 200)
      return { status: 200, answer: JSON.parse(await readText(reply)) as Record<string, unknown> };
    const error = await readApiError(reply);
    if (error.status === 401) return { status: 401, message: error.message };
    throw apiFailure(error, target);
  } catch (error) {
    if (error instanceof SyntaxError) throw new CliError(`what answers at ${target.url} is no engine`);
    throw error instanceof CliError ? error : connectionFailure(error, target);
  } finally {
    await client.close();
  }
}

/** @throws CliError for an answer without tokens. */
export function signedInBy(
  context: CliContext,
  answer: Record<string, unknown> | undefined,
): Required<Omit<SavedClient, "url">> {
  const { access_token: token, refresh_token: refreshToken, expires_in: ttlSecs } = answer ?? {};
  if (typeof token !== "string" || typeof refreshToken !== "string" || typeof ttlSecs !== "number") {
    throw new CliError("the server answered without tokens: it is no engine, or one of another version");
  }
  return { token, session: { refreshToken, expiresAtMs: context.deps.clock.nowMs() + ttlSecs * 1_000 } };
}

/**
 * Keeps other commands of this user out until it is called. The lock is SQLite's on a file that stays empty: the system
 * gives it back however a process ends, which a file that merely exists cannot offer.
 */
async function lock(home: string): Promise<() => void> {
  // Most commands renew nothing.
  const { DatabaseSync } = await import("node:sqlite");
  const database = new DatabaseSync(join(home, "client.lock"), { timeout: LOCK_TIMEOUT_MS });
  try {
    database.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if (systemCodeOf(error) !== "ERR_SQLITE_ERROR") throw error;
    throw new CliError("another command holds the saved session and does not give it back", EXIT.failed, {
      cause: error,
    });
  }
  return () => database.close();
}
