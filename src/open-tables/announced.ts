import type { IdSource } from "../core/ids.ts";
import { NOW, type RecordRow, type RecordStore, type Statement } from "../db/records.ts";
import type { ManifestFile } from "./format/manifest.ts";
import type { Pending } from "./published.ts";

/** A snapshot whose files are durable, so that clients may be told of it. */
export type Announced = {
  snapshot: number;
  committedAtMs: number;
  listKey: string;
  /** Files that came with it and went with it. */
  added: number;
  removed: number;
  files: number;
  rows: number;
  sizeBytes: number;
  /** As of when it was written. */
  pending: Pending;
};

/** With what the next one is made from. */
export type AnnouncedTip = Announced & { manifests: readonly ManifestFile[]; metadataKey: string | undefined };

const FIELDS =
  "snapshot_id, committed_at_ms, list_key, added, removed, files, row_count, size_bytes, pending_since_ms, " +
  "pending_rows";

/** The announced snapshots of tables, as of one place of the store. */
export class AnnouncedSnapshots {
  readonly #records: RecordStore;
  readonly #location: string;

  constructor(records: RecordStore, location: string) {
    this.#records = records;
    this.#location = location;
  }

  /** The id by which clients know the table; made when it is asked for the first time. */
  async uuidOf(tableId: number, newId: IdSource): Promise<string> {
    const [known] = await this.#records.rows("SELECT uuid FROM open_tables WHERE table_id = ?", [tableId]);
    if (known !== undefined) return String(known["uuid"]);
    const sql =
      "INSERT INTO open_tables (table_id, uuid, loaded_at_ms) VALUES (?, ?, ?) " +
      "ON CONFLICT (table_id) DO UPDATE SET loaded_at_ms = excluded.loaded_at_ms RETURNING uuid";
    const [made] = await this.#records.write({ sql, values: [tableId, newId(), NOW] });
    return String(made?.["uuid"]);
  }

  /** Says that somebody reads the table. */
  async touch(tableId: number): Promise<void> {
    await this.#records.write({
      sql: "UPDATE open_tables SET loaded_at_ms = ? WHERE table_id = ?",
      values: [NOW, tableId],
    });
  }

  /** Tables that were loaded since that time, by id. */
  async tablesLoadedSince(ms: number): Promise<number[]> {
    const sql = "SELECT table_id FROM open_tables WHERE loaded_at_ms >= ? ORDER BY table_id";
    return (await this.#records.rows(sql, [ms])).map((row) => Number(row["table_id"]));
  }

  /** The newest of a table. */
  async tip(tableId: number): Promise<AnnouncedTip | undefined> {
    const sql =
      `SELECT ${FIELDS}, manifests, metadata_key FROM open_snapshots WHERE table_id = ? AND location = ? ` +
      "ORDER BY snapshot_id DESC LIMIT 1";
    const [row] = await this.#records.rows(sql, [tableId, this.#location]);
    if (row === undefined) return undefined;
    const key = row["metadata_key"];
    return {
      ...toAnnounced(row),
      manifests: JSON.parse(String(row["manifests"])) as ManifestFile[],
      metadataKey: typeof key === "string" ? key : undefined,
    };
  }

  /** Those from `oldest` on, ascending. */
  async since(tableId: number, oldest: number): Promise<Announced[]> {
    const sql =
      `SELECT ${FIELDS} FROM open_snapshots WHERE table_id = ? AND location = ? AND snapshot_id >= ? ` +
      "ORDER BY snapshot_id";
    return (await this.#records.rows(sql, [tableId, this.#location, oldest])).map(toAnnounced);
  }

  /**
   * Announces a snapshot, unless the newest one is another than `tip` by now: what it shares files with would not be there
   * to keep them. False then. A snapshot that is announced already stays as it is.
   */
  async announce(
    tableId: number,
    tip: number | undefined,
    made: Announced & { manifests: readonly ManifestFile[] },
  ): Promise<boolean> {
    const { pending } = made;
    const insert =
      `INSERT INTO open_snapshots (table_id, location, ${FIELDS}, manifests) ` +
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (table_id, snapshot_id) DO UPDATE SET " +
      "location = excluded.location, list_key = excluded.list_key, manifests = excluded.manifests, metadata_key = NULL " +
      "WHERE open_snapshots.location <> excluded.location";
    const own = [made.snapshot, made.committedAtMs, made.listKey, made.added, made.removed];
    const sums = [made.files, made.rows, made.sizeBytes, pending.sinceMs ?? null, pending.rows];
    const { done } = await this.#records.transact([
      this.#tipIs(tableId, tip),
      { sql: insert, values: [tableId, this.#location, ...own, ...sums, JSON.stringify(made.manifests)] },
    ]);
    return done;
  }

  /** Says under which key the metadata of a snapshot is. */
  async setMetadata(tableId: number, snapshot: number, key: string): Promise<void> {
    await this.#records.write({
      sql: "UPDATE open_snapshots SET metadata_key = ? WHERE table_id = ? AND snapshot_id = ? AND location = ?",
      values: [key, tableId, snapshot, this.#location],
    });
  }

  /** Forgets a table's snapshots before `oldest`, and those of other places; never the newest. */
  async forgetBefore(tableId: number, oldest: number): Promise<void> {
    const sql =
      "DELETE FROM open_snapshots WHERE table_id = ? AND (location <> ? OR (snapshot_id < ? AND snapshot_id < " +
      "(SELECT max(t.snapshot_id) FROM open_snapshots t WHERE t.table_id = ? AND t.location = ?)))";
    await this.#records.write({ sql, values: [tableId, this.#location, oldest, tableId, this.#location] });
  }

  /** Forgets a table that is gone. */
  async forgetTable(tableId: number): Promise<void> {
    const values = [tableId];
    await this.#records.transact([
      { sql: "DELETE FROM open_snapshots WHERE table_id = ?", values },
      { sql: "DELETE FROM open_tables WHERE table_id = ?", values },
    ]);
  }

  /** All tables that have an id for clients. */
  async tables(): Promise<number[]> {
    const rows = await this.#records.rows("SELECT table_id FROM open_tables ORDER BY table_id");
    return rows.map((row) => Number(row["table_id"]));
  }

  /** Keys of the objects that a table's snapshots need. */
  async keysOf(tableId: number): Promise<Set<string>> {
    const sql = "SELECT list_key, metadata_key, manifests FROM open_snapshots WHERE table_id = ?";
    const keys = new Set<string>();
    for (const row of await this.#records.rows(sql, [tableId])) {
      keys.add(String(row["list_key"]));
      if (typeof row["metadata_key"] === "string") keys.add(row["metadata_key"]);
      for (const { key } of JSON.parse(String(row["manifests"])) as ManifestFile[]) keys.add(key);
    }
    return keys;
  }

  #tipIs(tableId: number, tip: number | undefined): Statement {
    const newest = "SELECT max(snapshot_id) FROM open_snapshots WHERE table_id = ? AND location = ?";
    return {
      sql: `SELECT 1 AS yes WHERE coalesce((${newest}), -1) = ?`,
      values: [tableId, this.#location, tip ?? -1],
      mustReturn: 1,
    };
  }
}

function toAnnounced(row: RecordRow): Announced {
  const since = row["pending_since_ms"];
  return {
    snapshot: Number(row["snapshot_id"]),
    committedAtMs: Number(row["committed_at_ms"]),
    listKey: String(row["list_key"]),
    added: Number(row["added"]),
    removed: Number(row["removed"]),
    files: Number(row["files"]),
    rows: Number(row["row_count"]),
    sizeBytes: Number(row["size_bytes"]),
    pending: { rows: Number(row["pending_rows"]), sinceMs: since === null ? undefined : Number(since) },
  };
}
