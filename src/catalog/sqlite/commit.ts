import type {
  ExtentSummary,
  FlushCommit,
  FlushOutcome,
  LedgerEntry,
  NewExtent,
  Snapshot,
  TableRecord,
} from "../catalog.ts";
import { foldName } from "../../core/names.ts";
import { extentBeginsByHead, extentIsWellFormed, InvariantViolation } from "../invariants.ts";
import { checkKeys, tooLate } from "../flush-checks.ts";
import { missingColumns } from "../new-columns.ts";
import { addNewColumns } from "./columns.ts";
import { refusePendingDeletion } from "./pending-deletion.ts";
import type { Connection } from "../../db/sqlite/connection.ts";
import { insertExtent } from "./extents.ts";
import { insertFilters } from "./filters.ts";
import { findLedgerEntry, insertLedgerEntry } from "./ledger.ts";
import { advancePositions, movedSources } from "./positions.ts";
import type { SchemaReader } from "./schema.ts";
import { insertSnapshot, nextSnapshot } from "./snapshots.ts";
import { findStaged, insertStaged } from "./staged.ts";
import type { EncodedStats } from "../stats-encoding.ts";
import { unwidenedColumns, unwidenedIn } from "../widening.ts";
import { addToTotals } from "./totals.ts";

export type EncodedExtent = Omit<NewExtent, "stats"> & { stats: EncodedStats };

/** A flush as it travels to the writer's thread. */
export type EncodedFlush = Omit<FlushCommit, "extents"> & { extents: readonly EncodedExtent[] };

/**
 * Commits flushes within the transaction that the caller has begun. Every flush is judged before anything of it is
 * written, so one that is sent back leaves nothing to undo. Throws `ExtentPendingDeletion`, as for every error with writes
 * that the caller must roll back.
 */
export function commitFlushes(
  connection: Connection,
  schema: SchemaReader,
  nowMs: number,
  flushes: readonly EncodedFlush[],
): FlushOutcome[] {
  const snapshot = nextSnapshot(connection, nowMs);
  const outcomes = flushes.map((flush) => commitFlush(connection, schema, { flush, snapshot, nowMs }));
  const accepted = flushes.filter((_, i) => outcomes[i]?.kind === "committed");
  refusePendingDeletion(
    connection,
    accepted.flatMap(({ extents }) => extents.map(({ id }) => id)),
  );
  if (outcomes.some(({ kind }) => kind === "committed")) insertSnapshot(connection, snapshot);
  return outcomes;
}

type FlushContext = { flush: EncodedFlush; snapshot: Snapshot; nowMs: number };

function commitFlush(connection: Connection, schema: SchemaReader, context: FlushContext): FlushOutcome {
  const { flush, snapshot, nowMs } = context;
  const table = schema.tableById(flush.tableId);
  if (table === undefined) {
    if (schema.isDropped(flush.tableId)) return { kind: "schema_conflict" };
    throw new Error(`a flush names table id ${flush.tableId}, which does not exist`);
  }
  if (flush.schemaVersion > table.schemaVersion) {
    throw new Error(`a flush of table ${table.name} has schema version ${flush.schemaVersion}, which is to come`);
  }
  const refused = tooLate(flush, nowMs);
  if (refused !== undefined) return refused;
  const replayOf = flush.staged === undefined ? undefined : findStaged(connection, flush.staged);
  if (replayOf !== undefined) return { kind: "replayed", snapshotId: replayOf };
  const entries = takenKeys(connection, context);
  if (entries.length > 0) return { kind: "key_conflict", entries };
  const moved = movedSources(connection, flush.sources ?? []);
  if (moved !== undefined) return moved;
  const missing = missingColumns(table, flush.newColumns);
  if (missing.kind === "conflict" || isBeforeVectors(connection, table, flush)) return { kind: "schema_conflict" };
  if (flush.schemaVersion < table.schemaVersion && isBeforeWidening(table, flush)) return { kind: "schema_conflict" };

  const after = addNewColumns(connection, schema, table, missing.columns);
  // An extent that brought no column was sealed under the flush's own version; one that did has columns that only the
  // table as it is now is sure to have.
  const schemaVersion = flush.newColumns.length === 0 ? flush.schemaVersion : after.schemaVersion;
  const newestNs = BigInt(snapshot.committedAtMs) * NS_PER_MS;
  insertExtents(connection, after, { extents: flush.extents, snapshot, schemaVersion, newestNs });
  if (flush.staged !== undefined) insertStaged(connection, flush.staged, snapshot);
  for (const entry of flush.ledger) insertLedgerEntry(connection, table.id, entry, snapshot);
  advancePositions(connection, flush.sources ?? [], snapshot);
  return { kind: "committed", snapshot, schemaVersion: after.schemaVersion };
}

/** Whether the flush was sealed before the table got a vector column, which its rows must fill. */
function isBeforeVectors(connection: Connection, table: TableRecord, { schemaVersion }: EncodedFlush): boolean {
  if (schemaVersion === table.schemaVersion) return false;
  const sql = "SELECT 1 FROM columns WHERE table_id = ? AND since_version > ? AND type LIKE 'vector(%' LIMIT 1";
  return connection.get(sql, table.id, schemaVersion) !== undefined;
}

/** Whether the flush has values of a column that was widened since, and cannot be stored as it is. */
function isBeforeWidening(table: TableRecord, flush: EncodedFlush): boolean {
  const unwidened = new Set(unwidenedIn(table, flush.schemaVersion));
  const cannot = new Set(unwidenedColumns(table, flush));
  return table.columns.some(({ id, name }) => unwidened.has(name) && cannot.has(id));
}

function takenKeys(connection: Connection, { flush, nowMs }: FlushContext): LedgerEntry[] {
  checkKeys(flush.ledger);
  const asOfMs = Math.min(nowMs, flush.acceptedAtMs ?? nowMs);
  return flush.ledger.flatMap(({ key }) => findLedgerEntry(connection, flush.tableId, key, asOfMs) ?? []);
}

const NS_PER_MS = 1_000_000n;

export type ExtentInsertion = {
  extents: readonly EncodedExtent[];
  snapshot: Snapshot;
  schemaVersion: number;
  /** No row counts as newer than this. */
  newestNs: bigint;
};

/** Inserts extents that are alive from the snapshot on. */
export function insertExtents(connection: Connection, table: TableRecord, insertion: ExtentInsertion): void {
  const { extents, snapshot, schemaVersion } = insertion;
  const idsOf = columnIdsByNames(table);
  const totals = { rows: 0, extents: 0, sizeBytes: 0 };
  for (const { stats, filters = [], nanosecondColumns, ...extent } of extents) {
    extentIsWellFormed(extent);
    const summary: ExtentSummary = { ...extent, tableId: table.id, schemaVersion, beginSnapshot: snapshot.id };
    if (nanosecondColumns !== undefined) {
      summary.nanosecondColumnIds = JSON.parse(idsOf(JSON.stringify(nanosecondColumns))) as number[];
    }
    extentBeginsByHead(summary, snapshot);
    const newestNs = extent.maxAtNs < insertion.newestNs ? extent.maxAtNs : insertion.newestNs;
    const columnIds = idsOf(stats.names);
    const seq = insertExtent(connection, { extent: summary, newestNs, columnIds, values: stats.values });
    if (filters.length > 0) insertFilters(connection, table, { id: extent.id, seq, filters });
    totals.rows += extent.rows;
    totals.extents++;
    totals.sizeBytes += extent.sizeBytes;
  }
  addToTotals(connection, table.id, totals);
}

/** Turns a list of column names, as JSON, into the list of their ids; extents of one flush mostly share the list. */
function columnIdsByNames(table: TableRecord): (names: string) => string {
  let ids: Map<string, number> | undefined;
  const known = new Map<string, string>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    ids ??= new Map(table.columns.map(({ id, name }) => [foldName(name), id]));
    const list = (JSON.parse(text) as string[]).map((name) => {
      const id = ids?.get(foldName(name));
      if (id !== undefined) return id;
      const message = `an extent of table ${table.name} has statistics of ${JSON.stringify(name)}, which is no column`;
      throw new InvariantViolation("statisticsNameKnownColumns", message);
    });
    const encoded = JSON.stringify(list);
    known.set(text, encoded);
    return encoded;
  };
}
