import { z } from "zod";

import { PROVIDER_NAMES } from "../oauth/providers.ts";
import { answerQuery, Callback, callbackForm, callbackPages, confirmErrors } from "./callback.ts";
import { defineRoute } from "../../server/route.ts";
import { originOf, secret } from "../../server/origin.ts";
import type { OAuthDeps } from "./deps.ts";

/** Connecting accounts of providers: the routes around `knowledge/oauth`. */

const MAX_LABEL_CHARS = 200;
const MAX_SCOPES = 50;
const MAX_SCOPE_CHARS = 200;
const MAX_SECRET_CHARS = 4_096;
const BASE_PATH = "/v1/oauth";

const common = { tag: "OAuth" } as const;
const providerPath = z.object({ provider: z.enum(PROVIDER_NAMES) });
/** RFC 6749 §3.3, without what separates scopes with some provider. */
const scope = z.string().regex(/^[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]+$/, "is no scope");
/** What a header carries unchanged. */
const appText = z.string().regex(/^[\x21-\x7e]+$/, "holds other than visible ASCII characters");

export const startOAuthRoute = defineRoute({
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
  handler: (deps: OAuthDeps) => {
    const callback = new Callback(deps, BASE_PATH);
    return async (call) => {
      const { data_source_type: sourceType, scopes, label, client_id: clientId, client_secret } = call.json;
      const app =
        clientId === undefined || client_secret === undefined ? undefined : { clientId, clientSecret: client_secret };
      const request = { provider: call.params.provider, sourceType, scopes, label, app };
      const { authorizeUrl, state, browserToken } = await deps.oauth.start(request, originOf(call));
      const response = secret(200, { authorize_url: authorizeUrl, state });
      response.headers["Set-Cookie"] = callback.cookie(state, browserToken);
      return response;
    };
  },
});

export const oauthCallbackRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/oauth/{provider}/callback",
  role: "none",
  summary: "Where the provider sends the browser back to",
  description: "In the browser that started the flow it ends it; in another one it asks first.",
  params: providerPath,
  query: answerQuery,
  responses: callbackPages,
  errors: ["method_not_allowed", "not_configured", "insufficient_storage", "unavailable"],
  handler: (deps: OAuthDeps) => {
    const callback = new Callback(deps, BASE_PATH);
    return async (call) => await callback.answer(call.params.provider, call.query, call);
  },
});

export const confirmOAuthRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/oauth/{provider}/callback",
  role: "none",
  summary: "What the page with the question sends",
  params: providerPath,
  body: callbackForm,
  responses: callbackPages,
  errors: confirmErrors,
  handler: (deps: OAuthDeps) => {
    const callback = new Callback(deps, BASE_PATH);
    return async (call) => await callback.confirm(call.params.provider, call);
  },
});

export const oauthFlowRoute = defineRoute({
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
  handler:
    ({ oauth }: OAuthDeps) =>
    async ({ caller, params }) => {
      const { status, credentialId } = await oauth.status(params.state, caller);
      return secret(200, { status, credential_id: credentialId ?? null });
    },
});
