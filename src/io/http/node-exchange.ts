import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import {
  ClientGoneError,
  LINGER_MS,
  MAX_DISCARDED_BODY_BYTES,
  type HttpRequest,
  type HttpResponse,
  type HttpServerOptions,
  type BodyOptions,
  type StreamOptions,
} from "./http.ts";
import { checkHead, headerIn, headerText, type Target } from "./framing.ts";
import { textAddress } from "./request-text.ts";
import type { InFlight } from "./in-flight.ts";
import { RequestBody, type BodySource } from "./request-body.ts";
import { closeBody, closeIterator, isStreamed, prepareResponse, type PreparedResponse } from "./response.ts";
import type { Watchdog, Watched } from "./watchdog.ts";
import { acceptWebSocket } from "./node-websocket.ts";
import { webSocketOf, type WebSockets } from "./websocket-answer.ts";
import { webSocketOffer, type WebSocketAnswer, type WebSocketOffer } from "./websocket.ts";

/** What all exchanges of one server share. */
export type NodeServerState = {
  readonly options: HttpServerOptions;
  readonly clock: Clock;
  readonly watchdog: Watchdog;
  readonly inFlight: InFlight;
  /** Those of a connection that are not answered yet. */
  readonly exchanges: WeakMap<Duplex, Set<NodeExchange>>;
  /** Connections whose last answer was given. */
  readonly ended: WeakSet<Duplex>;
  readonly webSockets: WebSockets;
  draining: boolean;
};

/** How a request came that is not like the others. */
export type NodeArrival = {
  awaitsContinue?: boolean;
  /** What was read behind the head of one that asks for a WebSocket. */
  behindHead?: Buffer;
};

/** One request and its answer. */
export class NodeExchange implements HttpRequest, BodySource, Watched {
  readonly scheme: "http" | "https";
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly remoteAddress: string;
  readonly webSocket: WebSocketOffer | undefined;
  readonly #state: NodeServerState;
  readonly #message: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #names: string[] = [];
  readonly #values: string[] = [];
  /** Why the request is not to be trusted. */
  readonly #refusal: Error | undefined;
  readonly #body: RequestBody;
  readonly #behindHead: Buffer | undefined;
  #awaitsContinue: boolean;
  #reading = false;
  #abort: AbortController | undefined;
  #gone: ClientGoneError | undefined;
  #onGone: (() => void) | undefined;

  constructor(state: NodeServerState, message: IncomingMessage, response: ServerResponse, arrival: NodeArrival = {}) {
    this.#state = state;
    this.#message = message;
    this.#response = response;
    this.#awaitsContinue = arrival.awaitsContinue === true;
    this.#behindHead = arrival.behindHead;
    this.scheme = state.options.tls === undefined ? "http" : "https";
    this.method = message.method ?? "GET";
    let target: Target = { path: message.url ?? "/", query: "" };
    try {
      target = this.#readHead(message);
    } catch (error) {
      this.#refusal = error instanceof Error ? error : new Error(messageOf(error));
    }
    this.path = target.path;
    this.query = target.query;
    this.remoteAddress = textAddress(message.socket.remoteAddress ?? "");
    this.webSocket =
      arrival.behindHead === undefined ? undefined : webSocketOffer(this.method, (name) => this.header(name));
    this.#body = new RequestBody(this, state.clock, this.#announcedBytes(), state.options.overflowFolder);
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#gone !== undefined) this.#abort.abort(this.#gone);
    return this.#abort.signal;
  }

  header(name: string): string | undefined {
    return headerIn(this.#names, this.#values, name);
  }

  headerNames(): readonly string[] {
    return [...new Set(this.#names)];
  }

  body(limitBytes: number, options?: BodyOptions): Promise<Uint8Array> {
    return this.#body.whole(limitBytes, options);
  }

  stream(limitBytes: number, options?: StreamOptions): AsyncIterable<Uint8Array> {
    return this.#body.stream(limitBytes, options);
  }

  run(): void {
    const { exchanges, inFlight, options } = this.#state;
    const { socket } = this.#message;
    const others = exchanges.get(socket);
    if (others === undefined) exchanges.set(socket, new Set([this]));
    else others.add(this);
    inFlight.begin();
    this.#response.once("close", () => this.#closed());
    // Their cause is the end of the connection, which `close` reports too.
    this.#message.on("error", () => undefined);
    this.#response.on("error", () => undefined);
    const refusal = this.#refusal;
    if (refusal !== undefined) this.#linger();
    const answer = async () => {
      if (refusal !== undefined) throw refusal;
      return options.handler(this);
    };
    this.#respond(answer).catch((error: unknown) => this.#tear(error));
  }

  /** Makes this answer the connection's last; false when it has begun and says something else. */
  endAfterAnswer(): boolean {
    if (this.#response.headersSent) return false;
    this.#linger();
    return true;
  }

  /** What came of the body, if that is not all of it, cannot be read. */
  failBody(error: Error): void {
    if (!this.#message.complete) this.#body.fail(error);
  }

  /** Nothing came or went for the idle time. */
  stalled(): void {
    if (this.#response.headersSent && this.#message.socket.writableLength > 0) this.#message.socket.destroy();
  }

  check(): void {
    this.#body.checkProgress(this.#state.options.idleTimeoutMs);
  }

  pause(): void {
    this.#message.pause();
  }

  resume(): void {
    this.#state.watchdog.watch(this);
    if (this.#awaitsContinue) this.#response.writeContinue();
    this.#awaitsContinue = false;
    if (this.#reading) {
      this.#message.resume();
      return;
    }
    this.#reading = true;
    this.#message.on("data", (piece: Buffer) => this.#body.push(piece, false, true));
    this.#message.once("end", () => this.#body.push(new Uint8Array(0), true));
  }

  settled(): void {
    this.#state.watchdog.release(this);
  }

  #readHead({ rawHeaders, httpVersion, url = "/" }: IncomingMessage): Target {
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
      const name = rawHeaders[i]?.toLowerCase() ?? "";
      this.#names.push(name);
      this.#values.push(headerText(name, rawHeaders[i + 1] ?? ""));
    }
    const [names, values] = [this.#names, this.#values];
    return checkHead({ method: this.method, version: httpVersion, target: url, names, values });
  }

  #announcedBytes(): number | undefined {
    if (this.#refusal !== undefined || this.header("transfer-encoding") !== undefined) return undefined;
    return Number(this.header("content-length") ?? 0);
  }

  async #respond(answer: () => Promise<HttpResponse>): Promise<void> {
    let response: HttpResponse;
    let prepared: PreparedResponse;
    let webSocket: WebSocketAnswer | undefined;
    try {
      response = await answer();
      prepared = prepareResponse(this.method, response);
      webSocket = webSocketOf(this, response);
    } catch (error) {
      response = this.#state.options.renderError(error, this);
      prepared = prepareResponse(this.method, response);
    }
    if (this.#isGone() || prepared.body === undefined) await closeBody(response.body, this.#report);
    if (this.#isGone()) return;
    if (webSocket !== undefined) await this.#open(prepared, webSocket);
    else if (isStreamed(prepared.body)) await this.#stream(prepared, prepared.body);
    else {
      this.#writeHead(prepared);
      this.#response.end(prepared.body);
    }
  }

  #writeHead(prepared: PreparedResponse): void {
    const { headers, status, lengthBytes } = prepared;
    if (lengthBytes !== undefined) headers.push("Content-Length", String(lengthBytes));
    const missingBytes = this.#message.complete ? 0 : this.#body.missingBytes;
    this.#body.discard();
    // A client that was not told to continue may or may not send its body: what comes next can't be told apart.
    const linger = missingBytes > MAX_DISCARDED_BODY_BYTES || (missingBytes > 0 && this.#awaitsContinue);
    if (linger) this.#linger();
    this.#message.resume();
    if (this.#state.ended.has(this.#message.socket) || this.#state.draining) headers.push("Connection", "close");
    this.#response.writeHead(status, headers);
  }

  async #stream(prepared: PreparedResponse, body: AsyncIterable<Uint8Array>): Promise<void> {
    const response = this.#response;
    const iterator = body[Symbol.asyncIterator]();
    this.#onGone = () => void closeIterator(iterator, this.#report);
    let step: IteratorResult<Uint8Array>;
    try {
      step = await iterator.next();
    } catch (error) {
      this.#onGone = undefined;
      await this.#respond(() => Promise.reject(error));
      return;
    }
    if (this.#isGone()) return;
    this.#writeHead(prepared);
    while (step.done !== true) {
      if (!response.write(step.value)) await this.#drained();
      if (this.#isGone()) return;
      step = await iterator.next();
    }
    this.#onGone = undefined;
    response.end();
  }

  /** Gives the connection to the handler's WebSocket. */
  async #open({ headers }: PreparedResponse, answer: WebSocketAnswer): Promise<void> {
    const { webSockets, clock } = this.#state;
    this.#response.detachSocket(this.#message.socket);
    const head = this.#behindHead ?? Buffer.alloc(0);
    const connection = acceptWebSocket(this.#message, head, { headers, answer, clock });
    if (connection === undefined) this.#closed();
    else {
      await webSockets.serve(connection, answer);
      this.#state.exchanges.get(this.#message.socket)?.delete(this);
      this.#state.inFlight.end();
    }
  }

  /** Not an expression, since it changes while we wait and the compiler would not believe it. */
  #isGone(): boolean {
    return this.#gone !== undefined;
  }

  #drained(): Promise<void> {
    if (this.#isGone()) return Promise.resolve();
    const response = this.#response;
    return new Promise((resolve) => {
      const done = () => {
        response.off("drain", done);
        response.off("close", done);
        resolve();
      };
      response.on("drain", done);
      response.on("close", done);
    });
  }

  /** Sends nothing more, but takes what the client is still sending, until it closes or the time is up. */
  #linger(): void {
    const { socket } = this.#message;
    const message = this.#message;
    this.#state.ended.add(socket);
    // node:http calls this when a last answer is sent; its own would close the connection for both directions.
    socket.destroySoon = () => {
      socket.end();
      message.resume();
      const timer = this.#state.clock.after(LINGER_MS, () => socket.destroy(), { background: true });
      socket.once("close", () => timer.cancel());
    };
  }

  /** The answer has begun and can't be completed: what the client has must not look complete. */
  #tear(error: unknown): void {
    this.#onGone = undefined;
    if (this.#gone === undefined) this.#report(error);
    // In HTTP/1.0 the end of the connection may be that of the answer, so that it must not look like one.
    const { socket, httpVersion } = this.#message;
    if (httpVersion === "1.0" && this.scheme === "http") socket.resetAndDestroy();
    else this.#response.destroy();
  }

  #closed(): void {
    this.#state.exchanges.get(this.#message.socket)?.delete(this);
    if (!this.#response.writableFinished) {
      this.#gone = new ClientGoneError();
      this.#body.fail(this.#gone);
      this.#abort?.abort(this.#gone);
      this.#onGone?.();
    } else this.#body.discard();
    this.#state.inFlight.end();
  }

  readonly #report = (error: unknown): void => this.#state.options.reportFailure?.(error);
}
