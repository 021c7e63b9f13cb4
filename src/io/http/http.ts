/**
 * HTTP, as the rest of the program sees it. Two drivers serve this port: `uws.ts` (uWebSockets.js, where its binary
 * loads) and `node.ts` (node:http, everywhere). `contract.test.ts` runs the same tests against both.
 *
 * A handler gets a request whose headers are read and whose body is not, and resolves to a response. The driver
 * enforces limits on the wire (header size and time, body rate, idle time), reports a client that left by aborting
 * `request.signal`, pulls a streamed response body no faster than the client takes it, and stops pulling (calls
 * `return()` on the iterator) when the client leaves.
 */
export interface HttpServer {
  readonly driver: "uws" | "node";
  /** Binds and starts to accept. Rejects with a system error (`EADDRINUSE`, `EACCES`) when it can't. */
  listen(address: { host: string; port: number }): Promise<{ host: string; port: number }>;
  /**
   * Stops accepting connections, tells keep-alive clients to go (`Connection: close`), and resolves when every request
   * in flight is answered or `timeoutMs` passed.
   */
  drain(timeoutMs: number): Promise<void>;
  /** Closes everything at once. */
  close(): Promise<void>;
}

export interface HttpRequest {
  /** Upper case. */
  readonly method: string;
  /** The path as sent (not percent-decoded), without the query string. */
  readonly path: string;
  /** The query string without `?`; empty when there is none. */
  readonly query: string;
  /** Value of a header by its lower-case name; repeated headers are joined by `, `. */
  header(name: string): string | undefined;
  readonly remoteAddress: string;
  /** Aborted when the client goes away before the response is complete. */
  readonly signal: AbortSignal;
  /**
   * Reads the whole body as sent (still encoded). Rejects with `EngineError` `body_too_large` as soon as more than
   * `limitBytes` are announced or have arrived, without waiting for the rest. At most one of `body` and `stream` may be
   * called, once. The buffer belongs to the caller and is not shared (it may be transferred to a thread).
   */
  body(limitBytes: number): Promise<Uint8Array<ArrayBuffer>>;
  /** The body as sent, in pieces, with back-pressure: while a piece is being handled no more are read. */
  stream(limitBytes: number): AsyncIterable<Uint8Array>;
}

export type HttpResponse = {
  status: number;
  /** Names in their canonical spelling (`Content-Type`). `Content-Length` and `Transfer-Encoding` are the driver's. */
  headers: Record<string, string>;
  body?: string | Uint8Array | AsyncIterable<Uint8Array>;
};

export type HttpHandler = (request: HttpRequest) => Promise<HttpResponse>;

/** What a driver is made with. */
export type HttpServerOptions = {
  handler: HttpHandler;
  /** Answers a failure that happens before the handler is reached (oversized headers, malformed request). */
  renderError: (error: unknown, request: { header(name: string): string | undefined }) => HttpResponse;
  /** Total bytes of the request head. */
  maxHeaderBytes: number;
  /** Time a client has to send its whole request head. */
  headersTimeoutMs: number;
  /** Time a connection may stay silent while a body is due, or between requests. */
  idleTimeoutMs: number;
};
