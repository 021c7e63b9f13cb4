import { z } from "zod";

import type { Caller } from "../auth/caller.ts";
import { newSecret } from "../auth/secrets.ts";
import { hashToken } from "../auth/tokens.ts";
import type { SignedInBrowser, WebSignInProblem } from "../auth/web/web-sign-in.ts";
import type { BrowserRequest } from "../auth/web/web-sessions.ts";
import { EngineError } from "../core/errors.ts";
import type { HttpRequest, HttpResponse } from "../io/http/http.ts";
import { checkIsGet } from "../server/check-is-get.ts";
import { secret } from "../server/origin.ts";
import { defineRoute, type Call } from "../server/route.ts";
import { askedOrigin, sessionCookieOf, setSessionCookie } from "../server/web-session.ts";
import type { AccessDeps } from "./deps.ts";
import { HOME, returnTo } from "./return-to.ts";
import { callerBody, shownCaller } from "./sign-in.ts";
import { CALLBACK, clearFlowCookie, flowOf, setFlowCookie, type SignInFlow } from "./sign-in-flow.ts";

/**
 * Signing in from a browser. What comes of it is a cookie (`server/web-session.ts`) and never a token. Each of these asks
 * for the proof of the same origin, too: nobody else's page signs a browser in as somebody whom it has chosen. The way
 * over an issuer has none, as whoever comes back is sent by the issuer; there the flow's own cookie is the proof.
 */

const common = { role: "none", tag: "Authentication" } as const;
const ofOwnPages = { ...common, ownPages: true, ownPageOnly: true } as const;

const signedIn = {
  status: 200,
  description: "Signed in: who it is.",
  type: "application/json",
  schema: callerBody,
  headers: { "Set-Cookie": "`engine_session_<port>`, which no script reads." },
} as const;

const signInErrors = ["unauthorized", "forbidden", "too_many_requests", "unavailable", "insufficient_storage"] as const;

export const webLoginRoute = defineRoute({
  ...ofOwnPages,
  method: "POST",
  path: "/v1/auth/web/login",
  summary: "Sign a browser in with a password",
  description: "For pages of this server. The answer has no token: a cookie that no script reads stands for it.",
  json: z.strictObject({ username: z.string(), password: z.string() }),
  responses: [signedIn],
  errors: signInErrors,
  handler:
    ({ webSignIn }: AccessDeps) =>
    async (call) => {
      const { username, password } = call.json;
      return signedInAnswer(call.request, await webSignIn.withPassword(username, password, browserOf(call)));
    },
});

export const webTokenRoute = defineRoute({
  ...ofOwnPages,
  method: "POST",
  path: "/v1/auth/web/token",
  summary: "Sign a browser in with a token",
  description:
    "A token of the configuration, an API token, or one of an OIDC issuer or identity provider. The session ends with it.",
  json: z.strictObject({ token: z.string() }),
  responses: [signedIn],
  errors: signInErrors,
  handler:
    ({ webSignIn }: AccessDeps) =>
    async (call) =>
      signedInAnswer(call.request, await webSignIn.withToken(call.json.token, browserOf(call))),
});

export const webLogoutRoute = defineRoute({
  ...common,
  ownPageOnly: true,
  method: "POST",
  path: "/v1/auth/web/logout",
  summary: "Sign a browser out",
  description: "Ends the session of the cookie, if there is one, and takes the cookie away.",
  responses: [
    {
      status: 200,
      description: "Signed out.",
      type: "application/json",
      schema: z.object({ signed_out: z.literal(true) }),
      headers: { "Set-Cookie": "Takes the cookie away." },
    },
  ],
  errors: ["forbidden", "unavailable", "insufficient_storage"],
  handler:
    ({ webSessions }: AccessDeps) =>
    async ({ request, clientAddress: address, requestId }) => {
      const cookie = sessionCookieOf(request);
      if (cookie !== undefined) await webSessions.close(cookie, { address, requestId });
      return withCookies(secret(200, { signed_out: true }), [setSessionCookie(request, undefined)]);
    },
});

const redirect = {
  status: 302,
  description: "To the issuer, to `return_to`, or to `/ui/sign-in?error=…`.",
  headers: { Location: "The next place." },
} as const;

export const webStartRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/auth/web/start",
  summary: "Send a browser to an issuer to sign in",
  description:
    "`/v1/auth/config` has the values of `provider`. The issuer sends the browser back to `/v1/auth/web/callback`.",
  query: z.object({
    provider: z.string(),
    return_to: z.string().default(HOME).describe("Where to go afterwards: a path below `/ui/`."),
  }),
  responses: [redirect],
  errors: ["unavailable", "method_not_allowed"],
  handler:
    ({ webSignIn, publicOrigin, random }: AccessDeps) =>
    async ({ request, query }) => {
      checkIsGet(request, "GET");
      const way = webSignIn.ways.find(({ provider }) => provider === query.provider);
      if (way === undefined) return failed("unknown_provider");
      const place = returnTo(query.return_to);
      if (place === undefined) return failed("invalid_return_to");
      const flow: SignInFlow = {
        provider: way.provider,
        redirectUri: `${publicOrigin ?? askedOrigin(request)}${CALLBACK}`,
        state: newSecret(random),
        nonce: newSecret(random),
        verifier: newSecret(random),
        returnTo: place,
        former: formerHashOf(request),
      };
      try {
        return goTo(await way.client.authorizationUrl(flow), [setFlowCookie(request, flow)]);
      } catch (error) {
        if (error instanceof EngineError && error.code === "unavailable") return failed("provider_unreachable");
        throw error;
      }
    },
});

export const webCallbackRoute = defineRoute({
  ...common,
  method: "GET",
  path: CALLBACK,
  summary: "Take what an issuer sends a browser back with",
  description:
    "The code is exchanged by this server. `error` of `/ui/sign-in` is `state_mismatch`, `access_denied`, " +
    "`provider_refused`, `provider_unreachable`, `invalid_token`, `forbidden`, `too_many_requests` or `unavailable`.",
  query: z.object({
    code: z.string().max(4_096).optional(),
    state: z.string().max(200).optional(),
    iss: z.string().max(1_000).optional().describe("Who answers (RFC 9207)."),
    error: z.string().optional(),
  }),
  responses: [{ ...redirect, headers: { ...redirect.headers, "Set-Cookie": "As of the other ways to sign in." } }],
  errors: ["invalid_parameter", "method_not_allowed", "insufficient_storage"],
  handler: (deps: AccessDeps) => async (call) => {
    checkIsGet(call.request, "GET");
    const { state = "", code, iss, error } = call.query;
    const flow = flowOf(call.request, state);
    // Nothing is said of what came: whoever has sent the browser here may have chosen it.
    if (flow === undefined) return failed("state_mismatch");
    const spent = clearFlowCookie(call.request, state);
    if (error !== undefined) return failed(error === "access_denied" ? error : "provider_refused", [spent]);
    if (code === undefined || code === "") return failed("provider_refused", [spent]);
    const outcome = await signedInBy(deps, call, flow, { code, iss });
    if (typeof outcome === "string") return failed(outcome, [spent]);
    return goTo(flow.returnTo, [setSessionCookie(call.request, outcome.cookie), spent]);
  },
});

async function signedInBy(
  { webSignIn }: AccessDeps,
  call: Call,
  flow: SignInFlow,
  answer: { code: string; iss: string | undefined },
): Promise<SignedInBrowser | WebSignInProblem | "state_mismatch" | "too_many_requests" | "unavailable"> {
  const way = webSignIn.ways.find(({ provider }) => provider === flow.provider);
  if (way === undefined) return "state_mismatch";
  try {
    return await webSignIn.withCode(way, answer, flow, { ...browserOf(call), formerHash: flow.former });
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    if (error.code === "too_many_requests" || error.code === "unavailable") return error.code;
    throw error;
  }
}

function browserOf({ request, clientAddress: address, requestId }: Call): BrowserRequest {
  return {
    address,
    requestId,
    userAgent: request.header("user-agent"),
    formerHash: formerHashOf(request),
  };
}

function formerHashOf(request: HttpRequest): string | undefined {
  const cookie = sessionCookieOf(request);
  return cookie && hashToken(cookie);
}

function signedInAnswer(request: HttpRequest, { caller, cookie }: { caller: Caller; cookie: string }): HttpResponse {
  return withCookies(secret(200, shownCaller(caller)), [setSessionCookie(request, cookie)]);
}

function failed(error: string, cookies: readonly string[] = []): HttpResponse {
  return goTo(`/ui/sign-in?error=${encodeURIComponent(error)}`, cookies);
}

function goTo(place: string, cookies: readonly string[]): HttpResponse {
  return withCookies({ status: 302, headers: { Location: place, "Cache-Control": "no-store" } }, cookies);
}

/** What a cookie is made for is for nobody else. */
function withCookies(response: HttpResponse, cookies: readonly string[]): HttpResponse {
  return { ...response, headers: { ...response.headers, Vary: "Cookie" }, cookies };
}
