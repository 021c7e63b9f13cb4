import { z } from "zod";

import type { Caller } from "../auth/caller.ts";
import type { SessionTokens } from "../auth/sessions.ts";
import { EngineError } from "../core/errors.ts";
import { defineRoute, jsonResponse } from "../server/route.ts";
import { authConfig } from "./auth-config.ts";
import type { AccessDeps } from "./deps.ts";
import { originOf, secret } from "../server/origin.ts";
import { callerRole, deleted, deletedResponse } from "../server/schemas.ts";
import { nameSchemas } from "../server/schema-names.ts";

/** Signing in and out, and who one is. */

const tokensBody = z.object({
  access_token: z.string().describe("Send it as `Authorization: Bearer …`."),
  token_type: z.literal("Bearer"),
  expires_in: z.int().describe("Seconds that the access token is good for."),
  refresh_token: z.string().describe("Good for one use at `/v1/auth/refresh`, which gives the next."),
  refresh_expires_in: z.int(),
});

const signedIn = tokensBody.extend({ user: z.object({ username: z.string(), role: callerRole }) });

export const loginRoute = defineRoute({
  method: "POST",
  path: "/v1/auth/login",
  role: "none",
  ownPages: true,
  tag: "Authentication",
  summary: "Sign in with a password",
  json: z.strictObject({ username: z.string(), password: z.string() }),
  responses: [{ status: 200, description: "Signed in.", type: "application/json", schema: signedIn }],
  errors: ["unauthorized", "forbidden", "too_many_requests", "unavailable", "insufficient_storage"],
  handler:
    ({ signIn }: AccessDeps) =>
    async ({ clientAddress, requestId, json: { username, password } }) => {
      const from = { address: clientAddress, requestId };
      const { user, tokens } = await signIn.signIn(username, password, from);
      return secret(200, { ...bodyOf(tokens), user: { username: user.name, role: user.role } });
    },
});

export const refreshRoute = defineRoute({
  method: "POST",
  path: "/v1/auth/refresh",
  role: "none",
  tag: "Authentication",
  summary: "Exchange a refresh token for new tokens",
  description: "A refresh token is good for one use. One that comes again ends its session, with all its tokens.",
  json: z.strictObject({ refresh_token: z.string() }),
  responses: [{ status: 200, description: "New tokens.", type: "application/json", schema: tokensBody }],
  errors: ["unauthorized", "too_many_requests", "unavailable", "insufficient_storage"],
  handler:
    ({ sessions }: AccessDeps) =>
    async ({ clientAddress, requestId, json }) => {
      const from = { address: clientAddress, requestId };
      return secret(200, bodyOf(await sessions.refresh(json.refresh_token, from)));
    },
});

export const logoutRoute = defineRoute({
  method: "POST",
  path: "/v1/auth/logout",
  role: "read",
  tag: "Authentication",
  summary: "End the session of the access token, with all its tokens",
  responses: [deletedResponse],
  errors: ["conflict"],
  handler:
    ({ sessions }: AccessDeps) =>
    async (call) => {
      const { sessionId } = call.caller;
      if (sessionId === undefined) throw new EngineError("conflict", "this token is of no session");
      await sessions.close(sessionId, originOf(call));
      return deleted();
    },
});

export const authConfigRoute = defineRoute({
  method: "GET",
  path: "/v1/auth/config",
  role: "none",
  tag: "Authentication",
  summary: "What a page needs to offer signing in",
  responses: [{ status: 200, description: "As configured.", type: "application/json", schema: authConfig }],
  errors: [],
  handler:
    ({ authConfig: config }: AccessDeps) =>
    () =>
      Promise.resolve(jsonResponse(200, config)),
});

export const callerBody = z.object({
  subject: z.string(),
  kind: z.string(),
  role: callerRole,
  databases: z.array(z.string()).nullable().describe("Those that the token is limited to; null for all."),
});

nameSchemas({ Tokens: tokensBody, SignedIn: signedIn, Caller: callerBody });

export const selfRoute = defineRoute({
  method: "GET",
  path: "/v1/auth/me",
  role: "read",
  tag: "Authentication",
  summary: "Who the caller is, and what they may do",
  responses: [{ status: 200, description: "The caller.", type: "application/json", schema: callerBody }],
  errors: [],
  handler:
    () =>
    ({ caller }) =>
      Promise.resolve(jsonResponse(200, shownCaller(caller))),
});

export function shownCaller({ subject, kind, role, databases }: Caller): z.output<typeof callerBody> {
  return { subject, kind, role, databases: databases === undefined ? null : [...databases] };
}

function bodyOf(tokens: SessionTokens): z.output<typeof tokensBody> {
  return {
    access_token: tokens.accessToken,
    token_type: "Bearer",
    expires_in: Math.floor(tokens.accessTtlMs / 1_000),
    refresh_token: tokens.refreshToken,
    refresh_expires_in: Math.floor(tokens.refreshTtlMs / 1_000),
  };
}
