import type { Clock } from "../../core/clock.ts";

const TIMEOUT_MS = 10_000;

/** Sends a request to an issuer and reads its answer, all within a time that somebody at a browser waits. */
export async function fetchWithin<T>(
  clock: Clock,
  url: string,
  request: RequestInit,
  read: (response: Response) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  const late = () => abort.abort(new Error(`no answer within ${TIMEOUT_MS} ms`));
  const timer = clock.after(TIMEOUT_MS, late, { background: true });
  try {
    return await read(await fetch(url, { ...request, signal: abort.signal }));
  } finally {
    timer.cancel();
  }
}

/** What may be shown of an error code that came from outside. */
export function boundedCode(code: string): string {
  return /^[A-Za-z0-9_.-]{1,64}$/.test(code) ? code : "unknown_error";
}
