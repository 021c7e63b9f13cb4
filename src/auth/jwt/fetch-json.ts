import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";

/** What an issuer publishes is a few KiB; this is far more, and still nothing to a process. */
const MAX_BYTES = 512 * 1024;
const TIMEOUT_MS = 5_000;

/** Fetches a JSON document that an issuer publishes. Rejects with an `Error` whose message names the address. */
export async function fetchJson(url: URL, clock: Clock): Promise<unknown> {
  const abort = new AbortController();
  const late = () => abort.abort(new Error(`no answer within ${TIMEOUT_MS} ms`));
  const timer = clock.after(TIMEOUT_MS, late, { background: true });
  try {
    // A redirect could lead to an address that nobody has checked.
    const headers = { Accept: "application/json" };
    const response = await fetch(url, { headers, redirect: "manual", signal: abort.signal });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new Error(`the status is ${response.status}`);
    }
    return JSON.parse(await textOf(response)) as unknown;
  } catch (error) {
    throw new Error(`${url.href}: ${reasonOf(error)}`, { cause: error });
  } finally {
    timer.cancel();
  }
}

/** The body as text; rejects when it is larger than any such document. */
export async function textOf(response: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const piece of response.body ?? []) {
    sizeBytes += piece.length;
    if (sizeBytes > MAX_BYTES) throw new Error(`the document has more than ${MAX_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

/** `fetch failed` says nothing; its cause does. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause === undefined ? messageOf(error) : `${messageOf(error)}: ${messageOf(cause)}`;
}
