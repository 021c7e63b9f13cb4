import type { Clock } from "../../core/clock.ts";
import { EngineError, messageOf } from "../../core/errors.ts";
import { checkHead, headBytes, headerIn, type Target } from "./framing.ts";
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
import type { InFlight } from "./in-flight.ts";
import { RequestBody, type BodySource } from "./request-body.ts";
import { textOfAddressBytes } from "./request-text.ts";
import { closeBody, closeIterator, isStreamed, prepareResponse, type PreparedResponse } from "./response.ts";
import type { UwsRequest, UwsResponse, UwsUpgradeContext } from "./uws-library.ts";
import { upgrade } from "./uws-websocket.ts";
import { bytesOf, MAX_CORKED_BYTES, UwsWriter, writeHead } from "./uws-writer.ts";
import type { Watchdog, Watched } from "./watchdog.ts";
import { webSocketOf, type WebSockets } from "./websocket-answer.ts";
import { webSocketOffer, type WebSocketAnswer, type WebSocketOffer } from "./websocket.ts";

/** What all exchanges of one server share. */
export type UwsServerState = {
  readonly options: HttpServerOptions;
  readonly clock: Clock;
  readonly watchdog: Watchdog;
  readonly inFlight: InFlight;
  readonly webSockets: WebSockets;
  draining: boolean;
  /** See `UwsExchange.resume`. */
  primed: boolean;
};

/** The library closes a connection that has waited for 8 to 12 s. One that may wait longer is touched this often. */
const REARM_MS = 3_000;

/**
 * One request and its answer. `#native` is there as long as the library's response object may be called: until the
 * answer is complete or the connection closed.
 */
export class UwsExchange implements HttpRequest, BodySource, Watched {
  readonly scheme: "http" | "https";
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly webSocket: WebSocketOffer | undefined;
  readonly #state: UwsServerState;
  readonly #names: string[] = [];
  readonly #values: string[] = [];
  readonly #refusal: Error | undefined;
  readonly #body: RequestBody;
  /** Of a request that may become a WebSocket. */
  readonly #context: UwsUpgradeContext | undefined;
  #native: UwsResponse | undefined;
  #remoteAddress: string | undefined;
  #paused = false;
  /** Whether the library's own time limit runs. It does from `resume` to the end of the body, or the next `pause`. */
  #armed = false;
  #armedAtMs = 0;
  #abort: AbortController | undefined;
  #gone: ClientGoneError | undefined;
  #onGone: (() => void) | undefined;
  /** Of a response that is not sent at once. */
  #writer: UwsWriter | undefined;
  #lingerUntilMs: number | undefined;

  constructor(state: UwsServerState, native: UwsResponse, request: UwsRequest, context?: UwsUpgradeContext) {
    this.#state = state;
    this.#native = native;
    this.scheme = state.options.tls === undefined ? "http" : "https";
    this.method = request.getCaseSensitiveMethod();
    request.forEach((name, value) => {
      this.#names.push(name);
      this.#values.push(value);
    });
    let target: Target = { path: request.getUrl(), query: request.getQuery() ?? "" };
    try {
      target = this.#checkHead(target);
    } catch (error) {
      this.#refusal = error instanceof Error ? error : new Error(messageOf(error));
    }
    this.path = target.path;
    this.query = target.query;
    this.#context = context;
    this.webSocket = context === undefined ? undefined : webSocketOffer(this.method, (name) => this.header(name));
    this.#body = new RequestBody(this, state.clock, this.#announcedBytes(), state.options.overflowFolder);
  }

  get remoteAddress(): string {
    if (this.#remoteAddress === undefined && this.#native !== undefined) {
      this.#remoteAddress = textOfAddressBytes(new Uint8Array(this.#native.getRemoteAddress()));
    }
    return this.#remoteAddress ?? "";
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
    const native = this.#native;
    if (native === undefined) return;
    this.#state.inFlight.begin();
    native.onAborted(() => this.#aborted());
    if (!this.#body.complete) native.onData((piece, last) => this.#received(new Uint8Array(piece), last));
    if (this.#refusal !== undefined) this.#refuse(this.#refusal);
    else this.#respond(async () => this.#state.options.handler(this)).catch((error: unknown) => this.#tear(error));
  }

  check(nowMs: number): void {
    const { idleTimeoutMs } = this.#state.options;
    if (this.#lingerUntilMs !== undefined) {
      if (nowMs >= this.#lingerUntilMs) this.#native?.close();
      return;
    }
    this.#body.checkProgress(idleTimeoutMs);
    if (this.#writer !== undefined && this.#writer.stalledMs(nowMs) >= idleTimeoutMs) this.#native?.close();
    else if (nowMs - this.#armedAtMs >= REARM_MS) this.#rearm();
  }

  pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    this.#armed = false;
    this.#native?.pause();
  }

  resume(): void {
    this.#state.watchdog.watch(this);
    // The library's `resume` restores what the last `pause` of any connection has saved: nothing, if there was none.
    if (!this.#state.primed) this.pause();
    this.#state.primed = true;
    this.#unpause();
  }

  settled(): void {
    const watched = this.#armed || this.#writer?.clogged === true || this.#lingerUntilMs !== undefined;
    if (!watched) this.#state.watchdog.release(this);
  }

  #unpause(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#armed = true;
    this.#armedAtMs = this.#state.clock.monotonicMs();
    this.#state.watchdog.watch(this);
    this.#native?.resume();
  }

  #checkHead({ path, query }: Target): Target {
    const { maxHeaderBytes } = this.#state.options;
    const [names, values] = [this.#names, this.#values];
    const targetBytes = this.method.length + path.length + query.length + 2;
    if (headBytes(targetBytes, names, values) > maxHeaderBytes) {
      throw new EngineError("headers_too_large", `the request's head has more than ${maxHeaderBytes} bytes`);
    }
    const target = query === "" ? path : `${path}?${query}`;
    return checkHead({ method: this.method, version: "1.1", target, names, values });
  }

  #announcedBytes(): number | undefined {
    if (this.#refusal !== undefined || this.header("transfer-encoding") !== undefined) return undefined;
    return Number(this.header("content-length") ?? 0);
  }

  #received(piece: Uint8Array, last: boolean): void {
    if (last) this.#armed = false;
    this.#body.push(piece, last);
    if (last && this.#lingerUntilMs !== undefined) this.#native?.close();
  }

  /**
   * Answers a request that is not to be trusted, but only when the library is done with all bytes it has read: a further
   * request among them then finds this one unanswered, and ends the connection.
   */
  #refuse(error: Error): void {
    this.#body.discard();
    this.#state.clock.after(0, () => {
      try {
        const prepared = prepareResponse(this.method, this.#state.options.renderError(error, this));
        if (this.#native !== undefined) this.#endAndLinger(this.#native, prepared);
      } catch (failure) {
        this.#tear(failure);
      }
    });
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
    if (this.#native === undefined || prepared.body === undefined) await closeBody(response.body, this.#report);
    if (this.#native === undefined) return;
    if (webSocket !== undefined) await this.#open(this.#native, prepared, webSocket);
    else if (isStreamed(prepared.body)) await this.#stream(prepared, prepared.body);
    else this.#end(this.#native, prepared);
  }

  #end(native: UwsResponse, prepared: PreparedResponse): void {
    const missingBytes = this.#body.missingBytes;
    this.#takeRest();
    const lengthBytes = prepared.lengthBytes ?? 0;
    if (prepared.body !== undefined && lengthBytes > MAX_CORKED_BYTES) this.#startWriter(native, prepared).endInSteps();
    else if (missingBytes > MAX_DISCARDED_BODY_BYTES) this.#endAndLinger(native, prepared);
    else this.#endAtOnce(native, prepared);
  }

  /** Gives the connection to the handler's WebSocket. */
  async #open(native: UwsResponse, { headers }: PreparedResponse, answer: WebSocketAnswer): Promise<void> {
    const { clock, webSockets, watchdog, inFlight } = this.#state;
    const key = this.header("sec-websocket-key") ?? "";
    this.#native = undefined;
    watchdog.release(this);
    await webSockets.serve(upgrade(native, { key, context: this.#context, headers, answer, clock }), answer);
    inFlight.end();
  }

  #endAtOnce(native: UwsResponse, prepared: PreparedResponse): void {
    const { body, lengthBytes } = prepared;
    const close = this.#state.draining;
    this.#finish();
    native.cork(() => {
      writeHead(native, prepared, close && body === undefined);
      if (body !== undefined) {
        native.end(body as string | Uint8Array, close);
        return;
      }
      if (lengthBytes !== undefined) native.writeHeader("Content-Length", String(lengthBytes));
      native.endWithoutBody();
    });
  }

  /**
   * Sends the answer and goes on to read, because closing the connection now could destroy the answer. The library
   * knows no such thing: to it this is a response of headers only, the last of which brings the body along.
   */
  #endAndLinger(native: UwsResponse, prepared: PreparedResponse): void {
    const { clock, watchdog, inFlight } = this.#state;
    const head = Buffer.from(`${new Date(clock.nowMs()).toUTCString()}\r\n\r\n`, "latin1");
    const body = bytesOf(prepared);
    // The library ends every header with a line break; the last one becomes part of the body.
    const lengthBytes = prepared.body === undefined ? prepared.lengthBytes : body.length + 2;
    native.cork(() => {
      writeHead(native, prepared, true);
      if (lengthBytes !== undefined) native.writeHeader("Content-Length", String(lengthBytes));
      native.writeHeader("Date", Buffer.concat([head, body]));
    });
    this.#lingerUntilMs = clock.monotonicMs() + LINGER_MS;
    watchdog.watch(this);
    inFlight.end();
    if (this.#body.complete) native.close();
  }

  async #stream(prepared: PreparedResponse, body: AsyncIterable<Uint8Array>): Promise<void> {
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
    if (this.#native === undefined) return;
    this.#takeRest();
    const writer = this.#startWriter(this.#native, prepared);
    while (step.done !== true) {
      if (!(await writer.write(step.value))) return;
      step = await iterator.next();
    }
    this.#onGone = undefined;
    writer.endStream();
  }

  #startWriter(native: UwsResponse, prepared: PreparedResponse): UwsWriter {
    this.#writer = new UwsWriter(this.#state, native, prepared, {
      clogged: () => this.#state.watchdog.watch(this),
      flowing: () => this.settled(),
      complete: () => this.#finish(),
    });
    return this.#writer;
  }

  /** Makes the library start its count of seconds again. */
  #rearm(): void {
    this.#armedAtMs = this.#state.clock.monotonicMs();
    if (this.#writer?.clogged === true) this.#writer.push();
    else if (!this.#paused) {
      this.pause();
      this.#unpause();
    }
  }

  /** What still arrives of the request is read and dropped. */
  #takeRest(): void {
    this.#body.discard();
    // Before anything is written: the library's `resume` goes wrong on a connection with unsent bytes.
    this.#unpause();
  }

  #finish(): void {
    this.#native = undefined;
    this.#state.watchdog.release(this);
    this.#state.inFlight.end();
  }

  /** The answer has begun and can't be completed: what the client has must not look complete. */
  #tear(error: unknown): void {
    this.#onGone = undefined;
    if (this.#gone === undefined) this.#report(error);
    this.#native?.close();
  }

  #aborted(): void {
    const lingered = this.#lingerUntilMs !== undefined;
    this.#native = undefined;
    this.#state.watchdog.release(this);
    if (lingered) return;
    this.#gone = new ClientGoneError();
    this.#body.fail(this.#gone);
    this.#abort?.abort(this.#gone);
    this.#onGone?.();
    this.#writer?.gone();
    this.#state.inFlight.end();
  }

  readonly #report = (error: unknown): void => this.#state.options.reportFailure?.(error);
}
