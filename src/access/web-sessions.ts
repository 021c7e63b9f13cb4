import { z } from "zod";

import type { WebSession } from "../auth/web/web-sessions.ts";
import { EngineError } from "../core/errors.ts";
import { originOf, secret } from "../server/origin.ts";
import { defineRoute } from "../server/route.ts";
import { nameSchemas } from "../server/schema-names.ts";
import { deleted, deletedResponse, timeOf, timeOrNull } from "../server/schemas.ts";
import { setSessionCookie } from "../server/web-session.ts";
import type { AccessDeps } from "./deps.ts";

/** Browsers that a caller is signed in with, and the caller's own password. */

const webSession = z.object({
  id: z.string(),
  signed_in_with: z.enum(["password", "static", "api_token", "issuer"]).describe("Who vouches for it."),
  user_agent: z.string().describe("As the browser said when it signed in; at most 300 characters."),
  address: z.string().describe("The network that it signed in from."),
  created_at: z.string(),
  last_used_at: z.string().describe("To the minute."),
  ends_at: z.string().nullable().describe("When it ends however much it is used; null where it does not."),
  current: z.boolean().describe("Whether the request came with it."),
});

nameSchemas({ WebSession: webSession });

const common = { role: "read", tag: "Authentication" } as const;

export const listWebSessionsRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/auth/sessions",
  summary: "The browsers that the caller is signed in with",
  responses: [
    {
      status: 200,
      description: "The one that was used last first.",
      type: "application/json",
      schema: z.object({ sessions: z.array(webSession) }),
    },
  ],
  errors: [],
  handler:
    ({ webSessions }: AccessDeps) =>
    async ({ caller }) => {
      const sessions = await webSessions.list(caller);
      return secret(200, { sessions: sessions.map((session) => bodyOf(session, caller.webSessionId)) });
    },
});

export const endWebSessionRoute = defineRoute({
  ...common,
  method: "DELETE",
  path: "/v1/auth/sessions/{id}",
  summary: "Sign one of the caller's browsers out",
  params: z.object({ id: z.string() }),
  responses: [deletedResponse],
  errors: ["not_found", "insufficient_storage"],
  handler:
    ({ webSessions }: AccessDeps) =>
    async (call) => {
      await webSessions.end(call.params.id, originOf(call));
      if (call.params.id !== call.caller.webSessionId) return deleted();
      return { ...deleted(), cookies: [setSessionCookie(call.request, undefined)] };
    },
});

export const endOtherWebSessionsRoute = defineRoute({
  ...common,
  method: "DELETE",
  path: "/v1/auth/sessions",
  summary: "Sign the caller's other browsers out",
  description: "All but the one that the request came with.",
  responses: [
    {
      status: 200,
      description: "How many they were.",
      type: "application/json",
      schema: z.object({ ended: z.int() }),
    },
  ],
  errors: ["insufficient_storage"],
  handler:
    ({ webSessions }: AccessDeps) =>
    async (call) =>
      secret(200, { ended: await webSessions.endOthers(originOf(call)) }),
});

export const changePasswordRoute = defineRoute({
  ...common,
  method: "PUT",
  path: "/v1/auth/password",
  summary: "Change the caller's own password",
  description:
    "For users with a password kept here who have signed in with it. Ends their other sessions, those of browsers and " +
    "those of refresh tokens; API tokens stay.",
  json: z.strictObject({ current_password: z.string(), new_password: z.string().describe("At least 8 characters.") }),
  responses: [
    {
      status: 200,
      description: "Changed.",
      type: "application/json",
      schema: z.object({ changed: z.literal(true) }),
    },
  ],
  errors: ["conflict", "invalid_parameter", "too_many_requests", "insufficient_storage"],
  handler:
    ({ signIn, users, audit }: AccessDeps) =>
    async (call) => {
      const { subject, kind, userId, sessionId, webSessionId } = call.caller;
      // A token is worth less than the password of whoever made it.
      if (kind === "api_token") throw new EngineError("forbidden", "a token cannot change a password: sign in");
      if (kind !== "session" || userId === undefined) {
        throw new EngineError("conflict", "only users who signed in with a password kept on this server can change it");
      }
      const { current_password: current, new_password: password } = call.json;
      const verified = await signIn.check(subject, current, call.clientAddress);
      const origin = originOf(call);
      const kept = { sessionId, webSessionId };
      const isChanged =
        verified?.user.id === userId &&
        (await users.changePassword({ ...verified.user, passwordHash: verified.passwordHash }, password, kept, origin));
      if (!isChanged) {
        await audit.record({ origin, action: "user.password", target: subject, outcome: "refused" });
        throw new EngineError("forbidden", "the current password is wrong");
      }
      return secret(200, { changed: true });
    },
});

function bodyOf(session: WebSession, currentId: string | undefined): z.output<typeof webSession> {
  const { id, voucher, userAgent, address, createdAtMs, lastUsedAtMs, endsAtMs } = session;
  return {
    id,
    signed_in_with: voucher,
    user_agent: userAgent,
    address,
    created_at: timeOf(createdAtMs),
    last_used_at: timeOf(lastUsedAtMs),
    ends_at: timeOrNull(endsAtMs),
    current: id === currentId,
  };
}
