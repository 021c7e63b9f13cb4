import type { Clock } from "../../core/clock.ts";
import type { TlsPair } from "./tls.ts";
import type { WebSocketAnswer, WebSocketOffer } from "./websocket.ts";

/**
 * HTTP, as the rest of the program sees it. Two drivers serve this port: `uws.ts` (uWebSockets.js, where its binary
 * loads and somebody asks for it) and `node.ts` (node:http). `contract.test.ts` runs the same tests against both.
 *
 * A handler gets a request whose headers are read and whose body is not, and resolves to a response. The driver
 * enforces limits on the wire (header size and time, body rate, idle time), reports a client that left by aborting
 * `request.signal`, pulls a streamed response body no faster than the client takes it, and stops pulling (calls
 * `return()` on the iterator) when the client leaves.
 *
 * A response that is complete before its request's body is read (a refusal, mostly) reaches the client all the same: a
 * small rest of the body is read and dropped, for a large one the answer says `Connection: close` and the connection
 * stays open for a moment to take what is already under way, because closing at once would reset it and could destroy
 * the answer. What the body's sender may do: be silent for `idleTimeoutMs`, or slower than
 * `MIN_BODY_BYTES_PER_SEC` on average after that time; then reading it rejects with `request_timeout`.
 *
 * Over TLS a client that ends its direction of the connection has left.
 *
 * A request that asks for a WebSocket is a request like the others until a handler answers it with one (`websocket.ts`).
 * Any other answer refuses it, and the `node` driver then ends the connection. A request that wants its connection to
 * become something else is answered as if it did not.
 *
 * A request is what `framing.ts` says, or is refused: header text is UTF-8 and arrives byte for byte, nothing that follows a
 * body is ever part of it, and every refusal has our shape (`renderError`). HTTP/1.0 is answered as such; a target may be
 * the whole URL.
 *
 * Where uWebSockets.js leaves no choice, the `uws` driver differs from `node`. The first three are why nobody gets it who
 * does not ask for it (`create.ts`), and why it listens on loopback only (`roles/http.ts`):
 * - It loses bytes outside of ASCII at both ends of a header's value: of the keys `commande-é` and `commande-è` it makes one.
 * - It takes two bytes of any kind for the line break behind a chunk, blanks around a chunk's size, and what follows the last
 *   chunk (trailers) for requests. `corpus.test-kit.ts` has all that was found.
 * - A malformed request, HTTP/1.0, a target that is a URL and more than 100 headers are answered in uWebSockets' own words,
 *   without `renderError`; a head that isn't complete in time ends the connection without an answer.
 * - It has no bound of connections.
 * - The time for a TLS handshake, for the request head, and between requests, is 10 s (±2 s), whatever the options say.
 * - `100 Continue` goes out as soon as the head is read, so a body that is too large gets its 413 after it.
 * - A request that arrives before the previous one on its connection is answered (pipelining) ends the connection,
 *   unless the previous handler finished without waiting for anything. No client in common use does that.
 * - While a body is not being read, that its client left goes unnoticed. (With `node`: while it waits for its WebSocket.)
 * - A WebSocket can't be made to wait: see `websocket.ts`. A message of more than `MAX_MESSAGE_BYTES` breaks it.
 */
export interface HttpServer {
  readonly driver: "uws" | "node";
  /** Binds and starts to accept. Rejects with a system error (`EADDRINUSE`, `EACCES`) when it can't. */
  listen(address: { host: string; port: number }): Promise<{ host: string; port: number }>;
  /**
   * Stops accepting connections, tells keep-alive clients to go (`Connection: close`) and closes WebSockets (1001), and
   * resolves when every request in flight is answered and what used the WebSockets is done, or `timeoutMs` passed.
   */
  drain(timeoutMs: number): Promise<void>;
  /** Closes everything at once. */
  close(): Promise<void>;
  /**
   * Of a server with TLS: connections that are opened from here on get that certificate, those that are open keep theirs.
   * Throws, and changes nothing, when it cannot be used.
   */
  useTlsPair(pair: TlsPair): void;
}

export interface HttpRequest {
  /** `https` where this server itself speaks TLS. */
  readonly scheme: "http" | "https";
  /** Upper case. */
  readonly method: string;
  /** The path as sent (not percent-decoded), without the query string. */
  readonly path: string;
  /** The query string without `?`; empty when there is none. */
  readonly query: string;
  /** Value of a header by its lower-case name; repeated headers are joined by `, `. */
  header(name: string): string | undefined;
  /** The lower-case names of all headers, each once. */
  headerNames(): readonly string[];
  /** In text, IPv4 where the address is one mapped into IPv6. Unknown (empty) unless first asked before the answer. */
  readonly remoteAddress: string;
  /** Aborted, with a `ClientGoneError`, when the client goes away before the response is complete. */
  readonly signal: AbortSignal;
  /** What it asks for, where it may be answered with a WebSocket. */
  readonly webSocket: WebSocketOffer | undefined;
  /**
   * Reads the whole body as sent (still encoded). Rejects with `EngineError` `body_too_large` as soon as more than
   * `limitBytes` are announced or have arrived, without waiting for the rest, `request_timeout` when it does not come
   * in time, `bad_request` when its framing is broken, and with `ClientGoneError` when the client leaves. At most one of
   * `body` and `stream` may be called, once. The buffer belongs to the caller.
   */
  body(limitBytes: number, options?: BodyOptions): Promise<Uint8Array>;
  /**
   * The body as sent, in pieces, with back-pressure: while a piece is being handled no more are read than what was
   * already under way. Fails as `body` does, and with `BodyDiscarded` once the answer has begun before all of it was read.
   */
  stream(limitBytes: number, options?: StreamOptions): AsyncIterable<Uint8Array>;
}

export type BodyOptions = {
  /**
   * Called before the buffer takes more memory than the headers announce, with all that it takes then; reading rejects
   * with what it throws.
   */
  onGrow?: (sizeBytes: number) => void;
  /**
   * Take a large body into a buffer of `core/buffer-pool.ts`, which other threads can read in place; the caller gives it
   * back.
   */
  shared?: boolean;
};

export type StreamOptions = {
  /**
   * A large piece may lie in a buffer of `core/buffer-pool.ts` of its own, which whoever takes the piece gives back; any
   * piece may be handed to `releaseShared`.
   */
  shared?: boolean;
};

export type HttpResponse = {
  status: number;
  /**
   * Names in their canonical spelling (`Content-Type`). `Content-Length`, `Transfer-Encoding`, `Connection` and `Date`
   * are the driver's and left out here, but for the `Content-Length` of an answer to HEAD without a body, and of a
   * streamed body whose length is known; one that turns out to be of another length tears the connection.
   */
  headers: Record<string, string>;
  /** The values of several `Set-Cookie`, which is the one header that cannot be joined (RFC 9110 §5.3). */
  cookies?: readonly string[];
  /**
   * Pieces of a streamed body must not be changed after they were handed over. The head is sent with the first piece:
   * an iterator that fails before it has yielded becomes an ordinary error answer, one that fails later tears the
   * connection, so that the client sees that something is missing.
   */
  body?: string | Uint8Array | AsyncIterable<Uint8Array>;
  /**
   * Makes the connection a WebSocket, if the request asks for one; the status must be 101 then, and there is no body.
   */
  webSocket?: WebSocketAnswer;
};

export type HttpHandler = (request: HttpRequest) => Promise<HttpResponse>;

/** What a driver is made with. */
export type HttpServerOptions = {
  handler: HttpHandler;
  /** Answers a failure outside the handler (oversized headers, malformed request), and a handler that rejects. */
  renderError: (error: unknown, request: { header(name: string): string | undefined }) => HttpResponse;
  /** Total bytes of the request head. */
  maxHeaderBytes: number;
  /** Time a client has to send its whole request head. */
  headersTimeoutMs: number;
  /** Time a connection may stay silent while a body is due, or not take a byte of a response. */
  idleTimeoutMs: number;
  /** Time a connection may wait for its next request; `idleTimeoutMs` unless given. */
  keepAliveMs?: number;
  /** Connections beyond so many are closed when they are opened; as many as the system allows unless given. */
  maxConnections?: number;
  /** Told of each connection that was closed for that. */
  reportRefused?: () => void;
  /** Told of what nobody else can be told: a response body that failed when part of it was sent. */
  reportFailure?: (error: unknown) => void;
  /** The server speaks TLS with it, and nothing else. */
  tls?: TlsPair;
  /** For what of bodies comes faster than it is taken; made when it is needed. The one for temporary files unless given. */
  overflowFolder?: string;
  /** The system's unless given. */
  clock?: Clock;
};

/** For whoever still reads a request's body when its answer begins: the rest is not read, and was not the end of it. */
export class BodyDiscarded extends Error {
  constructor() {
    super("the rest of the body is not read: its answer has begun");
    this.name = "BodyDiscarded";
  }
}

/** The client left before its response was complete. */
export class ClientGoneError extends Error {
  constructor() {
    super("the client closed the connection");
    this.name = "ClientGoneError";
  }
}

/** What a client must send of a body, on average, to be waited for longer than `idleTimeoutMs`. */
export const MIN_BODY_BYTES_PER_SEC = 1024;

/** How much of a body that nobody wants is read to keep its connection usable (the number is Go's net/http's). */
export const MAX_DISCARDED_BODY_BYTES = 256 * 1024;

/** How long a connection is kept after its last answer, so that a client that is still sending gets to read it. */
export const LINGER_MS = 5_000;
