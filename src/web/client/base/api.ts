import { ApiError, errorOf, unreachable } from "./api-error.ts";

/** What a request carries besides its path. */
export type ApiOptions = {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is, with `headers` saying what it is. */
  body?: BodyInit;
  headers?: Readonly<Record<string, string>>;
  /** Values that are undefined are left out. */
  query?: Readonly<Record<string, string | number | boolean | undefined>>;
  signal?: AbortSignal | undefined;
  /** Whether a 401 is the caller's to judge, instead of asking for a new sign-in over the page. */
  isQuiet?: boolean;
};

/** Asks the user to sign in again; resolves when that has happened, rejects when they do not want to. */
export type SignInAgain = (signal: AbortSignal | undefined) => Promise<void>;

let signInAgain: SignInAgain | undefined;

/** Says who asks for a new sign-in where a session has ended: the shell, which can show a dialog. */
export function onSessionEnded(ask: SignInAgain | undefined): void {
  signInAgain = ask;
}

/** Asks the user to sign in again after a 401, as `SignInAgain` says; rejects with that error where nothing can ask. */
export async function renewSession(error: ApiError, signal: AbortSignal | undefined): Promise<void> {
  if (signInAgain === undefined) throw error;
  await signInAgain(signal);
}

/**
 * A request to this server's API. Resolves to a successful answer, whose body the caller reads; rejects with an `ApiError`,
 * or with the signal's reason when it was aborted. Where the session has ended the user signs in over the page, and the
 * request is sent again.
 */
export async function request(path: string, options: ApiOptions = {}): Promise<Response> {
  const response = await send(path, options);
  if (response.ok) return response;
  const error = await errorOf(response);
  if (response.status !== 401 || options.isQuiet === true) throw error;
  await renewSession(error, options.signal);
  const repeated = await send(path, options);
  if (repeated.ok) return repeated;
  throw await errorOf(repeated);
}

/** The JSON of an answer. */
export async function requestJson<T>(path: string, options: ApiOptions = {}): Promise<T> {
  const response = await request(path, options);
  try {
    return (await response.json()) as T;
  } catch (cause) {
    if (options.signal?.aborted === true) throw options.signal.reason;
    const requestId = response.headers.get("x-request-id") ?? undefined;
    const message = "the answer ended early or is not JSON";
    throw new ApiError(response.status, { code: "invalid_answer", message, requestId }, { cause });
  }
}

async function send(path: string, options: ApiOptions): Promise<Response> {
  const { method, json, body, headers, query, signal } = options;
  const content = json === undefined ? body : JSON.stringify(json);
  try {
    return await fetch(withQuery(path, query), {
      method: method ?? (content === undefined ? "GET" : "POST"),
      headers: {
        // By this the server knows a page of its own: no other page may send it.
        "X-Engine-Web": "1",
        ...(json !== undefined && { "Content-Type": "application/json" }),
        ...headers,
      },
      credentials: "same-origin",
      cache: "no-store",
      ...(content !== undefined && { body: content }),
      ...(signal !== undefined && { signal }),
    });
  } catch (error) {
    if (signal?.aborted === true) throw error;
    throw unreachable(error);
  }
}

function withQuery(path: string, query: ApiOptions["query"]): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) if (value !== undefined) params.set(name, String(value));
  const text = params.toString();
  return text === "" ? path : `${path}?${text}`;
}
