import { z } from "zod";
import { originOf } from "../../../server/origin.ts";
import { PAGE_HEADERS, pageBefore, pageLimit, pageOf } from "../../../server/paging.ts";
import { defineRoute, jsonResponse } from "../../../server/route.ts";
import { MOST_SESSIONS } from "../sessions/sessions.ts";
import { sandboxPath } from "./bodies.ts";
import type { SandboxDeps } from "./deps.ts";
import { messageItemOf, sessionInfo, sessionItem, sessionOf, sessionPath } from "./session-bodies.ts";

/** Conversations with the agents of sandboxes. */

type SessionDeps = Pick<SandboxDeps, "sandboxes">;

const common = { tag: "Sessions" } as const;
const MOST_METADATA_BYTES = 64 * 1024;
const MOST_MESSAGES = 1_000;
/** What an agent is asked is refused by these, as what a sandbox is made of. */
export const sessionJsonErrors = { unreadable: "config_error", invalid: "config_validation_error" } as const;

const newSession = z
  .strictObject({
    metadata: z
      .record(z.string(), z.unknown())
      .refine((given) => Buffer.byteLength(JSON.stringify(given)) <= MOST_METADATA_BYTES, {
        message: `has more than ${MOST_METADATA_BYTES} bytes`,
      })
      .optional()
      .describe("Kept and shown; nothing is done with it."),
  })
  .optional();

export const createSessionRoute = defineRoute({
  ...common,
  role: "write",
  method: "POST",
  path: "/api/v1/sandboxes/{id}/sessions",
  summary: "Begin a session with the agent of a sandbox",
  description:
    `In every state of the sandbox but \`failed\`; at most ${MOST_SESSIONS} of one sandbox. It lasts for as long as the ` +
    "sandbox, and is deleted with it.",
  params: sandboxPath,
  json: newSession,
  jsonErrors: sessionJsonErrors,
  responses: [{ status: 201, description: "The session.", type: "application/json", schema: sessionItem }],
  errors: ["sandbox_not_found", "sandbox_invalid_state", "conflict", "insufficient_storage", "unavailable"],
  handler:
    ({ sandboxes }: SessionDeps) =>
    async ({ caller, params, json }) =>
      jsonResponse(201, sessionOf(await sandboxes.sessions.create(params.id, json?.metadata ?? {}, caller))),
});

export const listSessionsRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: "/api/v1/sandboxes/{id}/sessions",
  summary: "List the sessions of a sandbox",
  params: sandboxPath,
  query: z.object({ limit: pageLimit(MOST_SESSIONS), before: pageBefore }),
  responses: [
    {
      status: 200,
      description: "Newest first.",
      type: "application/json",
      schema: z.array(sessionItem),
      headers: PAGE_HEADERS,
    },
  ],
  errors: ["sandbox_not_found", "invalid_parameter"],
  handler:
    ({ sandboxes }: SessionDeps) =>
    async ({ caller, request, params, query: { limit: most, before } }) => {
      const list = (limit: number) => sandboxes.sessions.list(params.id, { limit, before }, caller);
      const { items, headers } = await pageOf(request, most, list);
      return jsonResponse(200, items.map(sessionOf), headers);
    },
});

export const getSessionRoute = defineRoute({
  ...common,
  role: "read",
  method: "GET",
  path: "/api/v1/sessions/{sid}",
  summary: "A session with what was said in it",
  description: "The newest messages; fewer than `limit` where they are large together.",
  params: sessionPath,
  query: z.object({
    limit: pageLimit(MOST_MESSAGES),
    before: z.uuid().optional().describe("Only messages before this one: the first of the page before."),
  }),
  responses: [{ status: 200, description: "The session.", type: "application/json", schema: sessionInfo }],
  errors: ["session_not_found", "invalid_parameter"],
  handler:
    ({ sandboxes }: SessionDeps) =>
    async ({ caller, params, query }) => {
      const session = await sandboxes.sessions.get(params.sid, caller);
      const messages = await sandboxes.sessions.messages(session, query);
      return jsonResponse(200, { ...sessionOf(session), messages: messages.map(messageItemOf) });
    },
});

export const interruptSessionRoute = defineRoute({
  ...common,
  role: "write",
  method: "POST",
  path: "/api/v1/sessions/{sid}/interrupt",
  summary: "Have the agent stop answering",
  description: "The message that it answers ends soon, with what it has said until then; its sender gets that.",
  params: sessionPath,
  responses: [{ status: 200, description: "The session.", type: "application/json", schema: sessionItem }],
  errors: ["session_not_found", "session_invalid_state", "insufficient_storage"],
  handler:
    ({ sandboxes }: SessionDeps) =>
    async (call) => {
      const { caller, params } = call;
      const session = await sandboxes.sessions.get(params.sid, caller);
      const by = { asker: caller, origin: originOf(call) };
      return jsonResponse(200, sessionOf(await sandboxes.sessions.interrupt(session, by)));
    },
});
