import { hash } from "node:crypto";
import { LIMITS } from "../../core/limits.ts";
import type { FlushCommit, FlushOutcome, KeyLookUp } from "../catalog.ts";
import { checkStagedId } from "../flush-checks.ts";
import { isStorableText } from "../invariants.ts";
import { toLedgerEntry } from "../rows.ts";
import type { Database } from "../../db/postgres/database.ts";

/** What a long text is found by: an index entry holds at most 2,704 bytes. */
export function hashOf(text: string): string {
  return hash("sha256", text);
}

// The statement's own time is from before it sees anything.
const LOOK_UP =
  "SELECT t.at_ms, l.snapshot_id, l.extent_count, l.row_count, l.size_bytes FROM " +
  "(SELECT coalesce($4::bigint, floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint) AS at_ms) t " +
  "LEFT JOIN engine.ledger l ON l.table_id = $1 AND l.key_hash = decode($2, 'hex') AND l.key = $3 " +
  "AND l.created_at_ms > t.at_ms - $5::bigint";

/** The entry of a key, unless it is past its time to live. */
export async function lookUpKey(database: Database, tableId: number, key: string): Promise<KeyLookUp> {
  // No commit takes a key that cannot be stored, so no row has this one.
  const asked = isStorableText(key) ? key : "";
  const parameters = [tableId, hashOf(asked), asked, database.now, LIMITS.idempotencyTtlMs];
  const [row] = await database.rows(LOOK_UP, parameters);
  if (row === undefined) throw new Error("the catalog gave no answer about a key");
  return { entry: row["snapshot_id"] === null ? undefined : toLedgerEntry(key, row), atMs: Number(row["at_ms"]) };
}

// A staged object that was committed is told of by the commit itself: its keys are its own.
const TAKEN =
  "SELECT f.flush, l.key, l.snapshot_id, l.extent_count, l.row_count, l.size_bytes " +
  "FROM json_to_recordset($1::text::json) AS f " +
  "(flush integer, table_id bigint, hash text, key text, created_after_ms bigint, staged_hash text) " +
  "JOIN engine.ledger l ON l.table_id = f.table_id AND l.key_hash = decode(f.hash, 'hex') AND l.key = f.key " +
  "WHERE l.created_at_ms > f.created_after_ms " +
  "AND NOT EXISTS (SELECT FROM engine.staged s WHERE s.id_hash = decode(f.staged_hash, 'hex'))";

/**
 * Which of the flushes that were accepted a while ago have keys that were taken then, by their places in the list.
 *
 * The commit itself finds what is alive now, under its lock; here is found what has ended since the acceptance. Asked
 * before the commit it misses nothing: an entry that comes in between is young, and the commit finds it.
 */
export async function takenAtAcceptance(
  database: Database,
  flushes: readonly FlushCommit[],
): Promise<Map<number, FlushOutcome>> {
  const asked = flushes.flatMap(({ tableId, ledger, staged, acceptedAtMs }, flush) => {
    if (acceptedAtMs === undefined) return [];
    const createdAfterMs = Math.floor(acceptedAtMs) - LIMITS.idempotencyTtlMs;
    const stagedHash = staged === undefined ? null : hashOf(staged);
    const keys = ledger.map(({ key }) => key).filter(isStorableText);
    return keys.map((key) => ({
      flush,
      table_id: tableId,
      hash: hashOf(key),
      key,
      created_after_ms: createdAfterMs,
      staged_hash: stagedHash,
    }));
  });
  const outcomes = new Map<number, FlushOutcome>();
  if (asked.length === 0) return outcomes;
  const found = Map.groupBy(await database.rows(TAKEN, [JSON.stringify(asked)]), (row) => Number(row["flush"]));
  for (const [flush, rows] of found) {
    const byKey = new Map(rows.map((row) => [row["key"], row]));
    const entries = (flushes[flush]?.ledger ?? []).flatMap(({ key }) => {
      const row = byKey.get(key);
      return row === undefined ? [] : [toLedgerEntry(key, row)];
    });
    outcomes.set(flush, { kind: "key_conflict", entries });
  }
  return outcomes;
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
