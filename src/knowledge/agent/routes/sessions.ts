import { z } from "zod";
import { originOf } from "../../../server/origin.ts";
import { defineRoute, jsonResponse } from "../../../server/route.ts";
import { nameSchemas } from "../../../server/schema-names.ts";
import { deleted, deletedResponse } from "../../../server/schemas.ts";
import { AGENT_LIMITS } from "../limits.ts";
import type { Session, Sessions, SessionTurn } from "../sessions/sessions.ts";

/** What the routes of sessions work with. */
export type SessionRouteDeps = { sessions: Sessions };

/** The id of a session, as routes take it: of the form of a UUID, whatever its version. */
export const sessionIdInput = z.guid("is no UUID").toLowerCase();

const session = z.object({
  session_id: z.string(),
  title: z.string(),
  database: z.string(),
  source: z.string().nullable().describe("What asked, as the first question said."),
  turn_count: z.int(),
  created_at: z.string(),
  last_active: z.string(),
});

const sessionMetadata = session.extend({
  rolling_summary: z.string().nullable().describe("What was said before the newest turns; null while all are shown."),
});

const turn = z.object({
  turn_index: z.int(),
  role: z.enum(["user", "assistant"]),
  content: z.string(),
  run_id: z.string().nullable(),
  created_at: z.string(),
});

nameSchemas({ AgentSession: session, AgentSessionMetadata: sessionMetadata, AgentTurn: turn });

const ABOUT = "A session belongs to the caller who began it; admins reach all.";
const common = { role: "read", tag: "Agent" } as const;
const ofSession = { ...common, params: z.object({ session_id: sessionIdInput }), description: ABOUT } as const;
const errors = ["invalid_parameter", "session_not_found"] as const;

const listSessionsRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/agent/sessions",
  summary: "Sessions of the agent",
  description: ABOUT,
  responses: [
    {
      status: 200,
      description: `The last active first, at most ${AGENT_LIMITS.sessions}.`,
      type: "application/json",
      schema: z.object({ sessions: z.array(session) }),
    },
  ],
  errors: [],
  handler:
    ({ sessions }: SessionRouteDeps) =>
    async ({ caller }) =>
      jsonResponse(200, { sessions: (await sessions.list(caller)).map(bodyOf) }),
});

const getSessionRoute = defineRoute({
  ...ofSession,
  method: "GET",
  path: "/v1/agent/sessions/{session_id}",
  summary: "A session of the agent",
  responses: [{ status: 200, description: "As it is now.", type: "application/json", schema: sessionMetadata }],
  errors,
  handler:
    ({ sessions }: SessionRouteDeps) =>
    async ({ params: { session_id: id }, caller }) => {
      const found = await sessions.get(id, caller);
      const body: z.input<typeof sessionMetadata> = { ...bodyOf(found), rolling_summary: found.rollingSummary ?? null };
      return jsonResponse(200, body);
    },
});

const listTurnsRoute = defineRoute({
  ...ofSession,
  method: "GET",
  path: "/v1/agent/sessions/{session_id}/turns",
  summary: "What was asked and answered in a session",
  query: z.object({
    after: z.coerce
      .number()
      .int()
      .min(0)
      .max(Number.MAX_SAFE_INTEGER)
      .optional()
      .describe("Only turns after the one of that `turn_index`."),
  }),
  compress: true,
  responses: [
    {
      status: 200,
      description: `By \`turn_index\`, at most ${AGENT_LIMITS.turns}.`,
      type: "application/json",
      schema: z.object({
        turns: z.array(turn),
        truncated: z.boolean().describe("There are more: ask with `after`."),
      }),
    },
  ],
  errors,
  handler:
    ({ sessions }: SessionRouteDeps) =>
    async ({ params: { session_id: id }, query: { after }, caller }) => {
      const { turns, truncated } = await sessions.turns(id, caller, { after });
      return jsonResponse(200, { turns: turns.map(turnBody), truncated });
    },
});

const deleteSessionRoute = defineRoute({
  ...ofSession,
  method: "DELETE",
  path: "/v1/agent/sessions/{session_id}",
  summary: "Delete a session of the agent",
  description: `Its turns go with it. Its runs stay, of no session; one that is under way goes on. ${ABOUT}`,
  responses: [deletedResponse],
  errors: [...errors, "insufficient_storage"],
  handler:
    ({ sessions }: SessionRouteDeps) =>
    async (call) => {
      await sessions.remove(call.params.session_id, originOf(call));
      return deleted();
    },
});

export const SESSION_ROUTES = [listSessionsRoute, getSessionRoute, listTurnsRoute, deleteSessionRoute];

function bodyOf(found: Session): z.input<typeof session> {
  return {
    session_id: found.id,
    title: found.title,
    database: found.database,
    source: found.source ?? null,
    turn_count: found.turnCount,
    created_at: new Date(found.createdAtMs).toISOString(),
    last_active: new Date(found.lastActiveMs).toISOString(),
  };
}

function turnBody({ turnIndex, role, content, runId, createdAtMs }: SessionTurn): z.input<typeof turn> {
  return {
    turn_index: turnIndex,
    role,
    content,
    run_id: runId ?? null,
    created_at: new Date(createdAtMs).toISOString(),
  };
}
