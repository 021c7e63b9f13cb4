import { reasonOf } from "../../../auth/jwt/fetch-json.ts";
import { EMBED_LIMITS } from "./limits.ts";
import { EmbedFailure } from "./provider.ts";

/** Sends JSON to a provider and returns its answer. Throws `EmbedFailure`. */
export async function postJson(
  url: URL,
  { headers, body, signal }: { headers: Readonly<Record<string, string>>; body: unknown; signal: AbortSignal },
): Promise<unknown> {
  const response = await sent(url, { headers, body: JSON.stringify(body), signal });
  const { status } = response;
  if (status !== 200) {
    // What it says may quote the key, or the texts.
    await response.body?.cancel();
    throw new EmbedFailure(kindOf(status), `${url.host} answered ${status}`, { retryAfterMs: retryAfterOf(response) });
  }
  const text = await textOf(response, url);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The parser's message quotes the answer.
    throw new EmbedFailure("unusable", `${url.host} answered with something that is not JSON`);
  }
}

async function sent(
  url: URL,
  { headers, body, signal }: { headers: Readonly<Record<string, string>>; body: string; signal: AbortSignal },
): Promise<Response> {
  try {
    return await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body,
      signal,
      // A redirect would take the key and the texts elsewhere.
      redirect: "manual",
    });
  } catch (error) {
    throw unreachable(url, error);
  }
}

async function textOf(response: Response, url: URL): Promise<string> {
  const pieces: Uint8Array[] = [];
  let sizeBytes = 0;
  try {
    for await (const piece of response.body ?? []) {
      sizeBytes += piece.length;
      if (sizeBytes > EMBED_LIMITS.answerBytes) {
        throw new EmbedFailure("unusable", `${url.host} answered with more than ${EMBED_LIMITS.answerBytes} bytes`);
      }
      pieces.push(piece);
    }
  } catch (error) {
    throw error instanceof EmbedFailure ? error : unreachable(url, error);
  }
  return Buffer.concat(pieces).toString("utf8");
}

function unreachable(url: URL, error: unknown): EmbedFailure {
  return new EmbedFailure("temporary", `${url.host} did not answer: ${reasonOf(error)}`);
}

function kindOf(status: number): EmbedFailure["kind"] {
  if (status === 408 || status === 429 || status >= 500) return "temporary";
  return status === 400 || status === 413 || status === 422 ? "refused" : "unusable";
}

function retryAfterOf({ headers }: Response): number | undefined {
  const seconds = Number(headers.get("Retry-After") ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : undefined;
}
