import type { Statement } from "../../../catalog/records.ts";

/** The sessions of a sandbox go, with what was said in them, once its own record is gone. */
export function removeSessions(sandboxId: string): Statement[] {
  const isGone = "NOT EXISTS (SELECT 1 FROM sandboxes WHERE sandboxes.id = sandbox_sessions.sandbox_id)";
  return [
    {
      sql:
        "DELETE FROM sandbox_messages WHERE session_id IN " +
        `(SELECT id FROM sandbox_sessions WHERE sandbox_id = ? AND ${isGone})`,
      values: [sandboxId],
    },
    { sql: `DELETE FROM sandbox_sessions WHERE sandbox_id = ? AND ${isGone}`, values: [sandboxId] },
  ];
}
