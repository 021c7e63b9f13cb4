import { timingSafeEqual } from "node:crypto";
import type { Configuration, CustomFetchOptions } from "openid-client";
import { z } from "zod";
import { newSecret } from "../../auth/secrets.ts";
import { boundedCode } from "../../auth/web/fetch-within.ts";
import { openInBrowser } from "../../client/browser.ts";
import type { CliContext } from "../../client/context.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import type { Clock } from "../../core/clock.ts";
import { exchange } from "./exchange.ts";
import { listenOnLoopback } from "./loopback.ts";
import { jsonIn } from "../../core/json-text.ts";

/** The OAuth app at the management API. */
export type ManagementApp = { apiBase: string; clientId: string; clientSecret: string };

/** How long a person may take in the browser. */
const ANSWER_TIMEOUT_MS = 5 * 60_000;
const AGAIN = "run `engine deploy init` again";

/**
 * Signs in by browser: an authorization code with PKCE (RFC 7636), brought back to a loopback address (RFC 8252). Resolves
 * to the access token, which is kept nowhere. @throws CliError
 */
export async function signIn(context: CliContext, app: ManagementApp): Promise<string> {
  const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await import("openid-client");
  const { clock, random, env } = context.deps;
  const configuration = await configurationOf(app, clock);
  const [state, verifier] = [newSecret(random), newSecret(random)];
  const loopback = await listenOnLoopback();
  try {
    const address = buildAuthorizationUrl(configuration, {
      response_type: "code",
      redirect_uri: loopback.redirectUri,
      state,
      code_challenge: await calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    });
    const isOpen = await openInBrowser(address, env);
    context.note(isOpen ? "Sign in in the browser; if none opens, open this address on this machine:" : NO_BROWSER);
    context.note(address.href);
    const code = codeIn(await answerOf(loopback.answer, clock), state);
    return await tokenFor(configuration, { code, state, verifier, redirectUri: loopback.redirectUri });
  } finally {
    loopback.close();
  }
}

const NO_BROWSER = "No browser could be started. Open this address in one on this machine:";

async function answerOf(answer: Promise<URLSearchParams>, clock: Clock): Promise<URLSearchParams> {
  const { promise: tooLate, reject } = Promise.withResolvers<never>();
  const minutes = ANSWER_TIMEOUT_MS / 60_000;
  const timer = clock.after(ANSWER_TIMEOUT_MS, () =>
    reject(new CliError(`nobody signed in within ${minutes} min; ${AGAIN}`, EXIT.auth)),
  );
  try {
    return await Promise.race([answer, tooLate]);
  } finally {
    timer.cancel();
  }
}

/** @throws CliError where it is no answer to what was asked, or a refusal */
function codeIn(answer: URLSearchParams, state: string): string {
  if (!isEqual(answer.get("state") ?? "", state)) {
    throw new CliError(`the browser brought an answer to another sign-in (wrong state); ${AGAIN}`, EXIT.auth);
  }
  const error = answer.get("error");
  if (error === "access_denied") throw new CliError(`consent was refused in the browser; nothing was made`, EXIT.auth);
  if (error !== null) throw new CliError(`the provider refused the sign-in (${boundedCode(error)})`, EXIT.auth);
  const code = answer.get("code") ?? "";
  if (code === "") throw new CliError(`the provider sent the browser back without a code; ${AGAIN}`, EXIT.auth);
  return code;
}

type Grant = { code: string; state: string; verifier: string; redirectUri: string };

async function tokenFor(configuration: Configuration, { code, state, verifier, redirectUri }: Grant): Promise<string> {
  const { authorizationCodeGrant, ClientError, ResponseBodyError } = await import("openid-client");
  const answered = new URL(redirectUri);
  answered.searchParams.set("code", code);
  answered.searchParams.set("state", state);
  try {
    const checks = { expectedState: state, pkceCodeVerifier: verifier };
    return (await authorizationCodeGrant(configuration, answered, checks)).access_token;
  } catch (error) {
    if (error instanceof ResponseBodyError) throw refusalOf(boundedCode(error.error));
    if (!(error instanceof ClientError)) throw error;
    if (error.cause instanceof CliError) throw error.cause;
    // What the library says may quote the answer.
    throw new CliError("the provider's token endpoint sent an invalid answer: check ENGINE_IDP_API_BASE");
  }
}

function refusalOf(code: string): CliError {
  if (code === "invalid_grant")
    return new CliError(`the sign-in has expired or was used (${code}); ${AGAIN}`, EXIT.auth);
  const what = code === "invalid_client" ? "does not know the app" : "refused the sign-in";
  return new CliError(
    `the provider ${what} (${code}): check ENGINE_IDP_OAUTH_CLIENT_ID and ENGINE_IDP_OAUTH_CLIENT_SECRET`,
    EXIT.auth,
  );
}

async function configurationOf(
  { apiBase, clientId, clientSecret }: ManagementApp,
  clock: Clock,
): Promise<Configuration> {
  const openid = await import("openid-client");
  const server = {
    issuer: new URL(apiBase).origin,
    authorization_endpoint: `${apiBase}/v1/oauth/authorize`,
    token_endpoint: `${apiBase}/v1/oauth/token`,
  };
  const configuration = new openid.Configuration(server, clientId, {}, openid.ClientSecretBasic(clientSecret));
  configuration[openid.customFetch] = (url, request) => fetchToken(clock, url, request);
  // `exchange` has a limit by the clock that is passed in.
  configuration.timeout = 0;
  // The option takes http for hosts of this machine alone.
  if (apiBase.startsWith("http://")) openid.allowInsecureRequests(configuration);
  return configuration;
}

/** Only these members: an ID token, say, would have to be verified first. */
const tokenAnswer = z.object({ access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/), token_type: z.string() });
const tokenError = z.object({ error: z.string() });

async function fetchToken(clock: Clock, url: string, { method, headers, body }: CustomFetchOptions): Promise<Response> {
  if (!(body instanceof URLSearchParams)) throw new Error("a token request is a form");
  const { status, text } = await exchange(clock, url, { method, headers, body: body.toString() });
  const value = jsonIn(text);
  const token = tokenAnswer.safeParse(value).data;
  // Supabase answers 201, the standard's status is 200.
  if (status < 300 && token !== undefined) return Response.json(token);
  const error = tokenError.safeParse(value).data;
  if (status >= 400 && status < 500 && error !== undefined) return Response.json(error, { status: 400 });
  const hint = status === 401 ? ": check ENGINE_IDP_OAUTH_CLIENT_ID and ENGINE_IDP_OAUTH_CLIENT_SECRET" : `; ${AGAIN}`;
  throw new CliError(
    `the provider's token endpoint sent no token (status ${status})${hint}`,
    status === 401 || status === 403 ? EXIT.auth : EXIT.failed,
  );
}

function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
