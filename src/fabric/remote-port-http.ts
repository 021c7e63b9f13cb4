import { Agent, request } from "undici";
import { z } from "zod";
import { EngineError, ERROR_CODES, messageOf, StartupError, type ErrorCode } from "../core/errors.ts";
import { NodeRefused } from "./runner-failure.ts";

export type RemoteServer = {
  /** The control plane, without a slash at its end. */
  url: string;
  token: string;
  userAgent: string;
};

export type RemoteCall = {
  method: "GET" | "POST";
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: unknown;
  /** Most time until the answer, and between two of its pieces. */
  timeoutMs?: number;
  signal?: AbortSignal;
  /** Whether 403 means this call alone, and not the node as a whole. */
  mayBeForbidden?: boolean;
};

const CONNECT_TIMEOUT_MS = 10_000;
/** A write is small, and the next try comes soon: a lease may be as short as 10 s. */
const TIMEOUT_MS = 10_000;
/** 100 jobs with payloads and progress as large as they may be. */
const ANSWER_BYTES = 64 * 1024 * 1024;

/** Throws `StartupError` (exit code 2) for a server without TLS, unless that is wished. */
export function checkServerUrl(url: string, isInsecureAllowed: boolean): void {
  if (url.startsWith("https://") || isInsecureAllowed) return;
  throw new StartupError(
    `${url} has no TLS: whoever listens on the way gets the token of this node and the credentials of its jobs; use ` +
      "https://, or set ENGINE_WORKER_INSECURE=1 where the way is safe",
    2,
  );
}

/** Calls of the routes of workers: JSON out, JSON in. */
export class RemoteHttp {
  readonly #server: RemoteServer;
  readonly #agent = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS }, maxResponseSize: ANSWER_BYTES });

  constructor(server: RemoteServer) {
    this.#server = server;
  }

  /**
   * The answer, undefined where it is empty. Rejects with the `EngineError` of the server, with `NodeRefused` when it does
   * not take this token, and with `unavailable` for an answer that is none or never came.
   */
  async call(call: RemoteCall): Promise<unknown> {
    const { status, text, retryAfter } = await this.#exchange(call);
    if (status === 204) return undefined;
    const answer = parsed(text);
    if (status === 200 && answer !== undefined) return answer.value;
    const { url } = this.#server;
    const { code, message } = errorIn(answer?.value, status, url);
    const isRefused = status === 401 || (status === 403 && call.mayBeForbidden !== true);
    if (isRefused) throw new NodeRefused(`${url} refuses this node: ${message}`);
    const headers = retryAfter === undefined ? {} : { headers: { "Retry-After": retryAfter } };
    throw new EngineError(code, message, headers);
  }

  /** Calls under way reject. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #exchange({ method, path, headers, body, timeoutMs = TIMEOUT_MS, signal }: RemoteCall) {
    const { url, token, userAgent } = this.#server;
    try {
      const reply = await request(url + path, {
        dispatcher: this.#agent,
        method,
        headers: {
          authorization: `Bearer ${token}`,
          "user-agent": userAgent,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        body: body === undefined ? null : JSON.stringify(body),
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
        ...(signal === undefined ? {} : { signal }),
      });
      const retryAfter = reply.headers["retry-after"];
      const text = await reply.body.text();
      return { status: reply.statusCode, text, retryAfter: typeof retryAfter === "string" ? retryAfter : undefined };
    } catch (error) {
      signal?.throwIfAborted();
      throw new EngineError("unavailable", `no answer from ${url}: ${messageOf(error)}`, { cause: error });
    }
  }
}

function parsed(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

const wireError = z.object({ error: z.object({ code: z.string(), message: z.string() }) });

/** What the server says is wrong; what is no answer of an engine is a proxy's, and passes. */
function errorIn(answer: unknown, status: number, url: string): { code: ErrorCode; message: string } {
  const { data } = wireError.safeParse(answer);
  if (data === undefined) return { code: "unavailable", message: `${url} answered ${status}` };
  const { code, message } = data.error;
  if (isErrorCode(code)) return { code, message };
  return { code: status >= 500 ? "unavailable" : "bad_request", message };
}

function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CODES, code);
}
