import type { Statement } from "../../../catalog/records.ts";

/**
 * The quota of a sandbox's log. Its row counts the bytes of the events that are kept, so nobody adds them up: what writes
 * events adds to the count, and what would pass the quota cuts the oldest events, in the same transaction. `first_seq`
 * and `cut_bytes` are the mark: readers who were not that far are told what they missed.
 */

/** What an event takes beside its data: the rest of its row, and what leads to it. A log of empty lines counts, too. */
const ROW_BYTES = 256;

/** What an event counts for, of a row of `sandbox_events`. Those of earlier versions are not measured anew. */
export const EVENT_SIZE = `coalesce(size_bytes, ${ROW_BYTES} + length(data))`;

/** What an event counts for; `data` as it is stored. */
export function eventBytes(data: string): number {
  return ROW_BYTES + Buffer.byteLength(data);
}

/** What the row of a sandbox says of its log. */
export type LogCount = {
  /** The oldest event that is kept. */
  firstSeq: number;
  /** Of all that are kept. */
  eventsBytes: number;
};

/** What is written beside, without a look at the count, never fills this part of the quota: a state, a turn. */
const SPARE_PART = 128;
/** So much is cut at once: a full log is not cut with every write. */
const CUT_PART = 32;
/** Changes of the sandbox that were not seen yet may have added events. */
const UNSEEN_EVENTS = 200;

/**
 * Statements that cut the oldest events of a log where it becomes too large; none where it does not. They come after
 * those that write `addedBytes`. An event that is larger than the quota is cut with all before it. `mostEvents`: that are
 * cut at once.
 */
export function quotaStatements(
  sandboxId: string,
  { firstSeq, eventsBytes }: LogCount,
  { addedBytes, quotaBytes, mostEvents = Infinity }: { addedBytes: number; quotaBytes: number; mostEvents?: number },
): Statement[] {
  const mostBytes = quotaBytes - Math.floor(quotaBytes / SPARE_PART);
  const bytes = eventsBytes + addedBytes;
  if (bytes <= mostBytes) return [];
  const keptBytes = quotaBytes - Math.floor(quotaBytes / CUT_PART);
  const looked = Math.min(Math.ceil((bytes - keptBytes) / ROW_BYTES) + UNSEEN_EVENTS, mostEvents);
  return [
    {
      sql:
        "UPDATE sandboxes SET first_seq = cut.seq, events_bytes = events_bytes - cut.bytes, " +
        "cut_bytes = cut_bytes + cut.bytes FROM (" +
        "SELECT max(seq) + 1 AS seq, CAST(sum(size) AS bigint) AS bytes FROM (" +
        "SELECT seq, size, sum(size) OVER (ORDER BY seq) - size AS older FROM (" +
        `SELECT seq, ${EVENT_SIZE} AS size FROM sandbox_events WHERE sandbox_id = ? AND seq >= ? ORDER BY seq LIMIT ?` +
        ") AS oldest) AS summed WHERE older < (SELECT events_bytes FROM sandboxes WHERE id = ?) - CAST(? AS bigint)" +
        ") AS cut WHERE id = ? AND events_bytes > ? AND cut.seq IS NOT NULL",
      values: [sandboxId, firstSeq, looked, sandboxId, keptBytes, sandboxId, mostBytes],
    },
    {
      // From the first that was there: no database looks at those that went long ago.
      sql: "DELETE FROM sandbox_events WHERE sandbox_id = ? AND seq >= ? AND seq < (SELECT first_seq FROM sandboxes WHERE id = ?)",
      values: [sandboxId, firstSeq, sandboxId],
    },
  ];
}
