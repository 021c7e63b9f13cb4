import { z } from "zod";
import type { Caller } from "../../auth/caller.ts";
import { EngineError } from "../../core/errors.ts";
import type { HttpRequest, HttpResponse } from "../../io/http/http.ts";
import { mayChange, type Credential } from "../credentials.ts";
import type { ConnectionDeps } from "./deps.ts";
import { checkIsGet } from "../../server/check-is-get.ts";
import { originOf, secret } from "../../server/origin.ts";
import { preferredType } from "../../server/negotiate.ts";
import { defineRoute } from "../../server/route.ts";
import {
  answerQuery,
  Callback,
  callbackForm,
  callbackPages,
  confirmErrors,
  isOfAnotherPage,
  PROBLEMS,
  type CallbackResult,
} from "./callback.ts";
import { deviceCodeRoute, devicePollRoute } from "./device.ts";
import { BASE_PATH, checkIsListed, connected, connection, providerPath, refusal } from "./shared.ts";

/** Connecting the accounts that sandboxes work with: the providers of `oauth.providers`. */

const MAX_URI_CHARS = 2_048;
const MAX_ID_CHARS = 200;

const common = { tag: "OAuth" } as const;

const authorizeRoute = defineRoute({
  ...common,
  method: "GET",
  path: `${BASE_PATH}/{provider}/authorize`,
  role: "write",
  summary: "Begin to connect an account in a browser",
  description:
    "Open the address of `Location` in a browser within ten minutes. What came of it is at `/v1/oauth/flows/{state}` " +
    "with the `state` of that address, for the one who began.",
  params: providerPath,
  query: z.object({
    redirect_uri: z
      .string()
      .max(MAX_URI_CHARS)
      .optional()
      .describe("One of `oauth.redirect_uris`, or the callback of this server, which it is by default."),
  }),
  responses: [
    {
      status: 302,
      description: "The provider waits for the browser.",
      headers: { Location: "The page of the provider.", "Set-Cookie": "The mark of the browser that began." },
    },
  ],
  errors: ["not_found", "method_not_allowed", "not_configured", "unavailable", "insufficient_storage"],
  handler: (deps: ConnectionDeps) => {
    const callback = new Callback(deps, BASE_PATH);
    return async (call) => {
      checkIsGet(call.request, "GET");
      const { provider } = call.params;
      checkIsListed(deps, provider);
      const redirectUri = redirectUriOf(deps, provider, call.query.redirect_uri);
      const request = { provider, redirectUri, sourceType: undefined, scopes: undefined, label: undefined };
      const { authorizeUrl, state, browserToken } = await deps.oauth.start(
        { ...request, app: undefined },
        originOf(call),
      );
      const mark = callback.cookie(state, browserToken);
      return { status: 302, headers: { Location: authorizeUrl, "Set-Cookie": mark, "Cache-Control": "no-store" } };
    };
  },
});

/** Letter by letter: a provider that compares less exactly must not decide whom it sends codes to. */
function redirectUriOf({ oauth, redirectUris }: ConnectionDeps, provider: string, asked: string | undefined): string {
  const own = `${oauth.redirectOrigin}${BASE_PATH}/${provider}/callback`;
  if (asked === undefined || asked === own || redirectUris.includes(asked)) return asked ?? own;
  throw new EngineError("invalid_parameter", "redirect_uri: it is none of oauth.redirect_uris");
}

const callbackRoute = defineRoute({
  ...common,
  method: "GET",
  path: `${BASE_PATH}/{provider}/callback`,
  role: "none",
  summary: "Where the provider sends the browser back to",
  description:
    "Ends the flow that `state` is of, once. A browser gets a page: in the one that began, the result; in another one, a " +
    "question before it. A program gets JSON.",
  params: providerPath,
  query: answerQuery,
  responses: [
    { status: 200, description: "The account is connected.", type: "application/json", schema: connection },
    ...callbackPages,
  ],
  errors: [
    ...(["method_not_allowed", "oauth_denied", "oauth_expired", "oauth_failed", "forbidden"] as const),
    ...(["not_configured", "insufficient_storage", "unavailable"] as const),
  ],
  handler: (deps: ConnectionDeps) => {
    const callback = new Callback(deps, BASE_PATH);
    return async (call) => {
      const { provider } = call.params;
      if (wantsPage(call.request)) return await callback.answer(provider, call.query, call);
      // A page of somebody else could load the provider's address as an image, with the account of whoever looks at it.
      if (isOfAnotherPage(call.request, deps.oauth.redirectOrigin)) {
        throw new EngineError("forbidden", "the page of another site sent this: open the address in a window");
      }
      return answerOf(provider, await callback.take(provider, call.query, call));
    };
  },
});

function wantsPage(request: HttpRequest): boolean {
  return preferredType(["application/json", "text/html"], request.header("accept")) === "text/html";
}

function answerOf(provider: string, result: CallbackResult): HttpResponse {
  switch (result.status) {
    case "done":
      return connected(result.credentialId, provider);
    case "failed":
      throw refusal(result.detail);
    case "expired":
      throw new EngineError("oauth_expired", PROBLEMS.expired);
    case "malformed":
    case "unknown":
    case "used":
      throw new EngineError("invalid_parameter", PROBLEMS[result.status]);
  }
}

const confirmRoute = defineRoute({
  ...common,
  method: "POST",
  path: `${BASE_PATH}/{provider}/callback`,
  role: "none",
  summary: "What the page with the question sends",
  params: providerPath,
  body: callbackForm,
  responses: callbackPages,
  errors: confirmErrors,
  handler: (deps: ConnectionDeps) => {
    const callback = new Callback(deps, BASE_PATH);
    return async (call) => await callback.confirm(call.params.provider, call);
  },
});

const refreshRoute = defineRoute({
  ...common,
  method: "POST",
  path: `${BASE_PATH}/{provider}/refresh`,
  role: "write",
  summary: "Renew the tokens of an account",
  description: "Engines renew tokens by themselves when they end; this is for whoever cannot wait for that.",
  params: providerPath,
  json: z.strictObject({ credential_id: z.string().min(1).max(MAX_ID_CHARS) }),
  responses: [
    {
      status: 200,
      description: "The tokens are new, of this request or of another one in the same moment.",
      type: "application/json",
      schema: connection.extend({
        expires_at: z.iso.datetime().nullable().describe("When the access token ends, if the provider says so."),
      }),
    },
  ],
  errors: ["credential_not_found", "conflict", "not_configured", "unavailable", "insufficient_storage"],
  handler:
    ({ tokens, credentials }: ConnectionDeps) =>
    async ({ caller, params: { provider }, json: { credential_id: id } }) => {
      const find = async () => await theirs(credentials, id, { provider, caller });
      await find();
      await tokens.renew(id, caller);
      const { expiresAtMs } = await find();
      const expires_at = expiresAtMs === undefined ? null : new Date(expiresAtMs).toISOString();
      return secret(200, { credential_id: id, provider, expires_at });
    },
});

type Wanted = { provider: string; caller: Caller };

/** Throws `credential_not_found` also for one of somebody else, shared or not, unless an admin asks. */
async function theirs(
  credentials: ConnectionDeps["credentials"],
  id: string,
  { provider, caller }: Wanted,
): Promise<Credential> {
  const found = await credentials.get(id, caller).catch((error: unknown) => {
    if (error instanceof EngineError && error.code === "not_found") return undefined;
    throw error;
  });
  const isTheirs = found !== undefined && mayChange(caller, found);
  // By hand somebody may have made one of that provider, without saying so beside the tokens.
  const value = isTheirs && found.kind === "oauth2" ? (await credentials.reveal(id, caller)).value : undefined;
  if (found !== undefined && value?.kind === "oauth2" && value.provider === provider) return found;
  throw new EngineError("credential_not_found", `there is no credential ${JSON.stringify(id)} of ${provider}`);
}

export const CONNECTION_ROUTES = [
  authorizeRoute,
  callbackRoute,
  confirmRoute,
  deviceCodeRoute,
  devicePollRoute,
  refreshRoute,
];
