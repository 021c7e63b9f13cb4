import { createServer, ServerResponse, type IncomingMessage, type Server, type ServerOptions } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { systemClock, type Clock } from "../../core/clock.ts";
import { EngineError, systemCodeOf } from "../../core/errors.ts";
import { LINGER_MS, type HttpResponse, type HttpServer, type HttpServerOptions } from "./http.ts";
import { InFlight } from "./in-flight.ts";
import { NodeExchange, type NodeArrival, type NodeServerState } from "./node-exchange.ts";
import { prepareResponse } from "./response.ts";
import { MIN_TLS_VERSION, TLS_CIPHERS, type TlsPair } from "./tls.ts";
import { Watchdog } from "./watchdog.ts";
import { WebSockets } from "./websocket-answer.ts";
import { webSocketOffer } from "./websocket.ts";

/** The driver on `node:http`: for every platform, and the one whose behaviour the other is measured by. */
export class NodeHttpServer implements HttpServer {
  readonly driver = "node";
  readonly #options: HttpServerOptions;
  readonly #clock: Clock;
  readonly #server: Server | TlsServer;
  /** Connections whose handshake is done. */
  readonly #secured = new WeakSet<Duplex>();
  readonly #state: NodeServerState;
  /** Connections that are no longer the server's: those of WebSockets, and of requests for one. */
  readonly #upgraded = new Set<Duplex>();

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#state = {
      options,
      clock: this.#clock,
      watchdog: new Watchdog(this.#clock, options.idleTimeoutMs),
      inFlight: new InFlight(),
      exchanges: new WeakMap(),
      ended: new WeakSet(),
      webSockets: new WebSockets((error) => options.reportFailure?.(error)),
      draining: false,
    };
    this.#server = this.#create();
  }

  listen(address: { host: string; port: number }): Promise<{ host: string; port: number }> {
    const server = this.#server;
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen({ ...address, exclusive: true }, () => {
        server.removeListener("error", reject);
        resolve({ host: address.host, port: (server.address() as AddressInfo).port });
      });
    });
  }

  async drain(timeoutMs: number): Promise<void> {
    this.#state.draining = true;
    // Also closes connections between two requests.
    if (this.#server.listening) this.#server.close();
    this.#state.webSockets.leave();
    await this.#state.inFlight.none(this.#clock, timeoutMs);
  }

  async close(): Promise<void> {
    this.#state.draining = true;
    this.#state.watchdog.stop();
    const closed = new Promise<void>((resolve) => this.#server.once("close", resolve));
    const wasOpen = this.#server.listening;
    if (wasOpen) this.#server.close();
    this.#server.closeAllConnections();
    for (const socket of this.#upgraded) socket.destroy();
    if (wasOpen) await closed;
  }

  useTlsPair(pair: TlsPair): void {
    if (!("setSecureContext" in this.#server)) throw new Error("the server was made without TLS");
    this.#server.setSecureContext(secureContextOf(pair));
  }

  #create(): Server | TlsServer {
    const { idleTimeoutMs, tls, maxConnections } = this.#options;
    const server = tls === undefined ? createServer(this.#settings()) : this.#createTls(tls);
    server.timeout = idleTimeoutMs;
    // All that came, up to the limit of their bytes: what is left out here nobody could check.
    server.maxHeadersCount = 0;
    if (maxConnections !== undefined) server.maxConnections = maxConnections;
    server.on("request", (message, response) => this.#accept(message, response));
    server.on("checkContinue", (message, response) => this.#accept(message, response, { awaitsContinue: true }));
    // An expectation that is not known asks for nothing (RFC 9110 §10.1.1).
    server.on("checkExpectation", (message, response) => this.#accept(message, response));
    server.on("connect", (_message, socket) => {
      this.#takeOver(socket);
      this.#refuse(socket, new EngineError("bad_request", "this server is no proxy: it has nothing to CONNECT to"));
    });
    server.on("drop", () => this.#options.reportRefused?.());
    server.on("upgrade", (message, _socket, behindHead) => this.#acceptUpgrade(message, behindHead));
    server.on("clientError", (error, socket) => this.#clientError(error, socket));
    server.on("timeout", (socket: Socket) => this.#timeout(socket));
    return server;
  }

  #createTls(pair: TlsPair): TlsServer {
    const { headersTimeoutMs } = this.#options;
    const server = createTlsServer({
      ...this.#settings(),
      ...secureContextOf(pair),
      handshakeTimeout: headersTimeoutMs,
    });
    server.on("secureConnection", (socket) => this.#secured.add(socket));
    return server;
  }

  #settings(): ServerOptions {
    const { maxHeaderBytes, headersTimeoutMs, idleTimeoutMs, keepAliveMs = idleTimeoutMs } = this.#options;
    return {
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: headersTimeoutMs,
      // The body's time is kept by RequestBody, which knows whether anybody waits for it.
      requestTimeout: 0,
      // Checked by the exchange, whose answer has our shape.
      requireHostHeader: false,
      // Whatever the command line of node says.
      insecureHTTPParser: false,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: Math.max(10, Math.min(1_000, headersTimeoutMs / 4)),
      highWaterMark: 256 * 1024,
      ...UPGRADES,
    };
  }

  #accept(message: IncomingMessage, response: ServerResponse, arrival?: NodeArrival): void {
    const { socket } = message;
    if (!this.#state.ended.has(socket)) new NodeExchange(this.#state, message, response, arrival).run();
    // What follows the last answer is not looked at; what came with its request must not keep it from being sent.
    else if ((this.#state.exchanges.get(socket)?.size ?? 0) === 0) socket.destroy();
  }

  /** A request for a WebSocket: node has let go of its connection, so that any other answer is its last. */
  #acceptUpgrade(message: IncomingMessage, behindHead: Buffer): void {
    const { socket } = message;
    this.#takeOver(socket);
    const response = new ServerResponse(message);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.once("finish", () => socket.destroySoon());
    this.#accept(message, response, { behindHead });
  }

  #takeOver(socket: Duplex): void {
    this.#upgraded.add(socket);
    socket.once("close", () => this.#upgraded.delete(socket));
    // Its cause is the end of the connection, which `close` reports too.
    socket.on("error", () => undefined);
  }

  #timeout(socket: Socket): void {
    const exchanges = this.#state.exchanges.get(socket);
    if (exchanges === undefined || exchanges.size === 0) socket.destroy();
    else for (const exchange of exchanges) exchange.stalled();
  }

  /** A request that node's parser refused, before or in its body. */
  #clientError(error: Error, socket: Duplex): void {
    const code = systemCodeOf(error);
    if (this.#options.tls !== undefined && !this.#secured.has(socket)) {
      // No handshake: there is no way to say anything that its other side could read.
      socket.destroy();
      return;
    }
    if (code === "ECONNRESET" || code === "HPE_INVALID_EOF_STATE") {
      // Not malformed: the client left before it was done.
      socket.destroy();
      return;
    }
    // The parser says it of each piece that follows the first which it refused.
    if (this.#state.ended.has(socket)) return;
    const failure = asEngineError(error, this.#options.maxHeaderBytes);
    const exchanges = [...(this.#state.exchanges.get(socket) ?? [])];
    const reading = exchanges.at(-1);
    if (reading === undefined) this.#refuse(socket, failure);
    else if (exchanges.every((exchange) => exchange.endAfterAnswer())) reading.failBody(failure);
    else socket.destroy();
  }

  /** Answers what is no request. */
  #refuse(socket: Duplex, failure: EngineError): void {
    this.#state.ended.add(socket);
    if (socket.writable) this.#answerRaw(socket, this.#options.renderError(failure, { header: () => undefined }));
    else socket.destroy();
  }

  #answerRaw(socket: Duplex, rendered: HttpResponse): void {
    const { statusLine, headers, body } = prepareResponse("GET", rendered);
    const bytes = typeof body === "string" ? Buffer.from(body) : body instanceof Uint8Array ? body : new Uint8Array(0);
    let head = `HTTP/1.1 ${statusLine}\r\nConnection: close\r\nContent-Length: ${bytes.length}\r\n`;
    for (let i = 0; i < headers.length; i += 2) head += `${headers[i]}: ${headers[i + 1]}\r\n`;
    socket.write(`${head}\r\n`);
    socket.end(bytes);
    socket.resume();
    const timer = this.#clock.after(LINGER_MS, () => socket.destroy(), { background: true });
    socket.once("close", () => timer.cancel());
  }
}

/** Which requests node hands over as `upgrade`: others are answered as if they asked for nothing (RFC 9110 §7.8). */
const UPGRADES = {
  shouldUpgradeCallback: ({ method, headers }: IncomingMessage): boolean => {
    const header = (name: string) => headers[name]?.toString();
    // Of a body the first bytes would be taken for messages.
    if (Number(header("content-length") ?? 0) !== 0 || header("transfer-encoding") !== undefined) return false;
    return webSocketOffer(method ?? "", header) !== undefined;
  },
};

function secureContextOf({ cert, key }: TlsPair) {
  return { cert, key, minVersion: MIN_TLS_VERSION, ciphers: TLS_CIPHERS } as const;
}

function asEngineError(error: Error, maxHeaderBytes: number): EngineError {
  const code = systemCodeOf(error);
  if (code === "HPE_HEADER_OVERFLOW") {
    return new EngineError("headers_too_large", `the request's head has more than ${maxHeaderBytes} bytes`);
  }
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return new EngineError("request_timeout", "the request's head did not arrive in time");
  }
  return new EngineError("bad_request", `malformed HTTP request: ${error.message}`);
}
