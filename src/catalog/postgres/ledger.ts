import { hash } from "node:crypto";
import { LIMITS } from "../../core/limits.ts";
import type { LedgerEntry } from "../catalog.ts";
import { isStorableText } from "../invariants.ts";
import type { Database } from "./database.ts";

/** What a long text is found by: an index entry holds at most 2,704 bytes. */
export function hashOf(text: string): string {
  return hash("sha256", text);
}

const FIND =
  "SELECT snapshot_id, extent_count, row_count, size_bytes FROM engine.ledger " +
  "WHERE table_id = $1 AND key_hash = decode($2, 'hex') AND key = $3 " +
  "AND created_at_ms > engine.now_ms($4::bigint) - $5::bigint";

/** The entry of a key, unless it is past its time to live. */
export async function findLedgerEntry(
  database: Database,
  tableId: number,
  key: string,
): Promise<LedgerEntry | undefined> {
  if (!isStorableText(key)) return undefined;
  const parameters = [tableId, hashOf(key), key, database.now, LIMITS.idempotencyTtlMs];
  const [row] = await database.rows(FIND, parameters);
  if (row === undefined) return undefined;
  return {
    key,
    extentCount: Number(row["extent_count"]),
    rows: Number(row["row_count"]),
    sizeBytes: Number(row["size_bytes"]),
    snapshotId: Number(row["snapshot_id"]),
  };
}

/** Rows per transaction of deletions that may be large. */
const DELETIONS_PER_STATEMENT = 2_000;

/** Rows that a commit is about to change are left for the next time. */
function deleteSome(table: string, condition: string): string {
  return (
    `WITH old AS (SELECT ctid FROM engine.${table} WHERE ${condition} LIMIT ${DELETIONS_PER_STATEMENT} ` +
    `FOR UPDATE SKIP LOCKED), gone AS (DELETE FROM engine.${table} WHERE ctid IN (SELECT ctid FROM old) RETURNING 1) ` +
    "SELECT count(*) AS gone FROM gone"
  );
}

// As a query of its own it is computed once, and the index is used.
const PAST_TTL = "(SELECT engine.now_ms($1::bigint) - $2::bigint)";
const SWEEP_LEDGER = deleteSome("ledger", `created_at_ms <= ${PAST_TTL}`);
const SWEEP_COMMITS = deleteSome("commits", `made_at_ms <= ${PAST_TTL}`);
const SWEEP_STAGED = deleteSome("staged", "committed_at_ms < $1::bigint");

/** Deletes entries past their time to live, and with them what commits of that age were answered; how many entries. */
export async function sweepLedger(database: Database): Promise<number> {
  const parameters = [database.now, LIMITS.idempotencyTtlMs];
  await sweep(database, SWEEP_COMMITS, parameters);
  return await sweep(database, SWEEP_LEDGER, parameters);
}

/** Forgets staged objects committed before the time; how many. */
export async function sweepStaged(database: Database, beforeMs: number): Promise<number> {
  return await sweep(database, SWEEP_STAGED, [Math.min(Math.ceil(beforeMs), Number.MAX_SAFE_INTEGER)]);
}

async function sweep(database: Database, sql: string, parameters: readonly (number | null)[]): Promise<number> {
  for (let swept = 0; ;) {
    const [row] = await database.write(sql, parameters);
    const gone = Number(row?.["gone"]);
    swept += gone;
    if (gone < DELETIONS_PER_STATEMENT) return swept;
  }
}

/** Those of the staged objects that have been committed, in the order asked. */
export async function committedStaged(database: Database, ids: readonly string[]): Promise<string[]> {
  for (const id of ids) checkStagedId(id);
  if (ids.length === 0) return [];
  const sql =
    "SELECT s.id FROM engine.staged s WHERE s.id_hash IN " +
    "(SELECT decode(h, 'hex') FROM json_array_elements_text($1::text::json) AS h)";
  const rows = await database.rows(sql, [JSON.stringify(ids.map(hashOf))]);
  const found = new Set(rows.map((row) => row["id"]));
  return ids.filter((id) => found.has(id));
}

/** Throws for an id that no object may have. */
export function checkStagedId(id: string): void {
  if (!isStorableText(id)) throw new Error(`the staged object id ${JSON.stringify(id)} cannot be stored`);
}
