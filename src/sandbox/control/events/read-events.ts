import type { RecordRow, RecordStore } from "../../../catalog/records.ts";
import { jsonOf, optionalText, textOf } from "../../../fabric/job.ts";
import type { SandboxEvent } from "../../contract/event.ts";

/** One of the log, as it was read: perhaps of a type that only a newer release knows. */
export type LoggedEvent = Omit<SandboxEvent, "type"> & { type: string };

const COLUMNS = "sandbox_id, seq, at_ms, event_type, session_id, data";

/** The oldest events with a greater number, in their order. */
export async function eventsAfter(
  records: Pick<RecordStore, "rows">,
  sandboxId: string,
  { afterSeq, limit }: { afterSeq: number; limit: number },
): Promise<LoggedEvent[]> {
  const rows = await records.rows(
    `SELECT ${COLUMNS} FROM sandbox_events WHERE sandbox_id = ? AND seq > ? ORDER BY seq LIMIT ?`,
    [sandboxId, afterSeq, limit],
  );
  return rows.map(toLoggedEvent);
}

/** The oldest events of one session and these types with a greater number, in their order. */
export async function eventsOfSession(
  records: Pick<RecordStore, "rows">,
  sandboxId: string,
  asked: { sessionId: string; types: readonly string[]; afterSeq: number; limit: number },
): Promise<LoggedEvent[]> {
  const { sessionId, types, afterSeq, limit } = asked;
  const rows = await records.rows(
    `SELECT ${COLUMNS} FROM sandbox_events WHERE sandbox_id = ? AND seq > ? AND session_id = ? ` +
      `AND event_type IN (${types.map(() => "?").join(", ")}) ORDER BY seq LIMIT ?`,
    [sandboxId, afterSeq, sessionId, ...types, limit],
  );
  return rows.map(toLoggedEvent);
}

/** The number of the newest event that is kept; 0 for none. */
export async function newestSeq(records: Pick<RecordStore, "rows">, sandboxId: string): Promise<number> {
  const sql = "SELECT max(seq) AS newest FROM sandbox_events WHERE sandbox_id = ?";
  const [row] = await records.rows(sql, [sandboxId]);
  return Number(row?.["newest"] ?? 0);
}

/** The newest lines up to an event, oldest first. */
export async function newestLines(
  records: Pick<RecordStore, "rows">,
  sandboxId: string,
  { upToSeq, limit }: { upToSeq: number; limit: number },
): Promise<LoggedEvent[]> {
  const rows = await records.rows(
    `SELECT ${COLUMNS} FROM sandbox_events WHERE sandbox_id = ? AND seq <= ? AND event_type = 'log_line' ` +
      "ORDER BY seq DESC LIMIT ?",
    [sandboxId, upToSeq, limit],
  );
  return rows.map(toLoggedEvent).reverse();
}

function toLoggedEvent(row: RecordRow): LoggedEvent {
  return {
    sandboxId: textOf(row, "sandbox_id"),
    seq: Number(row["seq"]),
    type: textOf(row, "event_type"),
    atMs: Number(row["at_ms"]),
    sessionId: optionalText(row, "session_id"),
    data: jsonOf(row, "data") as Record<string, unknown>,
  };
}
