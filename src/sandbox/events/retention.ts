import type { RecordStore, RecordValue } from "../../catalog/records.ts";

export type EventRetention = {
  /** Events of one sandbox that are kept. */
  mostEvents: number;
  /** How long an event is kept, in ms; those of a sandbox that is no more go by this alone. */
  maxAgeMs: number;
};

/** Sandboxes that one search finds. */
const SANDBOXES_AT_ONCE = 100;
/** Events that one statement deletes. */
const EVENTS_AT_ONCE = 2_000;

/**
 * A duty that cuts the logs of sandboxes at their beginnings, where they are too long or too old. `first_seq` moves
 * first: who reads sees that something is gone, not a gap.
 */
export function createEventRetention(records: RecordStore, { mostEvents, maxAgeMs }: EventRetention) {
  return async ({ signal }: { signal: AbortSignal }): Promise<void> => {
    const tooLong = await records.rows(
      "SELECT id, last_seq - ? + 1 AS from_seq FROM sandboxes WHERE last_seq - first_seq >= ? LIMIT ?",
      [mostEvents, mostEvents, SANDBOXES_AT_ONCE],
    );
    for (const row of tooLong) await cut(records, String(row["id"]), Number(row["from_seq"]), signal);
    const old: RecordValue = { nowPlusMs: -maxAgeMs };
    // By the first event that is young enough, for clocks of nodes differ and the kept ones are to be without gaps.
    const tooOld = await records.rows(
      "SELECT sandbox_id, (SELECT min(seq) FROM sandbox_events AS young WHERE young.sandbox_id = aged.sandbox_id " +
        "AND young.at_ms >= ?) AS from_seq, max(seq) AS newest_seq FROM sandbox_events AS aged WHERE at_ms < ? " +
        "GROUP BY sandbox_id LIMIT ?",
      [old, old, SANDBOXES_AT_ONCE],
    );
    for (const row of tooOld) {
      await cut(records, String(row["sandbox_id"]), Number(row["from_seq"] ?? Number(row["newest_seq"]) + 1), signal);
    }
  };
}

/** Deletes what is before an event. */
async function cut(records: RecordStore, sandboxId: string, fromSeq: number, signal: AbortSignal): Promise<void> {
  await records.transact([
    { sql: "UPDATE sandboxes SET first_seq = ? WHERE id = ? AND first_seq < ?", values: [fromSeq, sandboxId, fromSeq] },
  ]);
  for (;;) {
    signal.throwIfAborted();
    const gone = await records.write({
      sql:
        "DELETE FROM sandbox_events WHERE sandbox_id = ? AND seq IN (SELECT seq FROM sandbox_events " +
        "WHERE sandbox_id = ? AND seq < ? ORDER BY seq LIMIT ?) RETURNING seq",
      values: [sandboxId, sandboxId, fromSeq, EVENTS_AT_ONCE],
    });
    if (gone.length < EVENTS_AT_ONCE) return;
  }
}
