import type { Readable } from "node:stream";
import type { Agent } from "undici";
import { messageOf, systemCodeOf } from "../core/errors.ts";
import { CliError, EXIT } from "./failure.ts";
import { visible } from "./text.ts";

/** The server that a command talks to, where its address came from, and the token it is given. */
export type Target = {
  url: string;
  token?: string;
  origin: string;
  /** Of a token that can be renewed: the token as it is now. */
  freshToken?: () => Promise<string>;
};

/** Requests to an engine. `close` must be called for the process to end. */
export type EngineClient = {
  send(request: ClientRequest): Promise<ClientReply>;
  close(): Promise<void>;
};

export type ClientRequest = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Uint8Array | Readable;
  /** Most time until the answer begins, and between two of its pieces; 0: any. */
  timeoutMs: number;
  /** Gives the request up, also while its answer is read. */
  signal?: AbortSignal;
};

export type ClientReply = {
  status: number;
  header(name: string): string | undefined;
  body: AsyncIterable<Uint8Array>;
};

const CONNECT_TIMEOUT_MS = 10_000;

export async function openClient(target: Target, userAgent: string): Promise<EngineClient> {
  const { Agent, request } = await import("undici");
  const agent: Agent = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS } });
  return {
    async send({ method, path, headers, body, timeoutMs, signal }) {
      const token = (await target.freshToken?.()) ?? target.token;
      const reply = await request(`${target.url}${path}`, {
        dispatcher: agent,
        method,
        headers: {
          "user-agent": userAgent,
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...headers,
        },
        body: body ?? null,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
        ...(signal === undefined ? {} : { signal }),
      });
      return {
        status: reply.statusCode,
        header(name) {
          const value = reply.headers[name];
          return Array.isArray(value) ? value.join(", ") : value;
        },
        body: reply.body,
      };
    },
    // Not `close`, which waits for answers that nobody reads any more.
    close: () => agent.destroy(),
  };
}

/** Answers that are no rows are small; a proxy's error page is cut off. */
const TEXT_LIMIT_BYTES = 1_048_576;

export async function readText(reply: ClientReply, limitBytes = TEXT_LIMIT_BYTES): Promise<string> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of reply.body) {
    chunks.push(chunk);
    sizeBytes += chunk.byteLength;
    if (sizeBytes > limitBytes) break;
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** An error as the engine answers it, with its place in the text that was sent. */
export type ApiError = {
  status: number;
  code?: string;
  message: string;
  requestId?: string;
  line?: number;
  column?: number | string;
};

const PAGE_CHARS = 200;

/** Reads an answer that is no success; whatever it says, it ends up as an `ApiError`. */
export async function readApiError(reply: ClientReply): Promise<ApiError> {
  const text = await readText(reply);
  const fields = errorFields(text);
  if (fields === undefined || typeof fields["message"] !== "string") {
    const page = visible(text.replace(/\s+/g, " ").trim().slice(0, PAGE_CHARS));
    return { status: reply.status, message: `the server answered ${reply.status}${page === "" ? "" : `: ${page}`}` };
  }
  const { code, message, request_id: requestId, line, column, suggestion } = fields;
  const hint = typeof suggestion === "string" && !message.includes(suggestion) ? `; did you mean ${suggestion}?` : "";
  return {
    status: reply.status,
    message: visible(message + hint),
    ...(typeof code === "string" ? { code } : {}),
    ...(typeof requestId === "string" ? { requestId: visible(requestId) } : {}),
    ...(typeof line === "number" ? { line } : {}),
    ...(typeof column === "number" || typeof column === "string" ? { column } : {}),
  };
}

function errorFields(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || !("error" in value)) return undefined;
    const { error } = value;
    return typeof error === "object" && error !== null ? (error as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** The failure that an error answer means for the command. */
export function apiFailure(error: ApiError, target: Target, detail?: string): CliError {
  const options = detail === undefined ? {} : { detail };
  if (error.status === 401 || error.status === 403) {
    const next = "set ENGINE_TOKEN, or run `engine login` or `engine connect URL --token TOKEN`";
    const what = target.token === undefined ? "the server wants a token" : "the server refuses this token";
    return new CliError(`${what} (${error.message}); ${next}`, EXIT.auth, options);
  }
  const id = error.status >= 500 && error.requestId !== undefined ? ` (request ${error.requestId})` : "";
  return new CliError(`${error.message}${id}`, EXIT.failed, options);
}

const UNREACHABLE: Readonly<Record<string, string>> = {
  ECONNREFUSED: "no engine answers",
  ENOTFOUND: "no such host",
  EAI_AGAIN: "the host name cannot be looked up",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
  ETIMEDOUT: "no connection within the time limit",
  UND_ERR_CONNECT_TIMEOUT: "no connection within the time limit",
};

/** Whether the request cannot have reached the server. */
export function neverConnected(error: unknown): boolean {
  return (systemCodeOf(error) ?? "") in UNREACHABLE;
}

/** The failure of a request that got no answer, or only part of one. */
export function connectionFailure(error: unknown, target: Target): CliError {
  const reason = UNREACHABLE[systemCodeOf(error) ?? ""];
  if (reason !== undefined) {
    const next = "start one with `engine serve`, or name another with `engine connect URL`";
    return new CliError(`${reason} at ${target.url}: ${next}`, EXIT.failed, { cause: error });
  }
  return new CliError(`the connection to ${target.url} broke: ${visible(messageOf(error))}`, EXIT.failed, {
    cause: error,
  });
}
