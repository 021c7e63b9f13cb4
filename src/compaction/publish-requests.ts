import { NOW, type RecordStore } from "../db/records.ts";
import type { Signals } from "../db/signals.ts";

/**
 * Requests to publish what a table has: rows that any process writes and whoever compacts works off, wherever it runs.
 * A request is worked off when there is nothing left that could be merged; then it is gone. What could not be merged
 * (a damaged extent) is for whoever asked to find. One that nobody works off, or renews, lapses.
 */
export type PublishRequest = {
  tableId: number;
  /** Also Parquet that is finished by its size, which merges leave alone otherwise; only when nothing else is to be done. */
  whole: boolean;
  /** What came with later snapshots may wait. */
  upTo: number;
};

export type RequestKey = Pick<PublishRequest, "tableId" | "whole">;

const TOPIC = "publish_requests";
const MOST_LISTED = 1_000;
/** The lease of the duty that merges: see `merge-duty.ts`. */
const COMPACTION_LEASE = "compaction";

export class PublishRequests {
  readonly #records: Pick<RecordStore, "rows" | "write">;
  readonly #signals: Pick<Signals, "send">;

  constructor({ records, signals }: { records: Pick<RecordStore, "rows" | "write">; signals: Pick<Signals, "send"> }) {
    this.#records = records;
    this.#signals = signals;
  }

  /** Asks; of several requests for one table the latest snapshot counts, and the latest end. */
  async ask({ tableId, whole, upTo }: PublishRequest, ttlMs: number): Promise<void> {
    await this.#records.write({
      sql:
        "INSERT INTO publish_requests (table_id, whole, up_to, until_ms) VALUES (?, ?, ?, ?) " +
        `ON CONFLICT (table_id, whole) DO UPDATE SET ${latest("up_to")}, ${latest("until_ms")}`,
      values: [tableId, Number(whole), upTo, { nowPlusMs: ttlMs }],
    });
    // A signal that is lost costs the time until compaction looks by itself.
    await this.#signals.send(TOPIC, String(tableId)).catch(() => undefined);
  }

  /** Keeps a request alive; false when it is gone. */
  async renew({ tableId, whole }: RequestKey, ttlMs: number): Promise<boolean> {
    const renewed = await this.#records.write({
      sql: "UPDATE publish_requests SET until_ms = ? WHERE table_id = ? AND whole = ? RETURNING table_id",
      values: [{ nowPlusMs: ttlMs }, tableId, Number(whole)],
    });
    return renewed.length > 0;
  }

  /** Lets a request lapse that soon, unless somebody else renews it. */
  async withdraw({ tableId, whole }: RequestKey, afterMs: number): Promise<void> {
    const at = { nowPlusMs: afterMs };
    await this.#records.write({
      sql: "UPDATE publish_requests SET until_ms = ? WHERE table_id = ? AND whole = ? AND until_ms > ?",
      values: [at, tableId, Number(whole), at],
    });
  }

  async isOpen({ tableId, whole }: RequestKey): Promise<boolean> {
    const sql = "SELECT 1 AS yes FROM publish_requests WHERE table_id = ? AND whole = ? AND until_ms > ?";
    return (await this.#records.rows(sql, [tableId, Number(whole), NOW])).length > 0;
  }

  async open(): Promise<PublishRequest[]> {
    const sql =
      "SELECT table_id, whole, up_to FROM publish_requests WHERE until_ms > ? " +
      `ORDER BY whole, up_to, table_id LIMIT ${MOST_LISTED}`;
    return (await this.#records.rows(sql, [NOW])).map((row) => ({
      tableId: Number(row["table_id"]),
      whole: Number(row["whole"]) === 1,
      upTo: Number(row["up_to"]),
    }));
  }

  /** The request was worked off; it stays when somebody has asked for more since. */
  async finish({ tableId, whole, upTo }: PublishRequest): Promise<void> {
    await this.#records.write({
      sql: "DELETE FROM publish_requests WHERE table_id = ? AND whole = ? AND up_to = ?",
      values: [tableId, Number(whole), upTo],
    });
  }

  async forgetLapsed(): Promise<void> {
    await this.#records.write({ sql: "DELETE FROM publish_requests WHERE until_ms <= ?", values: [NOW] });
  }

  /** Whether any process merges, or has until a moment ago. */
  async isAnybodyThere(): Promise<boolean> {
    const sql = "SELECT 1 AS yes FROM leases WHERE name = ? AND expires_at_ms > ?";
    return (await this.#records.rows(sql, [COMPACTION_LEASE, NOW])).length > 0;
  }
}

function latest(column: string): string {
  const known = `publish_requests.${column}`;
  return `${column} = CASE WHEN excluded.${column} > ${known} THEN excluded.${column} ELSE ${known} END`;
}

/** Calls the listener when somebody asks, or may have; until it is stopped. */
export function onPublishRequests(signals: Pick<Signals, "listen">, listener: () => void): () => void {
  return signals.listen(TOPIC, listener);
}
