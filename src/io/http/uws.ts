import { createServer } from "node:net";
import { systemClock, type Clock } from "../../core/clock.ts";
import type { HttpServer, HttpServerOptions } from "./http.ts";
import { InFlight } from "./in-flight.ts";
import { UwsExchange, type UwsServerState } from "./uws-exchange.ts";
import { isStillThere, TLS_1_2_CIPHERS, type TlsPair } from "./tls.ts";
import type { UwsApp, UwsLibrary, UwsListenSocket, UwsRequest, UwsResponse, UwsUpgradeContext } from "./uws-library.ts";
import { UWS_WEBSOCKETS } from "./uws-websocket.ts";
import { Watchdog } from "./watchdog.ts";
import { WebSockets } from "./websocket-answer.ts";

/** The driver on uWebSockets.js: about twice as many small requests per second as node:http. */
export class UwsHttpServer implements HttpServer {
  readonly driver = "uws";
  readonly #clock: Clock;
  readonly #library: UwsLibrary;
  /** Listens. With TLS it answers nothing: see `useTlsPair`. */
  readonly #app: UwsApp;
  /** With TLS, one for each certificate that was served; the last gets new connections. */
  readonly #tlsApps: UwsApp[] = [];
  readonly #state: UwsServerState;
  #listenSocket: UwsListenSocket | undefined;
  #closed = false;

  constructor(options: HttpServerOptions, library: UwsLibrary) {
    this.#clock = options.clock ?? systemClock;
    this.#library = library;
    this.#state = {
      options,
      clock: this.#clock,
      watchdog: new Watchdog(this.#clock, options.idleTimeoutMs),
      inFlight: new InFlight(),
      webSockets: new WebSockets((error) => options.reportFailure?.(error)),
      draining: false,
      primed: false,
    };
    if (options.tls === undefined) this.#app = this.#answering(library.App());
    else {
      this.#app = secureApp(library, options.tls);
      this.useTlsPair(options.tls);
    }
  }

  async listen(address: { host: string; port: number }): Promise<{ host: string; port: number }> {
    const socket = await new Promise<UwsListenSocket | false>((resolve) => {
      // Without the option two servers could share the port, each getting half of the connections.
      this.#app.listen(address.host, address.port, this.#library.LIBUS_LISTEN_EXCLUSIVE_PORT, resolve);
    });
    if (socket === false) throw await bindError(address);
    this.#listenSocket = socket;
    return { host: address.host, port: this.#library.us_socket_local_port(socket) };
  }

  async drain(timeoutMs: number): Promise<void> {
    this.#state.draining = true;
    this.#stopListening();
    this.#state.webSockets.leave();
    await this.#state.inFlight.none(this.#clock, timeoutMs);
  }

  close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      this.#state.draining = true;
      this.#state.watchdog.stop();
      this.#stopListening();
      for (const app of [this.#app, ...this.#tlsApps]) app.close();
    }
    return Promise.resolve();
  }

  /**
   * An app has one certificate for good. So one app listens, as long as the server does, and hands each connection that
   * it has accepted to another one, which makes the handshake and answers; that is the one which is changed. Those before
   * stay for the connections that they have. No connection is lost, not even one that waits to be accepted.
   */
  useTlsPair(pair: TlsPair): void {
    if (this.#state.options.tls === undefined) throw new Error("the server was made without TLS");
    const former = this.#tlsApps.at(-1);
    const next = this.#answering(secureApp(this.#library, pair));
    if (former !== undefined) this.#app.removeChildAppDescriptor(former.getDescriptor());
    this.#app.addChildAppDescriptor(next.getDescriptor());
    this.#tlsApps.push(next);
  }

  #answering(app: UwsApp): UwsApp {
    const upgrade = (response: UwsResponse, request: UwsRequest, context: UwsUpgradeContext) =>
      this.#accept(response, request, context);
    return app
      .ws("/*", { ...UWS_WEBSOCKETS, upgrade })
      .any("/*", (response, request) => this.#accept(response, request));
  }

  #stopListening(): void {
    if (this.#listenSocket === undefined) return;
    this.#library.us_listen_socket_close(this.#listenSocket);
    this.#listenSocket = undefined;
  }

  #accept(response: UwsResponse, request: UwsRequest, context?: UwsUpgradeContext): void {
    new UwsExchange(this.#state, response, request, context).run();
  }
}

/** The library reads the files itself: what it has read must be what was checked. */
function secureApp(library: UwsLibrary, pair: TlsPair): UwsApp {
  const { certPath, keyPath } = pair.files;
  const app = library.SSLApp({
    cert_file_name: certPath,
    key_file_name: keyPath,
    ssl_ciphers: TLS_1_2_CIPHERS,
  });
  if (!isStillThere(pair)) throw new Error("the TLS certificate or its key changed while it was read");
  return app;
}

/** uWebSockets.js doesn't say why it can't bind; node does when asked to do the same. */
function bindError(address: { host: string; port: number }): Promise<Error> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", resolve);
    probe.listen({ ...address, exclusive: true }, () => {
      probe.close(() => resolve(new Error(`cannot listen on ${address.host}:${address.port}, for no known reason`)));
    });
  });
}
