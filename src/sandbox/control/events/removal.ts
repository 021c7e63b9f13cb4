import { NOW, type Statement } from "../../../catalog/records.ts";

/** The events of a sandbox go soon after its own record (`retention.ts`): those who follow it read them to the end. */
export function removeEvents(sandboxId: string): Statement[] {
  const isGone = "NOT EXISTS (SELECT 1 FROM sandboxes WHERE id = ?)";
  return [
    {
      sql:
        "INSERT INTO ended_sandbox_logs (sandbox_id, ended_at_ms) " +
        `SELECT CAST(? AS text), CAST(? AS bigint) WHERE ${isGone} ON CONFLICT DO NOTHING`,
      values: [sandboxId, NOW, sandboxId],
    },
  ];
}
