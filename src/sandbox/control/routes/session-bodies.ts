import { z } from "zod";
import { contentBlock } from "../../contract/content.ts";
import type { SessionMessage } from "../turns/messages.ts";
import type { Session } from "../turns/session.ts";
import { SESSION_STATES } from "../../contract/session-states.ts";
import { timeOf } from "../../../server/schemas.ts";
import { nameSchemas } from "../../../server/schema-names.ts";

/** Sessions and messages as JSON. */

export const sessionPath = z.object({ sid: z.string() });

export const sessionItem = z.object({
  id: z.string(),
  sandbox_id: z.string(),
  state: z.enum(SESSION_STATES),
  metadata: z.record(z.string(), z.unknown()),
  created_at: z.string(),
  updated_at: z.string(),
});

export const messageItem = z.object({
  id: z.string(),
  session_id: z.string(),
  role: z.enum(["user", "assistant"]),
  content: z.array(contentBlock),
  timestamp: z.string(),
});

export const sessionInfo = sessionItem.extend({
  messages: z.array(messageItem).describe("Oldest first; `before` finds those that are older."),
});

nameSchemas({ Session: sessionItem, Message: messageItem, SessionInfo: sessionInfo });

export function sessionOf(session: Session): z.output<typeof sessionItem> {
  const { id, sandboxId, state, metadata, createdAtMs, updatedAtMs } = session;
  return {
    id,
    sandbox_id: sandboxId,
    state,
    metadata: { ...metadata },
    created_at: timeOf(createdAtMs),
    updated_at: timeOf(updatedAtMs),
  };
}

export function messageItemOf(message: SessionMessage): z.output<typeof messageItem> {
  const { id, sessionId, role, content, createdAtMs } = message;
  return { id, session_id: sessionId, role, content: [...content], timestamp: timeOf(createdAtMs) };
}
