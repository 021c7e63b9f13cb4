import type { Lease, Snapshot } from "../catalog.ts";
import { snapshotExpired } from "../refusals.ts";
import { toSnapshot } from "../rows.ts";
import type { Connection } from "../../db/postgres/connection.ts";
import type { Database } from "../../db/postgres/database.ts";
import { leaseParameter, toRefusal } from "./refusals.ts";

/** The snapshot of a catalog that has just been made; its time is `nowMs`, or the database's own. */
export async function makeFirstSnapshot(connection: Connection, nowMs: number | undefined): Promise<void> {
  await connection.query(
    "WITH born AS (SELECT engine.now_ms($1::bigint) AS ms), " +
      "snapshot AS (INSERT INTO engine.snapshots (id, committed_at_ms) SELECT 0, ms FROM born) " +
      "INSERT INTO engine.head (id, snapshot_id, committed_at_ms, last_seq, schema_generation) " +
      "SELECT 1, 0, ms, 0, 0 FROM born",
    [nowMs ?? null],
  );
  await connection.query("INSERT INTO engine.horizon (id, oldest_snapshot) VALUES (1, 0)");
}

export async function readHead(database: Database): Promise<Snapshot> {
  const [row] = await database.rows("SELECT snapshot_id AS id, committed_at_ms FROM engine.head");
  if (row === undefined) throw new Error("the catalog has no head");
  return toSnapshot(row);
}

/** Newest first. */
export async function readSnapshots(database: Database, limit: number): Promise<Snapshot[]> {
  const sql = "SELECT id, committed_at_ms FROM engine.snapshots ORDER BY id DESC LIMIT $1::bigint";
  return (await database.rows(sql, [limit])).map(toSnapshot);
}

/** The newest snapshot committed at or before the time. */
export async function findSnapshotAt(database: Database, timeMs: number): Promise<Snapshot | undefined> {
  const sql =
    "SELECT id, committed_at_ms FROM engine.snapshots WHERE committed_at_ms <= $1::bigint " +
    "ORDER BY committed_at_ms DESC, id DESC LIMIT 1";
  const [row] = await database.rows(sql, [Math.min(Math.floor(timeMs), Number.MAX_SAFE_INTEGER)]);
  return row === undefined ? undefined : toSnapshot(row);
}

/** The oldest snapshot at which the table `$2` can be read; without such a table, any. */
export const OLDEST_OF_TABLE = oldestOfTable("greatest(oldest_snapshot, readable_from)");

/** The oldest snapshot for which the extents of the table `$2` are kept. */
export const KEPT_OF_TABLE = oldestOfTable("oldest_snapshot");

function oldestOfTable(floor: string): string {
  const ofTable = `(SELECT ${floor} FROM engine.tables WHERE id = $2)`;
  return `greatest((SELECT oldest_snapshot FROM engine.horizon), ${ofTable})`;
}

export async function readOldestSnapshot(connection: Connection, tableId: number | undefined): Promise<Snapshot> {
  return await readFloor(connection, tableId, OLDEST_OF_TABLE);
}

export async function readOldestKept(connection: Connection, tableId: number): Promise<Snapshot> {
  return await readFloor(connection, tableId, KEPT_OF_TABLE);
}

async function readFloor(connection: Connection, tableId: number | undefined, floor: string): Promise<Snapshot> {
  const sql = `SELECT id, committed_at_ms FROM engine.snapshots WHERE id = ${floor.replace("$2", "$1")}`;
  const [row] = await connection.query(sql, [tableId ?? null]);
  if (row === undefined) throw new Error("the oldest readable snapshot is not in the catalog");
  return toSnapshot(row);
}

/** What may be read, and who reads: see `engine.horizon`. */
export class Horizon {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  oldest(tableId: number | undefined): Promise<Snapshot> {
    return this.#database.read((connection) => readOldestSnapshot(connection, tableId));
  }

  oldestKept(tableId: number): Promise<Snapshot> {
    return this.#database.read((connection) => readOldestKept(connection, tableId));
  }

  async expireSnapshots(before: number, lease: Lease | undefined): Promise<Snapshot> {
    const sql = "SELECT engine.expire_snapshots($1::bigint, $2::text::json, $3::bigint)";
    try {
      await this.#database.write(sql, [this.#database.now, leaseParameter(lease), Math.ceil(before)]);
    } catch (error) {
      throw toRefusal(error, lease);
    }
    return await this.oldest(undefined);
  }

  async expireTable(tableId: number, before: number): Promise<Snapshot> {
    const sql = "SELECT engine.expire_table($1::bigint, $2::bigint, $3::bigint)";
    await this.#database.write(sql, [this.#database.now, tableId, Math.ceil(before)]);
    return await this.oldestKept(tableId);
  }

  async hold(node: string, oldest: number, ttlMs: number): Promise<void> {
    const sql = "SELECT engine.hold_snapshots($1::bigint, $2, $3::bigint, $4::bigint) AS held";
    const [row] = await this.#database.write(sql, [this.#database.now, node, oldest, ttlMs]);
    if (row?.["held"] !== true) throw snapshotExpired(oldest, await this.oldest(undefined));
  }

  async release(node: string): Promise<void> {
    await this.#database.write("DELETE FROM engine.snapshot_holds WHERE node = $1", [node]);
  }
}
