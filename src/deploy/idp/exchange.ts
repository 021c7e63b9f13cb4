import { reasonOf, textOf } from "../../auth/jwt/fetch-json.ts";
import { CliError } from "../../client/failure.ts";
import type { Clock } from "../../core/clock.ts";

const TIMEOUT_MS = 30_000;

type Sent = { method: string; headers: Headers | Readonly<Record<string, string>>; body?: string };
export type Answer = { status: number; retryAfter: string | undefined; text: string };

/**
 * One request to the management API; its answer is bounded in time and size. A redirect is an answer as any other: what is
 * sent holds secrets, which go to no other address. @throws CliError where there is no answer
 */
export async function exchange(clock: Clock, url: string, request: Sent): Promise<Answer> {
  const abort = new AbortController();
  const late = () => abort.abort(new Error(`no answer within ${TIMEOUT_MS / 1_000} s`));
  const timer = clock.after(TIMEOUT_MS, late, { background: true });
  try {
    const response = await fetch(url, { ...request, redirect: "manual", signal: abort.signal });
    const retryAfter = response.headers.get("retry-after") ?? undefined;
    return { status: response.status, retryAfter, text: await textOf(response) };
  } catch (error) {
    const { origin } = new URL(url);
    throw new CliError(
      `${origin} does not answer (${reasonOf(error)}): check ENGINE_IDP_API_BASE and the network, and run \`engine deploy init\` again`,
    );
  } finally {
    timer.cancel();
  }
}
