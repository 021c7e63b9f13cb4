import type { RecordStore, RecordValue } from "../../../catalog/records.ts";
import { EVENT_SIZE, quotaStatements } from "./quota.ts";

export type EventRetention = {
  /** Events of one sandbox that are kept. */
  mostEvents: number;
  /** Bytes of them: what writes them sees to it, and this to logs from before the quota, or from when it was larger. */
  quotaBytes: number;
  /** How long an event is kept, in ms. */
  maxAgeMs: number;
};

/** Sandboxes that one search finds. */
const SANDBOXES_AT_ONCE = 100;
/** Events that one statement deletes. */
const EVENTS_AT_ONCE = 2_000;
/** Those who followed a sandbox to its end have read it by then. */
const KEPT_AFTER_END_MS = 60_000;

type Duty = { records: RecordStore; signal: AbortSignal };

/**
 * A duty that cuts the logs of sandboxes at their beginnings, where they are too long, too large or too old, and deletes
 * those of sandboxes that are gone. `first_seq` and the bytes move together with the events: who reads sees that something
 * is gone, not a gap.
 */
export function createEventRetention(records: RecordStore, { mostEvents, quotaBytes, maxAgeMs }: EventRetention) {
  return async ({ signal }: { signal: AbortSignal }): Promise<void> => {
    const duty = { records, signal };
    await deleteEnded(duty);
    const tooLong = await records.rows(
      "SELECT id, last_seq - ? + 1 AS from_seq FROM sandboxes WHERE last_seq - first_seq >= ? LIMIT ?",
      [mostEvents, mostEvents, SANDBOXES_AT_ONCE],
    );
    for (const row of tooLong) await cut(duty, String(row["id"]), Number(row["from_seq"]));
    await cutToQuota(duty, quotaBytes);
    const old: RecordValue = { nowPlusMs: -maxAgeMs };
    // By the first event that is young enough, for clocks of nodes differ and the kept ones are to be without gaps.
    const tooOld = await records.rows(
      "SELECT sandbox_id, (SELECT min(seq) FROM sandbox_events AS young WHERE young.sandbox_id = aged.sandbox_id " +
        "AND young.at_ms >= ?) AS from_seq, max(seq) AS newest_seq FROM sandbox_events AS aged WHERE at_ms < ? " +
        "GROUP BY sandbox_id LIMIT ?",
      [old, old, SANDBOXES_AT_ONCE],
    );
    for (const row of tooOld) {
      await cut(duty, String(row["sandbox_id"]), Number(row["from_seq"] ?? Number(row["newest_seq"]) + 1));
    }
  };
}

/** Deletes what is before an event. */
async function cut({ records, signal }: Duty, sandboxId: string, fromSeq: number): Promise<void> {
  const oldest = "FROM sandbox_events WHERE sandbox_id = ? AND seq < ? ORDER BY seq LIMIT ?";
  const which = [sandboxId, fromSeq, EVENTS_AT_ONCE];
  for (;;) {
    signal.throwIfAborted();
    const outcome = await records.transact([
      {
        sql:
          "UPDATE sandboxes SET first_seq = cut.seq, events_bytes = events_bytes - cut.bytes, " +
          "cut_bytes = cut_bytes + cut.bytes FROM (SELECT max(seq) + 1 AS seq, CAST(sum(size) AS bigint) AS bytes FROM " +
          // What an earlier version left below the first one is not counted any more.
          "(SELECT seq, CASE WHEN seq < (SELECT first_seq FROM sandboxes WHERE id = ?) THEN 0 " +
          `ELSE ${EVENT_SIZE} END AS size ${oldest}) AS oldest) AS cut WHERE id = ? AND first_seq < cut.seq`,
        values: [sandboxId, ...which, sandboxId],
      },
      {
        sql: `DELETE FROM sandbox_events WHERE sandbox_id = ? AND seq IN (SELECT seq ${oldest}) RETURNING seq`,
        values: [sandboxId, ...which],
      },
    ]);
    if (!outcome.done || (outcome.rows[1]?.length ?? 0) < EVENTS_AT_ONCE) return;
  }
}

/** In steps: nobody waits for long meanwhile. */
async function cutToQuota({ records, signal }: Duty, quotaBytes: number): Promise<void> {
  const negative = await records.rows("SELECT id FROM sandboxes WHERE events_bytes < 0 LIMIT ?", [SANDBOXES_AT_ONCE]);
  for (const row of negative) await recount(records, String(row["id"]));
  const sql = "SELECT id, first_seq, events_bytes FROM sandboxes WHERE events_bytes > ? LIMIT ?";
  for (let last = ""; ;) {
    signal.throwIfAborted();
    const tooLarge = await records.rows(sql, [quotaBytes, SANDBOXES_AT_ONCE]);
    if (tooLarge.length === 0) return;
    // What writes events cuts them, too; where this changes nothing the count is wrong.
    const seen = JSON.stringify(tooLarge);
    if (seen === last) {
      for (const row of tooLarge) await recount(records, String(row["id"]));
      return;
    }
    last = seen;
    for (const row of tooLarge) {
      const count = { firstSeq: Number(row["first_seq"]), eventsBytes: Number(row["events_bytes"]) };
      const limits = { addedBytes: 0, quotaBytes, mostEvents: EVENTS_AT_ONCE };
      await records.transact(quotaStatements(String(row["id"]), count, limits));
    }
  }
}

/** Servers of a version before the quota write and cut events without counting them: see docs/operations.md. */
async function recount(records: RecordStore, sandboxId: string): Promise<void> {
  await records.write({
    sql:
      `UPDATE sandboxes SET events_bytes = coalesce((SELECT CAST(sum(${EVENT_SIZE}) AS bigint) FROM sandbox_events ` +
      "WHERE sandbox_id = ? AND seq >= sandboxes.first_seq), 0) WHERE id = ?",
    values: [sandboxId, sandboxId],
  });
}

/** All events of sandboxes that were put away. */
async function deleteEnded({ records, signal }: Duty): Promise<void> {
  for (;;) {
    const ended = await records.rows("SELECT sandbox_id FROM ended_sandbox_logs WHERE ended_at_ms <= ? LIMIT ?", [
      { nowPlusMs: -KEPT_AFTER_END_MS },
      SANDBOXES_AT_ONCE,
    ]);
    for (const row of ended) {
      const sandboxId = String(row["sandbox_id"]);
      for (let gone = EVENTS_AT_ONCE; gone === EVENTS_AT_ONCE;) {
        signal.throwIfAborted();
        const sql =
          "DELETE FROM sandbox_events WHERE sandbox_id = ? AND seq IN " +
          "(SELECT seq FROM sandbox_events WHERE sandbox_id = ? ORDER BY seq LIMIT ?) RETURNING seq";
        gone = (await records.write({ sql, values: [sandboxId, sandboxId, EVENTS_AT_ONCE] })).length;
      }
      await records.write({ sql: "DELETE FROM ended_sandbox_logs WHERE sandbox_id = ?", values: [sandboxId] });
    }
    if (ended.length < SANDBOXES_AT_ONCE) return;
  }
}
