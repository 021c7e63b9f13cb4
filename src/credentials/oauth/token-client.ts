import { z } from "zod";
import type { ClientAuth, Configuration, CustomFetchOptions, TokenEndpointResponse } from "openid-client";
import { reasonOf, textOf } from "../../auth/jwt/fetch-json.ts";
import { boundedCode } from "../../auth/web/fetch-within.ts";
import type { Clock } from "../../core/clock.ts";
import type { Provider, TokenAnswer } from "./providers.ts";

/**
 * What is said to a provider, by the protocol as openid-client has it. What a provider answers holds secrets, and so may
 * its words about an error: of a failure only a code gets out of here, or a sentence of this program.
 */
export type TokenClientOptions = { provider: Provider; app: OAuthApp; clock: Clock };

/** An app that is registered with a provider. */
export type OAuthApp = { readonly clientId: string; readonly clientSecret: string };

export type Tokens = {
  accessToken: string;
  refreshToken: string | undefined;
  scope: string | undefined;
  /** From the moment when the request was sent, by this machine's clock. */
  expiresAtMs: number | undefined;
};

/**
 * - `refused`: the provider answered, with an error code of RFC 6749 §5.2 or one of its own.
 * - `unreachable`: there was no answer, or none that means anything; asking again may help.
 */
export type TokenOutcome = { kind: "tokens"; tokens: Tokens } | NoTokens;
type NoTokens = { kind: "refused"; error: string } | { kind: "unreachable"; reason: string };

const TIMEOUT_MS = 10_000;
/** Ten years: a token that lasts longer is a mistake, and no date that can be written. */
const MOST_MS = 10 * 365 * 86_400_000;

export type AuthorizationRequest = {
  redirectUri: string;
  state: string;
  scopes: readonly string[];
  /** PKCE's; undefined where the provider does not know it. */
  verifier: string | undefined;
};

/** The address at the provider to which the browser goes. */
export async function authorizationUrl(
  options: TokenClientOptions,
  { redirectUri, state, scopes, verifier }: AuthorizationRequest,
): Promise<string> {
  const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await import("openid-client");
  const { parameters } = options.provider;
  const challenge =
    verifier === undefined
      ? {}
      : { code_challenge: await calculatePKCECodeChallenge(verifier), code_challenge_method: "S256" };
  const asked = scopeParameter(options.provider, scopes);
  const request = { ...parameters, ...asked, ...challenge, redirect_uri: redirectUri, state };
  return buildAuthorizationUrl(await configurationOf(options), request).href;
}

/** What the provider sent the browser back with. */
export type AuthorizationAnswer = { code: string; issuer: string | undefined };

/** Exchanges a code for tokens. */
export async function exchangeCode(
  options: TokenClientOptions,
  { code, issuer }: AuthorizationAnswer,
  { redirectUri, state, verifier }: Omit<AuthorizationRequest, "scopes">,
): Promise<TokenOutcome> {
  const { authorizationCodeGrant } = await import("openid-client");
  const answered = new URL(redirectUri);
  // Of a provider whose name for itself nobody has said there is nothing to compare with.
  const iss = options.provider.issuer === undefined ? undefined : issuer;
  for (const [name, value] of Object.entries({ code, state, iss })) {
    if (value !== undefined) answered.searchParams.set(name, value);
  }
  const checks = { expectedState: state, ...(verifier !== undefined && { pkceCodeVerifier: verifier }) };
  const ask = (configuration: Configuration) => authorizationCodeGrant(configuration, answered, checks);
  // openid-client takes it from the address that was answered, without its query and as URLs are written.
  return await tokensOf(options, ask, { redirect_uri: redirectUri });
}

/** Exchanges a refresh token for an access token, and maybe for another refresh token. */
export async function refreshTokens(options: TokenClientOptions, refreshToken: string): Promise<TokenOutcome> {
  const { refreshTokenGrant } = await import("openid-client");
  return await tokensOf(options, (configuration) => refreshTokenGrant(configuration, refreshToken));
}

/** What the owner of an account is shown, and what the program asks with (RFC 8628 §3.2). */
export type DeviceAuthorization = {
  deviceCode: string;
  userCode: string;
  verificationUri: string;
  ttlMs: number;
  /** The least time between two questions; undefined where the provider leaves it open. */
  intervalMs: number | undefined;
};

export type DeviceOutcome = { kind: "begun"; authorization: DeviceAuthorization } | NoTokens;

/** Begins a flow without a browser. The provider has a `deviceAuthorizationEndpoint`. */
export async function beginDevice(options: TokenClientOptions, scopes: readonly string[]): Promise<DeviceOutcome> {
  const { initiateDeviceAuthorization } = await import("openid-client");
  const outcome = await outcomeOf(options, (configuration) =>
    initiateDeviceAuthorization(configuration, scopeParameter(options.provider, scopes)),
  );
  if (outcome.kind !== "answer") return outcome;
  const { device_code, user_code, verification_uri, expires_in, interval } = outcome.answer;
  const authorization = {
    deviceCode: device_code,
    userCode: user_code,
    verificationUri: verification_uri,
    ttlMs: expires_in * 1_000,
    intervalMs: interval === undefined ? undefined : interval * 1_000,
  };
  return { kind: "begun", authorization };
}

/** Asks once for the tokens of a flow without a browser; most often the answer is `authorization_pending`. */
export async function askForDevice(options: TokenClientOptions, deviceCode: string): Promise<TokenOutcome> {
  const { genericGrantRequest } = await import("openid-client");
  const parameters = { device_code: deviceCode };
  return await tokensOf(options, (configuration) => genericGrantRequest(configuration, DEVICE_GRANT, parameters));
}

const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

function scopeParameter({ scopeStyle }: Provider, scopes: readonly string[]): Record<string, string> {
  if (scopeStyle === undefined || scopes.length === 0) return {};
  return { [scopeStyle.parameter]: scopes.join(scopeStyle.separator) };
}

async function tokensOf(
  options: TokenClientOptions,
  ask: (configuration: Configuration) => Promise<TokenEndpointResponse>,
  exactly: Readonly<Record<string, string>> = {},
): Promise<TokenOutcome> {
  const askedAtMs = options.clock.nowMs();
  const outcome = await outcomeOf(options, ask, exactly);
  return outcome.kind === "answer" ? { kind: "tokens", tokens: toTokens(outcome.answer, askedAtMs) } : outcome;
}

async function outcomeOf<T>(
  options: TokenClientOptions,
  ask: (configuration: Configuration) => Promise<T>,
  exactly: Readonly<Record<string, string>> = {},
): Promise<{ kind: "answer"; answer: T } | NoTokens> {
  const { ClientError, ResponseBodyError } = await import("openid-client");
  try {
    return { kind: "answer", answer: await ask(await configurationOf(options, exactly)) };
  } catch (error) {
    if (error instanceof ResponseBodyError) return { kind: "refused", error: boundedCode(error.error) };
    if (!(error instanceof ClientError)) throw error;
    const { cause } = error;
    return { kind: "unreachable", reason: cause instanceof NoAnswer ? cause.message : error.message };
  }
}

/** Messages hold nothing that the provider sent. */
class NoAnswer extends Error {}

function toTokens(body: TokenEndpointResponse, askedAtMs: number): Tokens {
  const { expires_in: expiresInSecs } = body;
  return {
    accessToken: body.access_token,
    refreshToken: body.refresh_token,
    scope: body.scope,
    expiresAtMs: expiresInSecs === undefined ? undefined : askedAtMs + Math.min(expiresInSecs * 1_000, MOST_MS),
  };
}

/** `exactly` are parameters of requests that are sent letter by letter. */
async function configurationOf(
  { provider, app, clock }: TokenClientOptions,
  exactly: Readonly<Record<string, string>> = {},
): Promise<Configuration> {
  const openid = await import("openid-client");
  const { authorizationEndpoint, tokenEndpoint, deviceAuthorizationEndpoint, clientAuthentication } = provider;
  const server = {
    issuer: provider.issuer ?? new URL(tokenEndpoint).origin,
    authorization_endpoint: authorizationEndpoint,
    token_endpoint: tokenEndpoint,
    ...(deviceAuthorizationEndpoint !== undefined && { device_authorization_endpoint: deviceAuthorizationEndpoint }),
  };
  const authentication =
    clientAuthentication === "post" ? openid.ClientSecretPost(app.clientSecret) : plainBasic(app.clientSecret);
  const configuration = new openid.Configuration(server, app.clientId, {}, authentication);
  configuration[openid.customFetch] = (url, { body, ...request }) => {
    if (!(body instanceof URLSearchParams)) throw new Error("a token request is a form");
    for (const [name, value] of Object.entries(exactly)) body.set(name, value);
    return fetchTokens(provider, clock, url, { ...request, body });
  };
  // `fetchTokens` has a limit by the clock that is passed in.
  configuration.timeout = 0;
  // A provider on this machine, of a test; all others are https.
  if (tokenEndpoint.startsWith("http://")) openid.allowInsecureRequests(configuration);
  return configuration;
}

/** As RFC 7617 has it. RFC 6749 §2.3.1 encodes both parts first, which providers take for a part of the name. */
function plainBasic(clientSecret: string): ClientAuth {
  return (_server, { client_id: clientId }, _body, headers) => {
    headers.set("authorization", `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString("base64")}`);
  };
}

type TokenRequest = Omit<CustomFetchOptions, "body"> & { body: URLSearchParams };

async function fetchTokens(provider: Provider, clock: Clock, url: string, request: TokenRequest) {
  const abort = new AbortController();
  const late = () => abort.abort(new Error(`no answer within ${TIMEOUT_MS} ms`));
  const timer = clock.after(TIMEOUT_MS, late, { background: true });
  try {
    const { method, redirect } = request;
    const response = await fetch(url, { method, redirect, signal: abort.signal, ...encoded(provider, request) });
    const answer = { status: response.status, body: bodyIn(await textOf(response)) };
    if (url === provider.deviceAuthorizationEndpoint) return deviceResponseOf(answer);
    return responseOf(provider.standardized?.(answer) ?? answer);
  } catch (error) {
    if (error instanceof NoAnswer) throw error;
    throw new NoAnswer(reasonOf(error));
  } finally {
    timer.cancel();
  }
}

function encoded({ requestBody }: Provider, { headers, body }: TokenRequest): { headers: Headers; body: string } {
  const sent = new Headers(headers);
  if (requestBody === "json") sent.set("content-type", "application/json");
  return { headers: sent, body: requestBody === "json" ? JSON.stringify(Object.fromEntries(body)) : body.toString() };
}

function bodyIn(text: string): Readonly<Record<string, unknown>> {
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(text));
  } catch {
    // What the parsers say quotes the text.
    throw new NoAnswer("the answer is not a JSON object");
  }
}

/** Only members that are asked for here: an ID token, say, would have to be verified first. */
function responseOf({ status, body }: TokenAnswer): Response {
  const { access_token, refresh_token, token_type, scope, expires_in, error } = body;
  const granted = { access_token, refresh_token: refresh_token ?? undefined, token_type: token_type ?? "bearer" };
  const limits = { scope: scope ?? undefined, expires_in: expires_in ?? undefined };
  return error === undefined ? jsonOf(status, { ...granted, ...limits }) : refusal(status, error);
}

function deviceResponseOf({ status, body }: TokenAnswer): Response {
  // Google writes `url`.
  const { device_code, user_code, verification_url, verification_uri = verification_url, expires_in, error } = body;
  const interval = body["interval"] ?? undefined;
  if (error !== undefined) return refusal(status, error);
  return jsonOf(status, { device_code, user_code, verification_uri, expires_in, interval });
}

/** GitHub's refusals have the status 200. */
function refusal(status: number, error: unknown): Response {
  return jsonOf(status < 400 ? 400 : status, { error });
}

function jsonOf(status: number, body: Readonly<Record<string, unknown>>): Response {
  return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } });
}
