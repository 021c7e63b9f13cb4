import { NOW, type Statement } from "../../db/records.ts";
import type { Changes, CountChange, RecordKey } from "./draft.ts";
import { INSERTED_COLUMNS, valuesOfRow, type RecordKind, type StoredVersion } from "./rows.ts";
import { chunksOf } from "./store.ts";

/** What a commit writes, in one transaction. */

const ROW = `(${INSERTED_COLUMNS.map(() => "?").join(", ")})`;
/** Rows in one statement: few sizes, for texts of statements are kept prepared. */
const ROWS_AT_ONCE = [64, 8, 1] as const;

/** Fails when the head is another by now, or reserved by somebody else; the next commit is anybody's after it. */
export function advanceHead(
  databaseId: number,
  { seq, stampUs, holder }: { seq: number; stampUs: number; holder: string },
): Statement[] {
  const first = "INSERT INTO memory_heads (database_id, seq, stamp_us, reserved_until_ms) VALUES (?, 0, 0, 0)";
  const advance =
    "UPDATE memory_heads SET seq = ?, stamp_us = ?, reserved_by = NULL, reserved_until_ms = 0 " +
    `WHERE database_id = ? AND seq = ? AND ${IS_FREE} RETURNING seq`;
  const begin = seq === 1 ? [{ sql: `${first} ON CONFLICT DO NOTHING`, values: [databaseId] }] : [];
  return [
    ...begin,
    { sql: advance, values: [seq, stampUs, databaseId, seq - 1, holder, NOW], mustReturn: 1 },
    {
      sql: `INSERT INTO memory_commits (database_id, seq, stamp_us) VALUES (?, ?, ?) ${ONCE} RETURNING seq`,
      values: [databaseId, seq, stampUs],
      mustReturn: 1,
    },
  ];
}

/**
 * PostgreSQL is sent all statements at once: those after one that did not return what it must run as well, and must not
 * fail, for then the transaction would be over with an error, instead of undone.
 */
const ONCE = "ON CONFLICT DO NOTHING";
const IS_FREE = "(reserved_by IS NULL OR reserved_by = ? OR reserved_until_ms < ?)";

/** Keeps the next commit for one writer, for a while; returns a row when it is kept. */
export function reserveHead(databaseId: number, holder: string, forMs: number): Statement {
  const sql =
    "UPDATE memory_heads SET reserved_by = ?, reserved_until_ms = ? " +
    `WHERE database_id = ? AND ${IS_FREE} RETURNING seq`;
  return { sql, values: [holder, { nowPlusMs: forMs }, databaseId, holder, NOW] };
}

/** Gives a reservation back; a commit does that by itself. */
export function releaseHead(databaseId: number, holder: string): Statement {
  const sql =
    "UPDATE memory_heads SET reserved_by = NULL, reserved_until_ms = 0 WHERE database_id = ? AND reserved_by = ?";
  return { sql, values: [databaseId, holder] };
}

export function changeRecords(databaseId: number, seq: number, changes: Changes): Statement[] {
  return [
    ...byIds(changes.wiped, "DELETE FROM memory_records WHERE database_id = ? AND kind = ?", [databaseId]),
    ...deleteDerived(databaseId, changes.wiped),
    ...byIds(
      changes.ended,
      "UPDATE memory_records SET ended_seq = ? WHERE database_id = ? AND ended_seq IS NULL AND kind = ?",
      [seq, databaseId],
    ),
    ...inserts(
      databaseId,
      changes.added.filter((version) => !isFormer(version)),
    ),
    ...changes.added.filter(isFormer).map((version) => insertFormer(databaseId, version)),
    ...changes.counts.map((change) => count(databaseId, change)),
  ];
}

/** Vectors of every model, and verdicts on pairs with what was erased. */
function deleteDerived(databaseId: number, wiped: readonly RecordKey[]): Statement[] {
  const nodeIds = wiped.filter(({ kind }) => kind === "node").map(({ id }) => id);
  return chunksOf(nodeIds).flatMap((chunk) => {
    const places = chunk.map(() => "?").join(", ");
    return DERIVED.map(({ table, node }) => {
      const sql = `DELETE FROM ${table} WHERE database_id = ? AND ${node} IN (${places})`;
      return { sql, values: [databaseId, ...chunk] };
    });
  });
}

const DERIVED = [
  { table: "memory_vectors", node: "node_id" },
  { table: "memory_verdicts", node: "first_id" },
  { table: "memory_verdicts", node: "second_id" },
] as const;

function byIds(keys: readonly RecordKey[], start: string, before: readonly number[]): Statement[] {
  return (["node", "edge"] satisfies RecordKind[]).flatMap((kind) => {
    const ids = keys.filter((key) => key.kind === kind).map(({ id }) => id);
    return chunksOf(ids).map((chunk) => ({
      sql: `${start} AND id IN (${chunk.map(() => "?").join(", ")})`,
      values: [...before, kind, ...chunk],
    }));
  });
}

function inserts(databaseId: number, added: readonly StoredVersion[]): Statement[] {
  const statements: Statement[] = [];
  for (let from = 0; from < added.length;) {
    const size = ROWS_AT_ONCE.find((each) => each <= added.length - from) ?? 1;
    const rows = added.slice(from, from + size);
    const into = `INSERT INTO memory_records (${INSERTED_COLUMNS.join(", ")})`;
    const sql = `${into} VALUES ${rows.map(() => ROW).join(", ")} ${ONCE} RETURNING id`;
    statements.push({ sql, values: rows.flatMap((row) => valuesOfRow(databaseId, row)), mustReturn: size });
    from += size;
  }
  return statements;
}

/** Never current, so it may be here from an import before. */
function isFormer({ seq, endedSeq }: StoredVersion): boolean {
  return endedSeq === seq;
}

const NUMBERS = new Set(["database_id", "version", "seq", "ended_seq", "origin_us", "erased"]);
const CAST = INSERTED_COLUMNS.map((name) => `CAST(? AS ${NUMBERS.has(name) ? "bigint" : "text"})`).join(", ");
const INSERT_FORMER =
  `INSERT INTO memory_records (${INSERTED_COLUMNS.join(", ")}) SELECT ${CAST} WHERE NOT EXISTS (SELECT 1 FROM ` +
  "memory_records WHERE database_id = ? AND kind = ? AND id = ? AND origin_us = ? AND content_hash = ?) " +
  ONCE;

function insertFormer(databaseId: number, version: StoredVersion): Statement {
  const { id, originUpdatedAtUs, contentHash } = version.record;
  const same = [databaseId, version.kind, id, originUpdatedAtUs, contentHash];
  return { sql: INSERT_FORMER, values: [...valuesOfRow(databaseId, version), ...same] };
}

function count(databaseId: number, { realm, kind, current, invalidated }: CountChange): Statement {
  const sql =
    "INSERT INTO memory_counts (database_id, realm, kind, current, invalidated) VALUES (?, ?, ?, ?, ?) " +
    "ON CONFLICT (database_id, realm, kind) DO UPDATE SET current = memory_counts.current + excluded.current, " +
    "invalidated = memory_counts.invalidated + excluded.invalidated";
  return { sql, values: [databaseId, realm, kind, current, invalidated] };
}
