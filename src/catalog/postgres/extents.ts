import { foldName } from "../../core/names.ts";
import type { ColumnStats, ExtentFormat } from "../../format/types.ts";
import type { ColumnRecord, ExtentSummary } from "../catalog.ts";
import { snapshotExpired } from "../refusals.ts";
import { decodeStatsAt, ListParser } from "../stats-encoding.ts";
import type { Connection, Row } from "./connection.ts";
import type { Database } from "./database.ts";
import { OLDEST_OF_TABLE, readOldestSnapshot } from "./snapshots.ts";

export const FIELDS =
  "e.seq, e.id, e.table_id, e.schema_version, e.object_key, e.format, e.format_version, e.row_count, e.size_bytes, " +
  "e.checksum, e.min_at_ns, e.max_at_ns, e.begin_snapshot, e.end_snapshot, e.deleted_at_ms";

export function toSummary(row: Row): ExtentSummary {
  const summary: ExtentSummary = {
    id: String(row["id"]),
    key: String(row["object_key"]),
    format: row["format"] as ExtentFormat,
    formatVersion: Number(row["format_version"]),
    rows: Number(row["row_count"]),
    sizeBytes: Number(row["size_bytes"]),
    checksum: String(row["checksum"]),
    minAtNs: BigInt(String(row["min_at_ns"])),
    maxAtNs: BigInt(String(row["max_at_ns"])),
    tableId: Number(row["table_id"]),
    schemaVersion: Number(row["schema_version"]),
    beginSnapshot: Number(row["begin_snapshot"]),
  };
  if (row["end_snapshot"] !== null) summary.endSnapshot = Number(row["end_snapshot"]);
  if (row["deleted_at_ms"] !== null) summary.deletedAtMs = Number(row["deleted_at_ms"]);
  return summary;
}

/** Extents per statement, so that an answer of very many does not stand in memory twice. */
const EXTENTS_PER_STATEMENT = 10_000;

/** What of extents is read: columns of `e`, and of `s` with their statistics. */
export type Selection = { select: string; withStats: boolean };

/**
 * Rows of extents of a table by number, ascending. Rejects with `snapshot_expired` when the table cannot be read at the
 * snapshot any more; each statement looks at the horizon and at the extents in one state of the database, and what can
 * be read is not forgotten, so none is missing.
 */
export async function* readableExtents(
  connection: Connection,
  of: Selection & { tableId: number; atSnapshot: number; seqs: readonly number[] },
): AsyncGenerator<Row> {
  const { tableId, atSnapshot, seqs, select } = of;
  const sql =
    `SELECT h.oldest, ${select} FROM (SELECT ${OLDEST_OF_TABLE} AS oldest) h ` +
    `LEFT JOIN ${sourceOf(of)} ON e.seq = ANY ($1::text::bigint[]) ORDER BY e.seq`;
  for (let i = 0; i === 0 || i < seqs.length; i += EXTENTS_PER_STATEMENT) {
    const wanted = seqs.slice(i, i + EXTENTS_PER_STATEMENT);
    const rows = await connection.query(sql, [listOf(wanted), tableId]);
    if (Number(rows[0]?.["oldest"]) > atSnapshot) {
      throw snapshotExpired(atSnapshot, await readOldestSnapshot(connection, tableId));
    }
    if (wanted.length === 0) return;
    if (rows.length < wanted.length) throw new Error("an extent that can still be read is not in the catalog");
    yield* rows;
  }
}

/** Rows of extents by number, ascending; fewer when some have been forgotten. */
export async function* extentsBySeq(
  connection: Connection,
  of: Selection & { seqs: readonly number[] },
): AsyncGenerator<Row> {
  const sql = `SELECT ${of.select} FROM ${sourceOf(of)} WHERE e.seq = ANY ($1::text::bigint[]) ORDER BY e.seq`;
  for (let i = 0; i < of.seqs.length; i += EXTENTS_PER_STATEMENT) {
    yield* await connection.query(sql, [listOf(of.seqs.slice(i, i + EXTENTS_PER_STATEMENT))]);
  }
}

function sourceOf({ withStats }: Selection): string {
  return withStats ? "(engine.extents e JOIN engine.extent_stats s ON s.seq = e.seq)" : "engine.extents e";
}

function listOf(seqs: readonly number[]): string {
  return `{${seqs.join(",")}}`;
}

/** Turns stored lists of column ids and statistics into what they say; equal lists become one array. */
export class StatsDecoder {
  readonly #names: ReadonlyMap<number, string>;
  readonly #wanted: ReadonlySet<number> | undefined;
  readonly #ids = new ListParser<number>();
  readonly #lists = new Map<string, readonly string[]>();
  #shape: { ids: readonly number[]; positions: number[]; names: string[] } | undefined;

  /** `wanted` are the columns whose statistics are asked for; all when absent. */
  constructor(columns: readonly ColumnRecord[], wanted?: readonly ColumnRecord[]) {
    this.#names = new Map(columns.map(({ id, name }) => [id, name]));
    this.#wanted = wanted === undefined ? undefined : new Set(wanted.map(({ id }) => id));
  }

  /** The names of the columns in a list of ids. */
  columnsIn(columnIds: string): readonly string[] {
    const known = this.#lists.get(columnIds);
    if (known !== undefined) return known;
    const names = this.#ids.parse(columnIds).map((id) => this.#nameOf(id));
    this.#lists.set(columnIds, names);
    return names;
  }

  statsIn(columnIds: string, values: string): ColumnStats[] {
    const ids = this.#ids.parse(columnIds);
    if (this.#shape?.ids !== ids) {
      const positions = [...ids.keys()].filter((i) => this.#wanted?.has(ids[i] ?? 0) ?? true);
      this.#shape = { ids, positions, names: positions.map((i) => this.#nameOf(ids[i])) };
    }
    const { names, positions } = this.#shape;
    return decodeStatsAt(names, positions, values);
  }

  #nameOf(id: number | undefined): string {
    const name = id === undefined ? undefined : this.#names.get(id);
    if (name === undefined) throw new Error(`an extent has statistics for unknown column id ${id}`);
    return name;
  }
}

/** The columns with these names, in any case. */
export function columnsNamed(columns: readonly ColumnRecord[], names: readonly string[]): ColumnRecord[] {
  const wanted = new Set(names.map(foldName));
  return columns.filter(({ name }) => wanted.has(foldName(name)));
}

// Times never decrease from one snapshot to the next, so this is the order of the end snapshots.
const DEAD =
  `SELECT ${FIELDS} FROM engine.extents e WHERE e.table_id = $1 AND e.deleted_at_ms < $2::bigint ` +
  "ORDER BY e.deleted_at_ms, e.end_snapshot, e.seq LIMIT $3::bigint";

export async function findDeadExtents(
  database: Database,
  tableId: number,
  beforeMs: number,
  limit: number | undefined,
): Promise<ExtentSummary[]> {
  return (await database.rows(DEAD, [tableId, boundOf(beforeMs), limit ?? null])).map(toSummary);
}

const EXPIRED =
  `SELECT ${FIELDS} FROM engine.extents e WHERE e.table_id = $1 AND e.newest_ns < $2::bigint ` +
  "AND e.end_snapshot IS NULL ORDER BY e.newest_ns, e.seq LIMIT $3::bigint";

/** Live extents without a row as new as the time, the oldest first. */
export async function findExpiredExtents(
  database: Database,
  tableId: number,
  beforeMs: number,
  limit: number,
): Promise<ExtentSummary[]> {
  const beforeNs = clampToInt64(BigInt(Math.floor(beforeMs)) * NS_PER_MS);
  return (await database.rows(EXPIRED, [tableId, beforeNs, limit])).map(toSummary);
}

/** The whole number to compare whole numbers with. */
function boundOf(before: number): number {
  return Math.min(Math.ceil(before), Number.MAX_SAFE_INTEGER);
}

const NS_PER_MS = 1_000_000n;
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

function clampToInt64(value: bigint): bigint {
  if (value < INT64_MIN) return INT64_MIN;
  return value > INT64_MAX ? INT64_MAX : value;
}
