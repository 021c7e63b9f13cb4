import type { RecordRow, RecordStore } from "../../../catalog/records.ts";
import { jsonOf, optionalText, textOf } from "../../../fabric/job.ts";
import type { ContentBlock } from "../../contract/content.ts";

/** What was said in a session; `seq` counts from 1. */
export type SessionMessage = {
  id: string;
  sessionId: string;
  seq: number;
  role: "user" | "assistant";
  content: readonly ContentBlock[];
  /** Why the turn that it ends failed. */
  error: string | undefined;
  createdAtMs: number;
};

export type MessagePage = {
  /** Only those before this number. */
  beforeSeq: number;
  most: number;
  /** Of all their contents together; one message comes in any case, unless `strictly`. */
  mostBytes: number;
  strictly?: true;
};

const COLUMNS = "id, session_id, seq, role, content, error, created_at_ms";

/** The newest messages of a session within the bounds, oldest first. */
export async function newestMessages(
  records: Pick<RecordStore, "rows">,
  sessionId: string,
  { beforeSeq, most, mostBytes, strictly }: MessagePage,
): Promise<SessionMessage[]> {
  const sizes = await records.rows(
    "SELECT seq, length(content) AS size FROM sandbox_messages WHERE session_id = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
    [sessionId, beforeSeq, most],
  );
  let fromSeq = beforeSeq;
  let sizeBytes = 0;
  for (const row of sizes) {
    sizeBytes += Number(row["size"]);
    const isFirst = fromSeq === beforeSeq && strictly !== true;
    if (sizeBytes > mostBytes && !isFirst) break;
    fromSeq = Number(row["seq"]);
  }
  if (fromSeq === beforeSeq) return [];
  const rows = await records.rows(
    `SELECT ${COLUMNS} FROM sandbox_messages WHERE session_id = ? AND seq >= ? AND seq < ? ORDER BY seq`,
    [sessionId, fromSeq, beforeSeq],
  );
  return rows.map(toMessage);
}

export async function messageAt(
  records: Pick<RecordStore, "rows">,
  sessionId: string,
  seq: number,
): Promise<SessionMessage | undefined> {
  const sql = `SELECT ${COLUMNS} FROM sandbox_messages WHERE session_id = ? AND seq = ?`;
  const [row] = await records.rows(sql, [sessionId, seq]);
  return row === undefined ? undefined : toMessage(row);
}

/** The number of a message; undefined where the session has none of that id. */
export async function seqOfMessage(
  records: Pick<RecordStore, "rows">,
  sessionId: string,
  id: string,
): Promise<number | undefined> {
  const [row] = await records.rows("SELECT seq FROM sandbox_messages WHERE session_id = ? AND id = ?", [sessionId, id]);
  return row === undefined ? undefined : Number(row["seq"]);
}

function toMessage(row: RecordRow): SessionMessage {
  return {
    id: textOf(row, "id"),
    sessionId: textOf(row, "session_id"),
    seq: Number(row["seq"]),
    role: row["role"] === "user" ? "user" : "assistant",
    // Checked before it was stored.
    content: jsonOf(row, "content") as ContentBlock[],
    error: optionalText(row, "error"),
    createdAtMs: Number(row["created_at_ms"]),
  };
}
