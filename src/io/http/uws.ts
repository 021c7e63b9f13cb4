import { createServer } from "node:net";
import { systemClock, type Clock } from "../../core/clock.ts";
import type { HttpServer, HttpServerOptions } from "./http.ts";
import { InFlight } from "./in-flight.ts";
import { UwsExchange, type UwsServerState } from "./uws-exchange.ts";
import type { UwsApp, UwsLibrary, UwsListenSocket, UwsRequest, UwsResponse } from "./uws-library.ts";
import { Watchdog } from "./watchdog.ts";

/** The driver on uWebSockets.js: about twice as many small requests per second as node:http. */
export class UwsHttpServer implements HttpServer {
  readonly driver = "uws";
  readonly #clock: Clock;
  readonly #library: UwsLibrary;
  readonly #app: UwsApp;
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
      draining: false,
      primed: false,
    };
    this.#app = library.App().any("/*", (response, request) => this.#accept(response, request));
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
    await this.#state.inFlight.none(this.#clock, timeoutMs);
  }

  close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      this.#state.draining = true;
      this.#state.watchdog.stop();
      this.#stopListening();
      this.#app.close();
    }
    return Promise.resolve();
  }

  #stopListening(): void {
    if (this.#listenSocket === undefined) return;
    this.#library.us_listen_socket_close(this.#listenSocket);
    this.#listenSocket = undefined;
  }

  #accept(response: UwsResponse, request: UwsRequest): void {
    new UwsExchange(this.#state, response, request).run();
  }
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
