import type { ColumnRecord, ExtentRecord, ExtentSummary, PlannedExtent, TimeRange } from "../catalog.ts";
import type { IndexedExtent } from "../extent-index.ts";
import type { ColumnStats } from "../../format/types.ts";
import { clampToInt64, INT64_MAX, INT64_MIN } from "../int64.ts";
import { EXTENT_FIELDS, toSummary } from "../rows.ts";
import { readStatsOf, StatsDecoder } from "../stats-decoder.ts";
import { decodeStats, ListParser } from "../stats-encoding.ts";
import type { Connection, Row } from "../../db/sqlite/connection.ts";
import { isUniqueViolation } from "../../db/sqlite/errors.ts";

/**
 * Extents as rows, and the search by time.
 *
 * Extents of a table that overlap a time range are an interval query, which an index on the lower bound alone answers
 * by reading every extent older than the range. So each extent carries a class, the bit length of its span
 * (maxAtNs - minAtNs), and an index that starts with the class: an extent of class c is less than 2^c wide, so all that
 * overlap [lo, hi] have their minimum in (lo - 2^c, hi]. At most 65 classes exist, a handful in practice; each costs
 * one index seek, and what is read beyond the answer is about what lies one extent's width before the range.
 */
export function spanClassOf(minAtNs: bigint, maxAtNs: bigint): number {
  const span = maxAtNs - minAtNs;
  return span === 0n ? 0 : span.toString(2).length;
}

/** An extent on its way between threads: its statistics are still text. */
export type RawExtent = { summary: ExtentSummary; names: string; values: string };

export function toExtentRecords(raw: readonly RawExtent[]): ExtentRecord[] {
  const parser = new ListParser<string>();
  return raw.map(({ summary, names, values }) => {
    const stats = readStatsOf(summary.id, () => decodeStats(parser.parse(names), values));
    return Object.assign(summary, { stats });
  });
}

const FIELDS = ["seq", ...EXTENT_FIELDS].join(", ");

/** The classes in use by a table, by one index seek each. */
const CLASSES = `
WITH RECURSIVE classes (c) AS (
  SELECT min(span_class) FROM extents WHERE table_id = ?
  UNION ALL
  SELECT (SELECT min(span_class) FROM extents WHERE table_id = ? AND span_class > classes.c)
  FROM classes WHERE classes.c IS NOT NULL
)
SELECT c FROM classes WHERE c IS NOT NULL`;

/** Parameters: table, class, least minimum, greatest minimum, least maximum, snapshot twice. */
export const OVERLAPPING = `
SELECT ${FIELDS} FROM extents
WHERE table_id = ? AND span_class = ? AND min_at_ns BETWEEN ? AND ? AND max_at_ns >= ?
  AND begin_snapshot <= ? AND (end_snapshot IS NULL OR end_snapshot > ?)`;

type FoundExtent = { seq: number; summary: ExtentSummary };

/** Extents alive at the snapshot that may hold rows in the range, in the order they were inserted. */
export function findExtents(
  connection: Connection,
  tableId: number,
  atSnapshot: number,
  { minNs = INT64_MIN, maxNs = INT64_MAX }: TimeRange,
): FoundExtent[] {
  if (minNs > maxNs || minNs > INT64_MAX || maxNs < INT64_MIN) return [];
  const [lo, hi] = [clampToInt64(minNs), clampToInt64(maxNs)];
  const found: FoundExtent[] = [];
  for (const row of connection.all(CLASSES, tableId, tableId)) {
    const spanClass = Number(row["c"]);
    const leastMin = clampToInt64(lo - (1n << BigInt(spanClass)));
    const statement = connection.exactStatement(OVERLAPPING);
    for (const extent of statement.iterate(tableId, spanClass, leastMin, hi, lo, atSnapshot, atSnapshot)) {
      found.push({ seq: Number(extent["seq"]), summary: toSummary(extent) });
    }
  }
  return found.sort((a, b) => a.seq - b.seq);
}

// Times never decrease from one snapshot to the next, so this is the order of the end snapshots.
export const DEAD = `
SELECT ${FIELDS} FROM extents WHERE table_id = ? AND deleted_at_ms IS NOT NULL AND deleted_at_ms < ?
ORDER BY deleted_at_ms, end_snapshot, seq LIMIT ?`;

export function findDeadExtents(
  connection: Connection,
  tableId: number,
  beforeMs: number,
  limit: number,
): ExtentSummary[] {
  return connection.exactStatement(DEAD).all(tableId, beforeMs, limit).map(toSummary);
}

/** Parameters: table, time in nanoseconds, limit. */
export const EXPIRED = `
SELECT ${FIELDS} FROM extents WHERE table_id = ? AND newest_ns < ? AND end_snapshot IS NULL
ORDER BY newest_ns, seq LIMIT ?`;

/** Live extents without a row as new as the time, the oldest first. */
export function findExpiredExtents(
  connection: Connection,
  tableId: number,
  beforeNs: bigint,
  limit: number,
): ExtentSummary[] {
  return connection.exactStatement(EXPIRED).all(tableId, clampToInt64(beforeNs), limit).map(toSummary);
}

/** The live extents of a table with these ids, with how new each is; fewer when some are not alive. */
export function findLiveExtents(
  connection: Connection,
  tableId: number,
  ids: readonly string[],
): { summary: ExtentSummary; newestNs: bigint }[] {
  const where = "WHERE id = ? AND table_id = ? AND end_snapshot IS NULL";
  const statement = connection.exactStatement(`SELECT ${FIELDS}, newest_ns FROM extents ${where}`);
  return ids.flatMap((id) => {
    const row = statement.get(id, tableId);
    return row === undefined ? [] : [{ summary: toSummary(row), newestNs: row["newest_ns"] as bigint }];
  });
}

/** Rows of every extent, dead ones too, one at a time, with exact integers. */
export function everyExtent(connection: Connection): Iterable<Row> {
  return connection.exactStatement(`SELECT ${FIELDS}, span_class, newest_ns FROM extents ORDER BY seq`).iterate();
}

const INDEXED = "seq, begin_snapshot, end_snapshot, size_bytes, row_count, min_at_ns, max_at_ns";

/** Parameters: table, seq. */
export const ADDED_SINCE = `SELECT ${INDEXED} FROM extents WHERE table_id = ? AND seq > ? ORDER BY seq`;

/** What a table got after the extent of that number (-1 for all), ascending. */
export function* extentsAfter(connection: Connection, tableId: number, seq: number): Generator<IndexedExtent> {
  const statement = connection.exactStatement(ADDED_SINCE);
  // Rows as arrays take half the time of rows as objects.
  statement.setReturnArrays(true);
  for (const row of statement.iterate(tableId, seq) as Iterable<unknown>) {
    const [number, begin, end, sizeBytes, rowCount, minAtNs, maxAtNs] = row as IndexedRow;
    yield {
      seq: Number(number),
      beginSnapshot: Number(begin),
      endSnapshot: end === null ? undefined : Number(end),
      sizeBytes: Number(sizeBytes),
      rowCount: Number(rowCount),
      minAtNs,
      maxAtNs,
    };
  }
}

/** As `INDEXED` names them. */
type IndexedRow = [bigint, bigint, bigint | null, bigint, bigint, bigint, bigint];

type EndedExtent = { seq: number; endSnapshot: number };

/** Extents of a table that ended at that time or later. */
export function extentsEndedSince(connection: Connection, tableId: number, sinceMs: number): EndedExtent[] {
  const where = "WHERE table_id = ? AND deleted_at_ms IS NOT NULL AND deleted_at_ms >= ?";
  const rows = connection.all(`SELECT seq, end_snapshot FROM extents ${where}`, tableId, sinceMs);
  return rows.map((row) => ({ seq: Number(row["seq"]), endSnapshot: Number(row["end_snapshot"]) }));
}

/** Extents by number, in the order given. */
export function extentsBySeq(
  connection: Connection,
  seqs: readonly number[],
  columns: readonly ColumnRecord[],
): PlannedExtent[] {
  const statement = connection.exactStatement(
    `SELECT ${FIELDS}, column_ids FROM extents JOIN extent_stats USING (seq) WHERE seq = ?`,
  );
  const decoder = new StatsDecoder(columns);
  return seqs.map((seq) => {
    const row = statement.get(seq);
    if (row === undefined) throw new Error(`there is no extent number ${seq} in the catalog`);
    return Object.assign(toSummary(row), { columns: decoder.columnsIn(String(row["column_ids"])) });
  });
}

/** Reads statistics of extents of one table. */
export class StatsReader {
  readonly #connection: Connection;
  readonly #decoder: StatsDecoder;
  readonly #wantsNone: boolean;

  /** `columns` are all of the table; `wanted` those whose statistics are asked for, all when absent. */
  constructor(connection: Connection, columns: readonly ColumnRecord[], wanted?: readonly ColumnRecord[]) {
    this.#connection = connection;
    this.#decoder = new StatsDecoder(columns, wanted);
    this.#wantsNone = wanted?.length === 0;
  }

  read({ seq, summary }: FoundExtent): RawExtent {
    if (this.#wantsNone) return { summary, ...NO_STATS };
    return { summary, ...readStatsOf(summary.id, () => this.#decoder.encodedIn(...this.#textsOf(seq))) };
  }

  /** The same, read on this thread. */
  statsOf(seq: number): ColumnStats[] {
    return this.#decoder.statsIn(...this.#textsOf(seq));
  }

  #textsOf(seq: number): [columnIds: string, values: string] {
    const row = this.#connection.get("SELECT column_ids, stats FROM extent_stats WHERE seq = ?", seq);
    if (row === undefined) throw new Error(`extent number ${seq} has no statistics in the catalog`);
    return [String(row["column_ids"]), String(row["stats"])];
  }
}

const NO_STATS = { names: "[]", values: "[[],[],[]]" };

const INSERT =
  "INSERT INTO extents (id, table_id, schema_version, object_key, format, format_version, row_count, size_bytes, " +
  "checksum, min_at_ns, max_at_ns, span_class, begin_snapshot, newest_ns, ns_column_ids) " +
  "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/** As an extent is stored, with its statistics as two lists. */
export type StoredExtent = { extent: ExtentSummary; newestNs: bigint; columnIds: string; values: string };

/** Inserts one extent with its statistics; its row number. Throws when the id is taken. */
export function insertExtent(connection: Connection, { extent, newestNs, columnIds, values }: StoredExtent): number {
  const { minAtNs, maxAtNs } = extent;
  try {
    const { lastInsertRowid } = connection
      .statement(INSERT)
      .run(
        extent.id,
        extent.tableId,
        extent.schemaVersion,
        extent.key,
        extent.format,
        extent.formatVersion,
        extent.rows,
        extent.sizeBytes,
        extent.checksum,
        minAtNs,
        maxAtNs,
        spanClassOf(minAtNs, maxAtNs),
        extent.beginSnapshot,
        newestNs,
        extent.nanosecondColumnIds === undefined ? null : JSON.stringify(extent.nanosecondColumnIds),
      );
    connection.run(
      "INSERT INTO extent_stats (seq, column_ids, stats) VALUES (?, ?, ?)",
      lastInsertRowid,
      columnIds,
      values,
    );
    return Number(lastInsertRowid);
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw new Error(`extent ${extent.id} is in the catalog already`, { cause: error });
  }
}

const END =
  "UPDATE extents SET end_snapshot = ?, deleted_at_ms = ? WHERE id = ? AND table_id = ? AND end_snapshot IS NULL " +
  `RETURNING ${FIELDS}`;

/** Ends a live extent of the table; undefined when there is none of that id. */
export function endExtent(
  connection: Connection,
  tableId: number,
  id: string,
  end: { snapshotId: number; deletedAtMs: number },
): ExtentSummary | undefined {
  const [row] = connection.exactStatement(END).all(end.snapshotId, end.deletedAtMs, id, tableId);
  return row === undefined ? undefined : toSummary(row);
}
