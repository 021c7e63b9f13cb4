import type { Lease } from "../../../catalog/catalog.ts";
import { leaseGuard } from "../../../catalog/lease-guard.ts";
import { LeaseLost } from "../../../catalog/refusals.ts";
import {
  NOW,
  type RecordRow,
  type RecordStore,
  type RecordValue,
  type Statement,
  type TransactOptions,
} from "../../../db/records.ts";
import type { ObjectInfo } from "../../../io/objectstore/objectstore.ts";
import { decodePosition, SOURCE_PREFIX, sourceOf } from "./position.ts";

/**
 * What is known of dropped files, in the catalog's database. All writes hold only while the lease of the prefix is held,
 * so one node at a time says what became of a file.
 *
 * - `ingested`: its rows are committed.
 * - `rejected`: it cannot be read; it is tried again when it changes.
 * - `waiting`: it has no table, and none may be made.
 * - `failed`: something was away, or another node was at it; it is tried again.
 * - `deleted`: ingested, and deleted by `ENGINE_FILEDROP_DELETE_AFTER_INGEST`.
 * - `gone`: ingested, and deleted by somebody else.
 */
export type DropState = "ingested" | "rejected" | "waiting" | "failed" | "deleted" | "gone";

export type DropRecord = {
  key: string;
  state: DropState;
  identity: string;
  /** The position of the file among the inputs; undefined where nothing of it is committed (any more). */
  position: string | undefined;
};

export type Ingested = { rows: number; misfits: number | undefined; snapshotId: number };
export type Refusal = { reason: string; line?: number | undefined; column?: string | undefined };

/** A dropped file as it was found, and where it belongs if it says so. */
export type FoundFile = { info: ObjectInfo; database: string | undefined; table: string | undefined };

const PAGE = 1_000;
/** Files that are gone are shown for so long. */
const GONE_KEPT_MS = 7 * 86_400_000;

const UPSERT = `INSERT INTO filedrop_files (key, database_name, table_name, state, identity, size_bytes, row_count,
  misfits, snapshot_id, reason, line, column_name, found_at_ms, changed_at_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET database_name = excluded.database_name, table_name = excluded.table_name,
  state = excluded.state, identity = excluded.identity, size_bytes = excluded.size_bytes,
  row_count = excluded.row_count, misfits = excluded.misfits, snapshot_id = excluded.snapshot_id,
  reason = excluded.reason, line = excluded.line, column_name = excluded.column_name,
  found_at_ms = CASE WHEN filedrop_files.identity = excluded.identity THEN filedrop_files.found_at_ms
    ELSE excluded.found_at_ms END,
  changed_at_ms = excluded.changed_at_ms`;

export class DropRecords {
  readonly #records: Pick<RecordStore, "rows" | "transact">;
  readonly #lease: Lease;

  constructor(records: Pick<RecordStore, "rows" | "transact">, lease: Lease) {
    this.#records = records;
    this.#lease = lease;
  }

  /** All records of a prefix, in the order of the bytes of their keys. */
  async *of(prefix: string): AsyncGenerator<DropRecord> {
    // The character after the slash ends the range.
    const [first, end] = [`${prefix}/`, `${prefix}0`];
    const sql =
      "SELECT f.key, f.state, f.identity, p.position FROM filedrop_files f " +
      "LEFT JOIN input_positions p ON p.source = ? || f.key WHERE f.key > ? AND f.key < ? ORDER BY f.key LIMIT ?";
    for (let after = first; ;) {
      const page = await this.#records.rows(sql, [SOURCE_PREFIX, after, end, PAGE]);
      for (const row of page) yield toRecord(row);
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return;
      after = String(last["key"]);
    }
  }

  async ingested(file: FoundFile, { rows, misfits, snapshotId }: Ingested): Promise<void> {
    // What a power cut takes away, the position of the file brings back.
    await this.#write([upsert(file, "ingested", { rows, misfits, snapshotId })], { early: true });
  }

  async refused(file: FoundFile, state: "rejected" | "waiting" | "failed", refusal: Refusal): Promise<void> {
    await this.#write([upsert(file, state, refusal)]);
  }

  /** A file that was ingested is not there any more: one of its name is another one, whatever it holds. */
  async forget({ key, position }: Pick<DropRecord, "key" | "position">, state: "deleted" | "gone"): Promise<void> {
    await this.#write([
      {
        sql: "UPDATE filedrop_files SET state = ?, changed_at_ms = ? WHERE key = ?",
        values: [state, NOW, key],
      },
      ...(position === undefined ? [] : [forgetPosition(key, position)]),
    ]);
  }

  /** A file that was never ingested is not there any more. */
  async drop(key: string): Promise<void> {
    await this.#write([{ sql: "DELETE FROM filedrop_files WHERE key = ?", values: [key] }]);
  }

  /** Forgets files that have been gone for long. */
  async sweep(prefix: string): Promise<void> {
    const sql =
      "DELETE FROM filedrop_files WHERE key > ? AND key < ? AND state IN ('deleted', 'gone') AND changed_at_ms < ?";
    await this.#write([{ sql, values: [`${prefix}/`, `${prefix}0`, { nowPlusMs: -GONE_KEPT_MS }] }]);
  }

  async #write(statements: readonly Statement[], options: TransactOptions = {}): Promise<void> {
    const { done } = await this.#records.transact([leaseGuard(this.#lease), ...statements], options);
    if (!done) throw new LeaseLost(this.#lease.name);
  }
}

function forgetPosition(key: string, position: string): Statement {
  return { sql: "DELETE FROM input_positions WHERE source = ? AND position = ?", values: [sourceOf(key), position] };
}

function upsert({ info, database, table }: FoundFile, state: DropState, what: Partial<Ingested & Refusal>): Statement {
  const { rows, misfits, snapshotId, reason, line, column } = what;
  const file: (RecordValue | undefined)[] = [info.key, database, table, state, info.identity, info.sizeBytes];
  const outcome = [rows, misfits, snapshotId, reason, line, column];
  return { sql: UPSERT, values: [...file, ...outcome, NOW, NOW].map((value) => value ?? null) };
}

function toRecord(row: RecordRow): DropRecord {
  const position = row["position"];
  return {
    key: String(row["key"]),
    state: String(row["state"]) as DropState,
    identity: String(row["identity"]),
    position: typeof position === "string" ? position : undefined,
  };
}

/** Whether what was committed of a file is the file as it is. */
export function isCommitted(position: string | undefined, { identity }: Pick<ObjectInfo, "identity">): boolean {
  return position !== undefined && decodePosition(position).identity === identity;
}

/** Whether nothing is left to do for a file as long as it is this one. */
export function isSettled({ state, identity, position }: DropRecord, info: Pick<ObjectInfo, "identity">): boolean {
  if (state === "rejected") return identity === info.identity;
  return state === "ingested" && isCommitted(position, info);
}
