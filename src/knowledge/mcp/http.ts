import { bearerOf, unauthorized } from "../../auth/authenticator.ts";
import { isToken } from "../../auth/tokens.ts";
import { EngineError } from "../../core/errors.ts";
import type { HttpResponse } from "../../io/http/http.ts";
import type { Call } from "../../server/route.ts";
import { eventStream } from "../../server/server-sent-events.ts";
import type { McpDeps } from "./deps.ts";
import { ListChanges, type ListStream } from "./list-changes.ts";
import type { LentTools } from "./lent-tools.ts";
import { MCP_METRICS } from "./metrics.ts";
import type { Protocol } from "./protocol.ts";
import type { Asker } from "./server.ts";

/** A request to MCP whose body is read. */
export type McpCall = Pick<Call, "caller" | "authenticateAgain" | "requestId" | "clientAddress"> & {
  request: Pick<Call["request"], "header" | "signal">;
  json: unknown;
  headers: { "x-database": string };
};

/** What decides how the library reads a request. The rest of its headers was looked at before. */
const PASSED = ["mcp-protocol-version", "mcp-method", "mcp-name"];
/** A client that reads one form of answers only gets that one: JSON where it can be. */
const ACCEPTED = "application/json, text/event-stream";

/** MCP over HTTP ("streamable HTTP"), without sessions, so that any node answers any request. */
export class McpHttp {
  readonly #deps: McpDeps;
  readonly #changes: ListChanges;
  #loading: Promise<Protocol> | undefined;

  constructor(deps: McpDeps) {
    this.#deps = deps;
    this.#changes = new ListChanges(deps);
    MCP_METRICS.of(deps.metrics).streams.watch({}, () => this.#changes.count);
  }

  async announce(): Promise<void> {
    await this.#changes.announce();
  }

  /** When the server drains: what is asked is answered, streams end. */
  endStreams(): void {
    this.#changes.endStreams();
  }

  close(): void {
    this.#changes.close();
  }

  async post(call: McpCall): Promise<HttpResponse> {
    const { json } = call;
    const { signal } = call.request;
    const lent = this.#lentTo(call);
    if (lent !== undefined && isListen(json)) throw unchanging();
    // One that lasts is counted, ends with the token, and when the server drains.
    const stream = isListen(json) ? this.#changes.open(call) : undefined;
    const request = requestOf(call, stream === undefined ? signal : AbortSignal.any([signal, stream.ended]));
    const asker: Asker = {
      caller: call.caller,
      address: call.clientAddress,
      requestId: () => call.requestId,
      database: call.headers["x-database"],
      signal,
      lent,
    };
    try {
      const protocol = await this.#protocol();
      return await responseOf(await protocol.answer(request, asker, json), stream);
    } catch (error) {
      stream?.end();
      throw error;
    }
  }

  /** The stream of a client of an earlier protocol. */
  get(call: Omit<Call, "json">): HttpResponse {
    if (this.#lentTo(call) !== undefined) throw unchanging();
    return eventStream({ events: this.#changes.open(call), clock: this.#deps.clock });
  }

  /** What the program of a run is lent; undefined for everybody else. Throws `unauthorized` when the run is over. */
  #lentTo({ request }: { request: Pick<Call["request"], "header"> }): LentTools | undefined {
    const token = bearerOf(request.header("authorization"));
    if (token === undefined || !isToken("run", token)) return undefined;
    const lent = this.#deps.lent?.find(token);
    if (lent !== undefined) return lent;
    throw unauthorized("the run of this token is over, or on another node", "invalid_token");
  }

  /** Loaded with the first request: it takes a tenth of a second, and most servers are never asked. */
  #protocol(): Promise<Protocol> {
    this.#loading ??= import("./protocol.ts").then((loaded) => new loaded.Protocol(this.#deps, this.#changes.bus));
    return this.#loading;
  }
}

/** What clients take as: there are no such notifications. */
function unchanging(): EngineError {
  return new EngineError("method_not_allowed", "the tools of a run do not change", { headers: { Allow: "POST" } });
}

function isListen(json: unknown): boolean {
  return typeof json === "object" && json !== null && "method" in json && json.method === "subscriptions/listen";
}

/** Its body is given beside it. */
function requestOf({ request }: McpCall, signal: AbortSignal): Request {
  const headers = new Headers({ "Content-Type": "application/json", Accept: ACCEPTED });
  for (const name of PASSED) {
    const value = request.header(name);
    if (value === undefined) continue;
    if (!/^[\x20-\x7e]*$/.test(value)) throw new EngineError("invalid_header", `header ${name} is not visible ASCII`);
    headers.set(name, value);
  }
  return new Request("http://mcp.invalid/mcp/v1", { method: "POST", headers, signal });
}

async function responseOf(answer: Response, stream: ListStream | undefined): Promise<HttpResponse> {
  const headers: Record<string, string> = { "Cache-Control": "no-store" };
  const contentType = answer.headers.get("content-type");
  if (contentType !== null) headers["Content-Type"] = contentType;
  const { status, body } = answer;
  if (body === null) {
    stream?.end();
    return { status, headers };
  }
  if (contentType?.startsWith("text/event-stream") !== true) {
    stream?.end();
    return { status, headers, body: await answer.text() };
  }
  return { status, headers: { ...headers, "X-Accel-Buffering": "no" }, body: streamed(body, stream) };
}

async function* streamed(
  body: ReadableStream<Uint8Array>,
  stream: ListStream | undefined,
): AsyncGenerator<Uint8Array, void> {
  const reader = body.getReader();
  const leave = (): void => void reader.cancel().catch(() => undefined);
  stream?.ended.addEventListener("abort", leave, { once: true });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    leave();
    stream?.end();
  }
}
