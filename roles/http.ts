import { CREDENTIALS_OPTIONS } from "../src/credentials/options.ts";
import { valuesOf } from "../src/config/option.ts";
import { hostname } from "node:os";
import { join } from "node:path";
import { createApp, type App, type BrowserAccess } from "../src/server/app.ts";
import { asEngineError, errorResponse } from "../src/server/error-response.ts";
import { requestIdOf } from "../src/server/request-id.ts";
import type { Route } from "../src/server/route.ts";
import { securityHeaders } from "../src/server/security-headers.ts";
import type { Authenticator } from "../src/auth/authenticator.ts";
import { isLoopback } from "../src/auth/option-kinds.ts";
import { formatAddress, type Address } from "../src/config/kinds.ts";
import { addressSet } from "../src/config/transport-kinds.ts";
import type { Clock } from "../src/core/clock.ts";
import { EngineError, StartupError } from "../src/core/errors.ts";
import type { Service } from "../src/core/lifecycle.ts";
import { createHttpServer, type HttpDriver } from "../src/io/http/create.ts";
import { connectionLimit } from "../src/io/http/connection-limit.ts";
import type { HttpServer } from "../src/io/http/http.ts";
import type { TlsPair } from "../src/io/http/tls.ts";
import type { TlsWatch } from "../src/io/http/tls-watch.ts";
import { warnOf, type Exposure } from "./exposure.ts";
import { bindServer } from "./bind.ts";
import type { Parts } from "./parts.ts";
import { tlsPairOf, watchTls } from "./tls.ts";

const MAX_HEADER_BYTES = 64 * 1024;
const HEADERS_TIMEOUT_MS = 15_000;
const IDLE_TIMEOUT_MS = 60_000;
/** Whoever opens one connection too many opens thousands. */
const REFUSED_LOG_MS = 60_000;

/** The two steps of stopping: others are told, then new work is refused. */
export type DrainState = { announced: boolean; refusing: boolean };

export type HttpOptions = {
  parts: Parts;
  routes: readonly Route[];
  authenticator: Authenticator;
  /** What to warn of once the server listens. */
  exposure: Exposure;
  listen: Address;
  draining: DrainState;
  /** How long new work is still taken after others were told. */
  noticeMs: number;
  /** Is told of the steps of stopping. */
  onDrain?: { announced(): void; refusing(): void } | undefined;
  /** Is told the address under which this process reaches itself, once it listens, and where it listens. */
  onListening?: ((url: string, address: Address) => void) | undefined;
  /** More for the line in the log that says where the server listens. */
  announce: Readonly<Record<string, unknown>>;
};

/** The HTTP server as a service. */
export function httpService({
  parts,
  routes,
  authenticator,
  exposure,
  listen,
  draining,
  noticeMs,
  onDrain,
  onListening,
  announce,
}: HttpOptions): Service {
  const { config, log, clock } = parts;
  const app = createApp({
    ...parts,
    routes,
    authenticator,
    browsers: browserAccess(parts, listen),
    isTrustedProxy: addressSet(config.trustedProxies),
    isDraining: () => draining.refusing,
  });
  const tls = tlsPairOf(parts);
  checkDriver(config.httpDriver, listen);
  const server = createServer(parts, app, tls);
  let tlsWatch: TlsWatch | undefined;
  return {
    name: "http",
    run: async () => {
      const address = await bindServer(server, listen, "with --addr");
      const scheme = tls === undefined ? "http" : "https";
      const url = `${scheme}://${formatAddress(address)}`;
      onListening?.(`${scheme}://${formatAddress(reachable(address))}`, address);
      if (server.driver === "uws") log.warn({}, LOOSE_DRIVER);
      log.info({ url, driver: server.driver, ...announce }, "listening");
      if (tls !== undefined) tlsWatch = watchTls(parts, server, tls);
      warnOf(exposure, address, { log, write: (text) => process.stderr.write(text) });
    },
    drain: async () => {
      // Whoever balances sees it on /health and sends new work elsewhere; then new work is refused, and what was
      // accepted is finished; then the door closes.
      draining.announced = true;
      onDrain?.announced();
      await quietly(clock, noticeMs);
      draining.refusing = true;
      onDrain?.refusing();
      await app.idle();
      await server.drain(config.drainTimeoutSecs * 1000);
    },
    stop: async () => {
      await tlsWatch?.stop();
      await server.close();
    },
  };
}

/** Where a server that listens on all addresses is reached from its own machine. */
function reachable({ host, port }: Address): Address {
  if (host === "0.0.0.0") return { host: "127.0.0.1", port };
  return { host: host === "::" ? "::1" : host, port };
}

const LOOSE_DRIVER =
  "the HTTP driver uws does not read HTTP strictly: it loses characters outside of ASCII at the ends of headers, and " +
  "takes what follows a body in chunks for requests; let nobody but programs of your own reach it";

/** See `io/http/http.ts` for what the driver cannot do. */
function checkDriver(driver: HttpDriver, listen: Address): void {
  if (driver !== "uws" || isLoopback(listen.host)) return;
  throw new StartupError(
    `${LOOSE_DRIVER}: it may listen on 127.0.0.1 only, not on ${listen.host}; unset ENGINE_HTTP_DRIVER`,
    2,
  );
}

/** By which names this server goes, and which pages may call it. */
function browserAccess({ config, origins }: Parts, listen: Address): BrowserAccess {
  const redirectBase = valuesOf(CREDENTIALS_OPTIONS, config).oauthRedirectBase;
  return {
    origins: config.corsAllowedOrigins,
    // The default is an origin of this machine, which something else may serve.
    ownOrigins: origins["oauthRedirectBase"] === "default" ? [] : [new URL(redirectBase).origin],
    hosts: [hostname(), listen.host, ...config.httpAllowedHosts],
  };
}

/** Waits, and does not keep a process alive that was told to end at once. */
function quietly(clock: Clock, delayMs: number): Promise<void> {
  if (delayMs === 0) return Promise.resolve();
  return new Promise((resolve) => {
    clock.after(delayMs, resolve, { background: true });
  });
}

function createServer({ config, newId, log, clock }: Parts, app: App, tls: TlsPair | undefined): HttpServer {
  const headers = securityHeaders(tls === undefined ? "http" : "https");
  const maxConnections = connectionLimit("http");
  let refusedLoggedMs = Number.NEGATIVE_INFINITY;
  return createHttpServer({
    driver: config.httpDriver,
    handler: app.handler,
    renderError: (error, request) => {
      const requestId = requestIdOf(request.header("x-request-id"), newId);
      if (error instanceof EngineError && error.withheld !== undefined)
        log.error({ err: error, requestId }, "request failed");
      const response = errorResponse(asEngineError(error, requestId), requestId);
      response.headers = { ...headers, ...response.headers, "X-Request-ID": requestId };
      return response;
    },
    reportFailure: (error) => log.error({ err: error }, "a response could not be completed"),
    reportRefused: () => {
      const nowMs = clock.monotonicMs();
      if (nowMs < refusedLoggedMs + REFUSED_LOG_MS) return;
      refusedLoggedMs = nowMs;
      log.warn({ maxConnections }, "connections are refused: raise the limit of open files (ulimit -n)");
    },
    clock,
    overflowFolder: join(config.home, "tmp", "bodies"),
    maxHeaderBytes: MAX_HEADER_BYTES,
    headersTimeoutMs: HEADERS_TIMEOUT_MS,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
    keepAliveMs: config.httpKeepAliveSecs * 1_000,
    ...(maxConnections === undefined ? {} : { maxConnections }),
    ...(tls === undefined ? {} : { tls }),
  });
}
