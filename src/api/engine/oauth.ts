import { z } from "zod";

import { hashToken } from "../../auth/tokens.ts";
import { EngineError } from "../../core/errors.ts";
import type { HttpRequest, HttpResponse } from "../../io/http/http.ts";
import { FLOW_TTL_MS } from "../../knowledge/oauth/flow-records.ts";
import type { FlowProblem, FlowResult, ProviderAnswer } from "../../knowledge/oauth/flows.ts";
import { PROVIDER_NAMES, type ProviderName } from "../../knowledge/oauth/providers.ts";
import { readDecodedBody } from "../../io/http/decode.ts";
import { defineRoute, describeRoute, type Call, type Route } from "../route.ts";
import { originOf, secret } from "./auth.ts";
import type { OAuthDeps } from "./deps.ts";
import { confirmationPage, resultPage, type ResultPage } from "./oauth-pages.ts";

/** Connecting accounts of providers: the routes around `knowledge/oauth`. */

const MAX_LABEL_CHARS = 200;
const MAX_SCOPES = 50;
const MAX_SCOPE_CHARS = 200;
const MAX_SECRET_CHARS = 4_096;
const FORM_BYTES = 16 * 1024;
const NONCE_BYTES = 16;

const common = { tag: "OAuth" } as const;
const providerPath = z.object({ provider: z.enum(PROVIDER_NAMES) });
/** RFC 6749 §3.3, without what separates scopes with some provider. */
const scope = z.string().regex(/^[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]+$/, "is no scope");
/** What a header carries unchanged. */
const appText = z.string().regex(/^[\x21-\x7e]+$/, "holds other than visible ASCII characters");

export const startOAuthRow = describeRoute({
  ...common,
  method: "POST",
  path: "/v1/oauth/{provider}/start",
  role: "write",
  summary: "Begin to connect an account",
  description:
    "Open `authorize_url` in a window of the browser within ten minutes. The page at the end tells the window that " +
    'opened it, if that is of the user interface: `{"type": "engine.oauth", "status", "credential_id", "state"}`.',
  params: providerPath,
  json: z
    .strictObject({
      data_source_type: z
        .string()
        .max(MAX_LABEL_CHARS)
        .describe(
          "What will read with it: `drive`, `mail` (google), `notes` (notion), `tracker`, `wiki` (atlassian), `chat` (slack).",
        ),
      scopes: z.array(scope.max(MAX_SCOPE_CHARS)).max(MAX_SCOPES).optional().describe("Those of the type by default."),
      label: z.string().min(1).max(MAX_LABEL_CHARS).optional(),
      client_id: appText
        .max(MAX_SECRET_CHARS)
        .optional()
        .describe("Of an app of one's own; the operator's by default."),
      client_secret: appText.max(MAX_SECRET_CHARS).optional(),
    })
    .refine(
      ({ client_id, client_secret }) => (client_id === undefined) === (client_secret === undefined),
      "client_id and client_secret go together",
    ),
  responses: [
    {
      status: 200,
      description: "The provider waits for the browser.",
      type: "application/json",
      schema: z.object({ authorize_url: z.string(), state: z.string() }),
    },
  ],
  errors: ["not_configured", "invalid_parameter", "insufficient_storage"],
});

export function startOAuthRoute({ oauth }: OAuthDeps): Route {
  return defineRoute({
    ...startOAuthRow,
    handle: async (call) => {
      const { data_source_type: sourceType, scopes, label, client_id: clientId, client_secret } = call.json;
      const app =
        clientId === undefined || client_secret === undefined ? undefined : { clientId, clientSecret: client_secret };
      const request = { provider: call.params.provider, sourceType, scopes, label, app };
      const { authorizeUrl, state, browserToken } = await oauth.start(request, originOf(call));
      const response = secret(200, { authorize_url: authorizeUrl, state });
      response.headers["Set-Cookie"] = cookieOf(oauth.redirectOrigin, state, browserToken);
      return response;
    },
  });
}

const pages = [
  { status: 200, description: "A page with the result, or with a question before it.", type: "text/html" },
  { status: 400, description: "A page that says why this is no answer to a flow.", type: "text/html" },
] as const;

const answer = z.object({
  code: z.string().optional(),
  state: z.string().optional(),
  iss: z.string().optional().describe("Who answers (RFC 9207)."),
  error: z.string().optional(),
});

export const oauthCallbackRow = describeRoute({
  ...common,
  method: "GET",
  path: "/v1/oauth/{provider}/callback",
  role: "none",
  summary: "Where the provider sends the browser back to",
  description: "In the browser that started the flow it ends it; in another one it asks first.",
  params: providerPath,
  query: answer,
  responses: pages,
  errors: ["method_not_allowed", "not_configured", "insufficient_storage", "unavailable"],
});

export function oauthCallbackRoute(deps: OAuthDeps): Route {
  return defineRoute({
    ...oauthCallbackRow,
    handle: async (call) => {
      // Whoever only looks must not use the answer up.
      if (call.request.method !== "GET") {
        throw new EngineError("method_not_allowed", "an answer is taken by GET or POST", {
          headers: { Allow: "GET, POST" },
        });
      }
      const { provider } = call.params;
      const sent = sentBy(call.query);
      if (sent === undefined) return problemPage(deps, "malformed");
      const flow = await deps.oauth.pending(provider, sent.state);
      if (typeof flow === "string") return problemPage(deps, flow, sent.state);
      if ("code" in sent.answer && !flow.isOf(cookieIn(call.request, deps.oauth.redirectOrigin, sent.state))) {
        const { code, issuer } = sent.answer;
        return confirmationPage(flow, { code, state: sent.state, iss: issuer }, nonceOf(deps));
      }
      return await finish(deps, provider, sent, call);
    },
  });
}

export const confirmOAuthRow = describeRoute({
  ...common,
  method: "POST",
  path: "/v1/oauth/{provider}/callback",
  role: "none",
  summary: "What the page with the question sends",
  params: providerPath,
  body: {
    types: ["application/x-www-form-urlencoded"],
    description: "`decision` (`connect` or `cancel`) with `code`, `state` and `iss` as the provider sent them.",
    limitBytes: FORM_BYTES,
  },
  responses: pages,
  errors: [
    ...(["forbidden", "not_configured", "insufficient_storage", "unavailable"] as const),
    ...(["body_too_large", "unsupported_media_type", "request_timeout"] as const),
  ],
});

export function confirmOAuthRoute(deps: OAuthDeps): Route {
  return defineRoute({
    ...confirmOAuthRow,
    handle: async (call) => {
      if (!isOfThisOrigin(call.request, deps.oauth.redirectOrigin)) {
        throw new EngineError("forbidden", "this form is sent by the page of this server only");
      }
      const bytes = await readDecodedBody(call.request, FORM_BYTES);
      const form = new URLSearchParams(Buffer.from(bytes).toString("utf8"));
      const sent = sentBy(answer.parse(Object.fromEntries(form)));
      const decision = form.get("decision");
      if (sent === undefined || (decision !== "connect" && decision !== "cancel"))
        return problemPage(deps, "malformed");
      const decided = decision === "connect" ? sent : { ...sent, answer: { error: "cancelled" } };
      return await finish(deps, call.params.provider, decided, call);
    },
  });
}

export const oauthFlowRow = describeRoute({
  ...common,
  method: "GET",
  path: "/v1/oauth/flows/{state}",
  role: "write",
  summary: "What became of a flow",
  description: "For the one who started it, where the window cannot be told.",
  params: z.object({ state: z.string() }),
  responses: [
    {
      status: 200,
      description: "As it is now.",
      type: "application/json",
      schema: z.object({
        status: z.enum(["pending", "done", "failed", "expired"]),
        credential_id: z.string().nullable(),
      }),
    },
  ],
  errors: ["not_found"],
});

export function oauthFlowRoute({ oauth }: OAuthDeps): Route {
  return defineRoute({
    ...oauthFlowRow,
    handle: async ({ caller, params }) => {
      const { status, credentialId } = await oauth.status(params.state, caller);
      return secret(200, { status, credential_id: credentialId ?? null });
    },
  });
}

type Sent = { state: string; answer: ProviderAnswer };

/** Undefined for what is no answer of a provider. Values are never repeated in an error: a code is a secret. */
function sentBy({ code, state, iss, error }: z.output<typeof answer>): Sent | undefined {
  if (state === undefined) return undefined;
  if (error !== undefined) return { state, answer: { error } };
  if (code === undefined || code === "" || code.length > MAX_SECRET_CHARS) return undefined;
  return { state, answer: { code, issuer: iss } };
}

async function finish(deps: OAuthDeps, provider: ProviderName, sent: Sent, call: Call): Promise<HttpResponse> {
  const { clientAddress, requestId } = call;
  const from = { address: clientAddress, requestId };
  const result = await deps.oauth.finish(provider, sent.state, sent.answer, from);
  if (result.status !== "done" && result.status !== "failed") return problemPage(deps, result.status, sent.state);
  const response = resultPage(pageOf(result, sent.state), deps.oauthReturnBase, nonceOf(deps));
  response.headers["Set-Cookie"] = cookieOf(deps.oauth.redirectOrigin, sent.state, undefined);
  return response;
}

function pageOf(result: Extract<FlowResult, { status: "done" | "failed" }>, state: string): ResultPage {
  const type = "engine.oauth";
  if (result.status === "done") {
    const message = { type, status: "done", credential_id: result.credentialId, state } as const;
    return { status: 200, title: "Connected", text: "The account is connected. You can close this window.", message };
  }
  const message = { type, status: "failed", credential_id: null, state } as const;
  const text = `The account was not connected (${result.detail}). Start again where you came from.`;
  return { status: 200, title: "Not connected", text, message };
}

const PROBLEMS: Readonly<Record<FlowProblem | "malformed", string>> = {
  malformed: "This is no answer of a provider.",
  unknown: "Nothing was started that this would be the answer to.",
  used: "This answer came before; it is taken only once.",
  expired: "This took too long. Start again where you came from.",
};

function problemPage(deps: OAuthDeps, problem: FlowProblem | "malformed", state?: string): HttpResponse {
  const isKnown = problem === "expired" && state !== undefined;
  const message = isKnown
    ? ({ type: "engine.oauth", status: "expired", credential_id: null, state } as const)
    : undefined;
  const page = { status: 400, title: "Not connected", text: PROBLEMS[problem], message } as const;
  return resultPage(page, deps.oauthReturnBase, nonceOf(deps));
}

function nonceOf({ random }: OAuthDeps): string {
  return Buffer.from(random.fill(new Uint8Array(NONCE_BYTES))).toString("base64");
}

/**
 * The mark of the browser, one for each flow. `__Host-` keeps other hosts of the domain from setting it: one could mark
 * the browser of somebody else as the one that started. `Lax` lets it come with the provider's redirect.
 */
function cookieOf(origin: string, state: string, value: string | undefined): string {
  const place = isSecure(origin) ? "Path=/; Secure" : "Path=/v1/oauth";
  const ageSecs = value === undefined ? 0 : FLOW_TTL_MS / 1_000;
  return `${cookieName(origin, state)}=${value ?? ""}; ${place}; HttpOnly; SameSite=Lax; Max-Age=${ageSecs}`;
}

function cookieIn(request: HttpRequest, origin: string, state: string): string | undefined {
  const prefix = `${cookieName(origin, state)}=`;
  const cookies = (request.header("cookie") ?? "").split(";").map((text) => text.trim());
  return cookies.find((text) => text.startsWith(prefix))?.slice(prefix.length);
}

const COOKIE_ID_CHARS = 16;

function cookieName(origin: string, state: string): string {
  return `${isSecure(origin) ? "__Host-" : ""}engine_oauth_${hashToken(state).slice(0, COOKIE_ID_CHARS)}`;
}

function isSecure(origin: string): boolean {
  return origin.startsWith("https:");
}

/** By what browsers say and pages cannot change; a request that says neither is refused. */
function isOfThisOrigin(request: HttpRequest, own: string): boolean {
  const [site, origin] = [request.header("sec-fetch-site"), request.header("origin")];
  if (site === undefined && origin === undefined) return false;
  return (site === undefined || site === "same-origin") && (origin === undefined || origin === own);
}
