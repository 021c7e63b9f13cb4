import { once } from "node:events";
import { request as sendRequest, type IncomingMessage } from "node:http";
import { Duplex, PassThrough, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { roleIncludes, type Caller } from "../../../auth/caller.ts";
import { pause, type Clock } from "../../../core/clock.ts";
import { EngineError, messageOf } from "../../../core/errors.ts";
import { BodyDiscarded, type HttpRequest, type HttpResponse } from "../../../io/http/http.ts";
import type { Sandbox } from "../scheduler/sandbox.ts";
import { defineRoute } from "../../../server/route.ts";
import type { SandboxDeps } from "./deps.ts";
import { callNode, inState } from "./node-call.ts";
import { portRequestHeaders, portResponseHeaders } from "./port-headers.ts";
import { upgradePort } from "./port-websocket.ts";

/** Requests to programs that listen in a sandbox, and their answers. */

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
const MOST_BODY_BYTES = 1024 ** 3;
/** What a program may take until the head of its answer comes. */
const ANSWER_MS = 60_000;
/** A program that has answered, and takes nothing of a body for so long, wants no more of it. */
const STALLED_MS = 1_000;
/** A program that gets no more of a body, because its answer is under way, and sends nothing for so long waits for it. */
const CUT_SILENCE_MS = 10_000;

const PATH = "/api/v1/sandboxes/{id}/ports/{port}/";
const portNumber = z
  .string()
  .regex(/^\d{1,5}$/, "is the number of a port")
  .transform(Number);
const place = z.object({ id: z.string(), port: portNumber });

function routeOf(method: (typeof METHODS)[number], path: string) {
  return defineRoute({
    role: method === "GET" ? "read" : "write",
    tag: "Sandboxes",
    method,
    path,
    summary: "Ask a program that listens in a sandbox",
    description:
      "Passed on as HTTP/1.1 to a port that the sandbox declares; a port that it does not is not found. The program does " +
      "not see `Authorization`, `Cookie`, `Origin` and `Referer`, and is told the address by `X-Forwarded-Prefix`. What " +
      "it answers is not trusted: cookies and the like are left out, and browsers show its pages inert " +
      "(`Content-Security-Policy: sandbox`). A body is passed on before the answer is; a program that waits for its answer " +
      "to be read, before it reads on, breaks the exchange. WebSockets are passed on too, message by message; they need " +
      "the role `write`.",
    params: path === PATH ? place : place.extend({ path: z.string() }),
    ...(method === "GET" && { webSocket: "optional" }),
    ...(method !== "GET" && {
      body: { types: ["*/*"], description: "As the program takes it.", limitBytes: MOST_BODY_BYTES },
    }),
    responses: [{ status: 200, description: "What the program answers, with its own status." }],
    errors: ["not_found", "sandbox_not_found", "sandbox_invalid_state", "sandbox_timeout", "timeout", "unavailable"],
    handler:
      (deps: SandboxDeps) =>
      async ({ caller, params: { id, port }, request }) => {
        checkMayUpgrade(request, caller);
        const asked = await deps.sandboxes.get(id, caller);
        if (!asked.spec.ports.some((declared) => declared.port === port)) {
          throw new EngineError("not_found", `the sandbox declares no port ${port}`);
        }
        const sandbox = await inState(deps, asked, { allowed: ["running"], asker: caller, signal: request.signal });
        return await new PortRequest(deps, { sandbox, port, request }).answer();
      },
  });
}

export const PORT_ROUTES = METHODS.flatMap((method) => [routeOf(method, PATH), routeOf(method, `${PATH}{*path}`)]);

type Asked = { sandbox: Sandbox; port: number; request: HttpRequest };

class PortRequest {
  readonly #deps: SandboxDeps;
  readonly #asked: Asked;
  readonly #address: { port: number; prefix: string };
  /** Aborted when nobody waits any more. */
  readonly #over = new AbortController();
  #sentBytes = 0;
  #isSending = true;

  constructor(deps: SandboxDeps, asked: Asked) {
    this.#deps = deps;
    this.#asked = asked;
    const { sandbox, port } = asked;
    this.#address = { port, prefix: `/api/v1/sandboxes/${sandbox.id}/ports/${port}` };
  }

  async answer(): Promise<HttpResponse> {
    const { request } = this.#asked;
    const over = () => this.#over.abort();
    request.signal.addEventListener("abort", over, { once: true });
    if (request.signal.aborted) over();
    try {
      const connection = await this.#connect();
      if (request.webSocket !== undefined) return await this.#upgrade(connection);
      const message = await this.#send(connection);
      return {
        status: message.statusCode ?? 502,
        headers: portResponseHeaders(message.rawHeaders, this.#address),
        body: new AnswerBody(message, { over, isWaiting: () => this.#isSending, clock: this.#deps.clock }),
      };
    } catch (error) {
      over();
      throw error;
    }
  }

  async #upgrade(connection: Duplex): Promise<HttpResponse> {
    const { request } = this.#asked;
    const { clock } = this.#deps;
    const late = new AbortController();
    const timer = clock.after(ANSWER_MS, () => late.abort(tooLate()));
    try {
      return await upgradePort({
        connection,
        request,
        address: this.#address,
        path: this.#target(),
        signal: AbortSignal.any([this.#over.signal, late.signal]),
        clock,
        onEnd: () => this.#over.abort(),
      });
    } finally {
      timer.cancel();
    }
  }

  async #connect(): Promise<Duplex> {
    const { sandbox, port } = this.#asked;
    const input = new PassThrough();
    const { signal } = this.#over;
    const { body } = await callNode(this.#deps, sandbox, { method: "connect", params: { port }, body: input, signal });
    if (body === undefined) throw new EngineError("internal", "the node sends nothing from the port");
    const connection = Duplex.from({ readable: body, writable: input });
    signal.addEventListener("abort", () => connection.destroy(), { once: true });
    return connection;
  }

  async #send(connection: Duplex): Promise<IncomingMessage> {
    const { request } = this.#asked;
    const { clock } = this.#deps;
    const answered = Promise.withResolvers<IncomingMessage>();
    const outgoing = sendRequest({
      createConnection: () => connection,
      method: request.method,
      path: this.#target(),
      headers: [...portRequestHeaders(request, this.#address), ...framingOf(request)].flat(),
    });
    outgoing.once("response", answered.resolve);
    outgoing.on("error", (error) => answered.reject(this.#broken(error)));
    const timer = clock.after(ANSWER_MS, () => answered.reject(tooLate()));
    // A program may answer, and break off, before it has read everything.
    const sent = pipeline(Readable.from(this.#body()), outgoing)
      .catch((error: unknown) => answered.reject(error instanceof EngineError ? error : this.#broken(error)))
      .finally(() => (this.#isSending = false));
    try {
      const message = await answered.promise;
      await this.#untilSent(sent, message);
      return message;
    } finally {
      timer.cancel();
    }
  }

  async *#body(): AsyncGenerator<Uint8Array> {
    const { request } = this.#asked;
    if (!hasBody(request)) return;
    try {
      for await (const piece of request.stream(MOST_BODY_BYTES)) {
        yield piece;
        this.#sentBytes += piece.length;
      }
    } catch (error) {
      if (!(error instanceof BodyDiscarded)) throw error;
      // Not ended, for that would look like all of it, nor broken off, for the rest of the answer comes the same way.
      const { signal } = this.#over;
      if (!signal.aborted) await once(signal, "abort");
      throw error;
    }
  }

  /** Where the answer begins, the server takes no more of the request: so that waits while the program still reads. */
  async #untilSent(sent: Promise<void>, message: IncomingMessage): Promise<void> {
    const stop = new AbortController();
    const end = () => stop.abort();
    void sent.then(end);
    message.once("close", end);
    for (let beforeBytes = -1; !stop.signal.aborted && this.#sentBytes > beforeBytes;) {
      beforeBytes = this.#sentBytes;
      await pause(this.#deps.clock, STALLED_MS, stop.signal);
    }
  }

  /** As the client wrote it: what `%` and `/` in it mean is up to the program. */
  #target(): string {
    const { path, query } = this.#asked.request;
    const rest = path.split("/").slice(7).join("/");
    return `/${rest}${query === "" ? "" : `?${query}`}`;
  }

  #broken(error: unknown): EngineError {
    const message = `the connection to port ${this.#asked.port} broke: ${messageOf(error)}`;
    return new EngineError("unavailable", message, { cause: error });
  }
}

function tooLate(): EngineError {
  return new EngineError("timeout", `nothing was answered within ${ANSWER_MS / 1_000} s`);
}

/** What a client says there may change as much as any other request. Throws `forbidden`. */
function checkMayUpgrade({ webSocket }: HttpRequest, { role }: Caller): void {
  if (webSocket === undefined || roleIncludes(role, "write")) return;
  throw new EngineError("forbidden", `a WebSocket needs the role write; the token has ${role}`);
}

function framingOf(request: HttpRequest): [string, string][] {
  const isChunked = hasBody(request) && request.header("content-length") === undefined;
  return [["connection", "close"], ...(isChunked ? [["transfer-encoding", "chunked"] as [string, string]] : [])];
}

function hasBody(request: HttpRequest): boolean {
  const length = request.header("content-length");
  return request.header("transfer-encoding") !== undefined || (length !== undefined && length !== "0");
}

type AnswerPorts = {
  /** Nobody reads on, or there is no more. */
  over: () => void;
  /** Whether the program has not been given all of the request. */
  isWaiting: () => boolean;
  clock: Clock;
};

/**
 * By hand: whoever gives up must not wait for a piece that does not come. With the first piece the answer begins, and a
 * program that has not been given all of the request gets no more of it; if it is silent then, the answer breaks.
 */
class AnswerBody implements AsyncIterableIterator<Uint8Array> {
  readonly #pieces: AsyncIterator<Uint8Array>;
  readonly #ports: AnswerPorts;
  #hasBegun = false;

  constructor(message: IncomingMessage, ports: AnswerPorts) {
    this.#pieces = (message as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    this.#ports = ports;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    const step = await (this.#hasBegun && this.#ports.isWaiting() ? this.#nextInTime() : this.#pieces.next());
    this.#hasBegun = true;
    if (step.done !== true) return step;
    this.#ports.over();
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    this.#ports.over();
    return { done: true, value: undefined };
  }

  async #nextInTime(): Promise<IteratorResult<Uint8Array>> {
    const { clock, over } = this.#ports;
    const silent = Promise.withResolvers<never>();
    const timer = clock.after(CUT_SILENCE_MS, () => {
      over();
      silent.reject(
        new EngineError("unavailable", "the program waits for the rest of a body, of which it gets no more"),
      );
    });
    try {
      return await Promise.race([this.#pieces.next(), silent.promise]);
    } finally {
      timer.cancel();
    }
  }
}
