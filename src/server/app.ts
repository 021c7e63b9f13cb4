import type { z } from "zod";
import { bearerOf, type Authenticator } from "../auth/authenticator.ts";
import {
  ANONYMOUS,
  callerOfWorker,
  roleIncludes,
  RUN_CALLER,
  type Caller,
  type WorkerIdentity,
} from "../auth/caller.ts";
import { isToken } from "../auth/tokens.ts";
import type { Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { ANSWERED, type Log } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import { DRAINING_HEADER } from "../io/http/client/draining.ts";
import type { HttpHandler, HttpRequest, HttpResponse } from "../io/http/http.ts";
import { clientAddress, type IsTrustedProxy } from "./client-address.ts";
import { compressed } from "./compress.ts";
import { allowedOrigins, corsHeaders, namedOrigins, preflightHeaders, type AllowedOrigins } from "./cors.ts";
import { asEngineError, codedFor, errorResponse } from "./error-response.ts";
import { bodyTypeOf, checkAccept } from "./negotiate.ts";
import { createOriginGuard, type OriginGuard } from "./origin-guard.ts";
import { requestIdOf } from "./request-id.ts";
import { readJson } from "./json-body.ts";
import type { Route } from "./route.ts";
import { Router, type Match } from "./router.ts";
import { securityHeaders } from "./security-headers.ts";
import { isOfOwnPage, sessionCookieOf } from "./web-session.ts";

/** A route table as an HTTP handler: matching, input checks, error shape, request ids, CORS, metrics, access log. */
export type AppOptions = {
  routes: readonly Route[];
  browsers: BrowserAccess;
  /** See `clientAddress`. */
  isTrustedProxy: IsTrustedProxy;
  clock: Clock;
  newId: IdSource;
  log: Log;
  metrics: Metrics;
  authenticator: Authenticator;
  /** Whether the server refuses new work because it is about to stop; routes about the process itself go on. */
  isDraining: () => boolean;
};

/** What decides whether a page may call. */
export type BrowserAccess = {
  /** As configured: see `allowedOrigins`. */
  origins: readonly string[] | undefined;
  /** See `OriginGuardOptions`. */
  ownOrigins: readonly string[];
  hosts: readonly string[];
};

export type App = {
  handler: HttpHandler;
  /**
   * Resolves when no request is being answered, those about the process itself (role `none`) left aside: a server that
   * drains can go on saying so until its work is done.
   */
  idle(): Promise<void>;
};

type Exchange = {
  request: HttpRequest;
  requestId: string;
  startedMs: number;
  route: Route | undefined;
  /** See `Call`. */
  webSession: string | undefined;
};

export function createApp(options: AppOptions): App {
  const router = new Router(options.routes);
  const work = new WorkCount();
  const { browsers, authenticator } = options;
  const allowed = allowedOrigins(browsers.origins, authenticator.isOn);
  const named = namedOrigins(browsers.origins);
  const guard = createOriginGuard({ ...browsers, allowed, named, tokensAreAsked: authenticator.isOn });
  const ownOrigins = new Set(browsers.ownOrigins);
  const parts: AppParts = { ...options, router, work, allowed, named, guard, ownOrigins };
  const handler: HttpHandler = async (request) => {
    const requestId = requestIdOf(request.header("x-request-id"), options.newId);
    const isByCookie = request.header("authorization") === undefined && isOfOwnPage(request, ownOrigins);
    const webSession = isByCookie ? sessionCookieOf(request) : undefined;
    const startedMs = options.clock.monotonicMs();
    const exchange: Exchange = { request, requestId, startedMs, route: undefined, webSession };
    let response: HttpResponse;
    try {
      response = await respond(parts, exchange);
      const { route } = exchange;
      // A peer that answers has compressed it.
      if (route?.compress === true && route.passThrough !== true) {
        const answer = compressed(request, response);
        response = answer instanceof Promise ? await answer : answer;
      }
    } catch (error) {
      const failure = codedFor(request.path, asEngineError(error, requestId));
      if (failure.status >= 500 || isWithheld(error)) {
        // What is away for a moment, this server while it drains among it, is told to the client to come back.
        const level = failure.code === "unavailable" ? "info" : "error";
        options.log[level]({ err: error, requestId, path: request.path }, "request failed");
      }
      response = exchange.route?.failures?.respond(request, failure) ?? errorResponse(failure, requestId);
    }
    const cors = corsHeaders(allowedFor(parts, exchange, response), request.header("origin"));
    const own = webSession === undefined ? response.headers : notKept(response.headers);
    response.headers = {
      ...securityHeaders(request.scheme),
      ...own,
      ...cors,
      ...variesBy(own["Vary"], cors["Vary"]),
      "X-Request-ID": requestId,
    };
    onFinished(response, (bytes) => {
      observe(options, exchange, { status: response.status, bytes });
      if (!counts(exchange.route)) return;
      work.end();
      options.metrics.httpInFlight.dec();
    });
    return response;
  };
  return { handler, idle: () => work.idle() };
}

/**
 * HTTP lets caches keep what a cookie has brought, as it does not what `Authorization` has (RFC 9111 §3.5). A public
 * answer is the same with and without the cookie.
 */
function notKept(headers: HttpResponse["headers"]): HttpResponse["headers"] {
  const { "Cache-Control": kept, Vary: vary } = headers;
  if (kept?.startsWith("public") === true) return headers;
  return { "Cache-Control": "no-store", ...headers, Vary: "Cookie", ...variesBy(vary, "Cookie") };
}

/** What an answer depends on, where both sides say something: each name once. */
function variesBy(own: string | undefined, more: string | undefined): Record<string, string> {
  if (own === undefined || more === undefined) return {};
  const names = `${own},${more}`.split(",").map((name) => name.trim());
  return { Vary: [...new Set(names)].join(", ") };
}

/** `*` never goes with a cookie, whoever sends it, nor with a route that passwords are shown to. */
function allowedFor(
  { allowed, named }: AppParts,
  { request, route }: Exchange,
  { headers, cookies = [] }: Pick<HttpResponse, "headers" | "cookies">,
): AllowedOrigins {
  if (allowed !== "all" || request.header("origin") === undefined) return allowed;
  const isForOwnPages = route?.ownPages === true;
  const setsCookie = cookies.length > 0 || Object.keys(headers).some((name) => name.toLowerCase() === "set-cookie");
  return isForOwnPages || setsCookie || request.header("cookie") !== undefined ? named : allowed;
}

/** Whether the log alone says what it was. */
function isWithheld(error: unknown): boolean {
  return error instanceof EngineError && error.withheld !== undefined;
}

function counts(route: Route | undefined): boolean {
  return route !== undefined && route.role !== "none";
}

/** Counts what is under way. */
class WorkCount {
  #running = 0;
  #waiting: (() => void)[] = [];

  begin(): void {
    this.#running++;
  }

  end(): void {
    this.#running--;
    if (this.#running === 0) for (const resolve of this.#waiting.splice(0)) resolve();
  }

  async idle(): Promise<void> {
    if (this.#running > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}

type AppParts = AppOptions & {
  router: Router;
  work: WorkCount;
  allowed: AllowedOrigins;
  named: ReadonlySet<string>;
  guard: OriginGuard;
  ownOrigins: ReadonlySet<string>;
};

async function respond(parts: AppParts, exchange: Exchange): Promise<HttpResponse> {
  const { work, guard } = parts;
  const { request, requestId } = exchange;
  if (request.method === "OPTIONS") return preflight(parts, exchange);
  const { route, params } = await matched(parts, exchange);
  exchange.route = route;
  if (counts(route)) {
    work.begin();
    parts.metrics.httpInFlight.inc();
    if (parts.isDraining()) throw draining();
  }
  guard(request, route);
  if (route.passThrough === true) {
    return route.handle({
      request,
      requestId,
      caller: ANONYMOUS,
      worker: undefined,
      webSession: undefined,
      authenticateAgain: () => Promise.resolve(ANONYMOUS),
      clientAddress: "",
      bodyType: "",
      params: {},
      query: {},
      headers: {},
      json: {},
    });
  }
  const { webSession } = exchange;
  if (route.ownPageOnly === true && !isOfOwnPage(request, parts.ownOrigins)) throw notOfOwnPage();
  const address = clientAddress(request, parts.isTrustedProxy);
  const asker = () => askerOf(parts.authenticator, route, { request, webSession, address, requestId });
  const { caller, worker } = await asker();
  if (route.webSocket === true && request.webSocket === undefined) throw upgradeRequired();
  checkAccept(route, request.header("accept"));
  const bodyType = bodyTypeOf(route, request.header("content-type"));
  return route.handle({
    request,
    requestId,
    caller,
    worker,
    webSession,
    authenticateAgain: async () => (await asker()).caller,
    clientAddress: address,
    bodyType,
    params: route.params === undefined ? {} : check(route.params, params, "invalid_parameter", "path parameter"),
    query:
      route.query === undefined ? {} : check(route.query, queryOf(request), "invalid_parameter", "query parameter"),
    headers:
      route.headers === undefined ? {} : check(route.headers, headersOf(route, request), "invalid_header", "header"),
    json: route.json === undefined ? {} : await readJson(request, route.json, route.jsonErrors, route.jsonLimitBytes),
  });
}

/**
 * The row for a request. Where tokens are asked for, one without a good token is not told which paths there are: it gets
 * 401 for a path that nothing has, and for a method that a path behind a token has not.
 */
async function matched(parts: AppParts, exchange: Exchange): Promise<Match> {
  const { router, authenticator, routes } = parts;
  const { request, requestId, webSession } = exchange;
  try {
    return router.match(request.method, request.path);
  } catch (error) {
    const isOpen = router.routesAt(request.path).some(({ role }) => role === "none");
    const authorization = request.header("authorization");
    const token = bearerOf(authorization);
    // An edge does not know the tokens and the sessions that its peers do.
    const showsNothing = token === undefined && webSession === undefined;
    const isJudge = showsNothing || !routes.some(({ passThrough }) => passThrough === true);
    if (authenticator.isOn && !isOpen && isJudge) {
      const address = clientAddress(request, parts.isTrustedProxy);
      const credentials = { authorization, webSession, address, requestId };
      const isWorker = token !== undefined && isToken("worker", token);
      await (isWorker ? authenticator.authenticateWorker(credentials) : authenticator.authenticate(credentials));
    }
    throw error;
  }
}

type Asker = { caller: Caller; worker: WorkerIdentity | undefined };

/** Before anything is said about the request itself. */
async function askerOf(
  authenticator: Authenticator,
  route: Route,
  { request, ...from }: { request: HttpRequest; webSession: string | undefined; address: string; requestId: string },
): Promise<Asker> {
  const { role, unscoped } = route;
  if (role === "none") return { caller: ANONYMOUS, worker: undefined };
  const credentials = { authorization: request.header("authorization"), ...from };
  if (route.runTokens === true && isToken("run", bearerOf(credentials.authorization) ?? "")) {
    return { caller: RUN_CALLER, worker: undefined };
  }
  if (role === "worker") {
    const worker = await authenticator.authenticateWorker(credentials);
    return { caller: callerOfWorker(worker), worker };
  }
  const caller = await authenticator.authenticate(credentials);
  if (!roleIncludes(caller.role, role)) {
    throw new EngineError("forbidden", `this needs the role ${role}; the token has ${caller.role}`);
  }
  if (unscoped === true && caller.databases !== undefined) {
    throw new EngineError("forbidden", "a token that is limited to databases may not do this");
  }
  return { caller, worker: undefined };
}

function notOfOwnPage(): EngineError {
  return new EngineError(
    "forbidden",
    "only pages of this server may call this: the request needs Sec-Fetch-Site: same-origin, an Origin of this server, " +
      "or, without either header, X-Engine-Web: 1",
  );
}

/** RFC 9110 §15.5.22 and RFC 6455 §4.4. */
function upgradeRequired(): EngineError {
  const headers = { Upgrade: "websocket", "Sec-WebSocket-Version": "13" };
  return new EngineError("upgrade_required", "this is a WebSocket: ask for one, of version 13", { headers });
}

function draining(): EngineError {
  const headers = { "Retry-After": "1", [DRAINING_HEADER]: "true" };
  return new EngineError("unavailable", "the server is shutting down; retry elsewhere", { headers });
}

function preflight(parts: AppParts, exchange: Exchange): HttpResponse {
  const { router, guard } = parts;
  const { request } = exchange;
  // Only of these it matters which one is going to be asked for.
  const route = router.routesAt(request.path).find(({ ownPages }) => ownPages === true);
  exchange.route = route;
  guard(request, route);
  const methods = router.methods(request.path);
  if (methods.length === 0) throw new EngineError("not_found", `there is no route ${request.path}`);
  const allowed = allowedFor(parts, exchange, { headers: {} });
  const wanted = request.header("access-control-request-headers");
  const grants = preflightHeaders(allowed, request.header("origin"), methods, wanted);
  return { status: 204, headers: { Allow: methods.join(", "), ...grants } };
}

function queryOf(request: HttpRequest): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(request.query));
}

function headersOf(route: Route, request: HttpRequest): Record<string, string> {
  const values: Record<string, string> = {};
  for (const name of Object.keys(route.headers?.shape ?? {})) {
    const value = request.header(name);
    if (value !== undefined) values[name] = value;
  }
  return values;
}

/** Checks one kind of input; the first problem becomes the error, and an absent required header has its own code. */
function check(
  schema: z.ZodObject,
  values: Record<string, string>,
  code: "invalid_parameter" | "invalid_header",
  what: string,
): Record<string, unknown> {
  const result = schema.safeParse(values);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const name = String(issue?.path[0] ?? "");
  if (!(name in values)) {
    const missing = code === "invalid_header" ? "missing_header" : code;
    throw new EngineError(missing, `${what} ${displayName(name, what)} is required`);
  }
  const shown = JSON.stringify(values[name]?.slice(0, 100));
  throw new EngineError(code, `${what} ${displayName(name, what)} is ${shown}: ${issue?.message ?? "not accepted"}`);
}

/** `x-table` → `X-Table`. */
function displayName(name: string, what: string): string {
  return what === "header" ? name.replace(/(^|-)[a-z]/g, (part) => part.toUpperCase()) : name;
}

/** `bytes` are those of the answer's body, as far as it was sent. */
function observe(options: AppOptions, exchange: Exchange, { status, bytes }: { status: number; bytes: number }): void {
  const { request, requestId, startedMs, route } = exchange;
  const durationMs = options.clock.monotonicMs() - startedMs;
  // A client may make up any number of methods, and each label is kept for as long as the process runs.
  const method = route === undefined ? "any" : request.method;
  const labels = { method, route: route?.path ?? "unmatched", status };
  options.metrics.httpDuration.observe(labels, durationMs / 1000);
  // Never the path itself, nor what follows its `?`: both may hold what is nobody else's. Whoever asks how a server is
  // asks all the time.
  const level = route?.quiet === true ? "debug" : "info";
  const roundedMs = Math.round(durationMs * 1000) / 1000;
  options.log[level](
    { method: request.method, route: labels.route, status, durationMs: roundedMs, bytes, requestId },
    ANSWERED,
  );
}

/** Runs `done` once when the response is complete: at once, or when its streamed body has ended. */
function onFinished(response: HttpResponse, done: (bytes: number) => void): void {
  const { body } = response;
  if (body === undefined) done(0);
  else if (typeof body === "string") done(Buffer.byteLength(body));
  else if (body instanceof Uint8Array) done(body.byteLength);
  else response.body = finishing(body, done);
}

/**
 * Passes a streamed body through and says when it ended, however it ended. Not a generator: one that is closed before
 * its first `next` would never reach the body it wraps.
 */
function finishing(body: AsyncIterable<Uint8Array>, done: (bytes: number) => void): AsyncIterable<Uint8Array> {
  const inner = body[Symbol.asyncIterator]();
  let bytes = 0;
  let finished = false;
  const finish = () => {
    if (!finished) done(bytes);
    finished = true;
  };
  const iterator: AsyncIterator<Uint8Array> = {
    async next() {
      try {
        const step = await inner.next();
        if (step.done === true) finish();
        else bytes += step.value.byteLength;
        return step;
      } catch (error) {
        finish();
        throw error;
      }
    },
    async return() {
      finish();
      await inner.return?.();
      return { done: true, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}
