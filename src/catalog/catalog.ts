import type { ColumnFilter, FilterProbe } from "../format/filter/filter.ts";
import type { ColumnSpec, ColumnStats, ExtentFormat } from "../format/types.ts";
import type { Statement } from "../db/records.ts";
import type { SourcePosition, SourceStep } from "./input-positions.ts";
import type { CatalogReader } from "./transfer/transfer.ts";
import type { StatsTest } from "./stats-predicates.ts";

/**
 * The catalog: what exists, and since when.
 *
 *     databases → tables → columns        names unique without regard to case; column ids never reused
 *     snapshots                           numbered by one head that only ever increases
 *     extents                             files of rows, alive from begin_snapshot until end_snapshot (exclusive)
 *     idempotency ledger                  (table, key) → the acknowledgement given, good for 24 hours
 *     staged objects                      those whose rows are in, so that none comes in twice
 *     input positions                     how far each input is in that can be read again (`input-positions.ts`)
 *     leases                              who does which background duty, with fences
 *     readers                             the oldest snapshot that each node still reads
 *     ids pending deletion                   those that no commit may bring in any more
 *     drops                               when each name of a table or database was dropped last
 *
 * A commit is one transaction: it advances the head by one, inserts extents and new columns, and inserts ledger
 * entries. It happens whole or not at all, and it is durable when it returns. A reader that remembers a snapshot
 * number sees exactly the extents with `begin_snapshot <= n < end_snapshot`, for ever, until those extents are
 * physically deleted; so a query needs no lock. Before anything is deleted that a snapshot sees, the catalog makes that
 * snapshot unreadable (for one table or for all), which it never does while a node says that it reads it.
 *
 * Several flushes travel in one commit. Each is accepted or sent back on its own: a flush whose key somebody else
 * committed first, or whose idea of the schema is out of date, must not take its neighbours with it.
 *
 * Times are the catalog's own and never decrease from one snapshot to the next.
 *
 * Errors: an `EngineError` says that nothing of the call was stored (`insufficient_storage` on a full or read-only disk,
 * `unavailable` when the catalog is closed, has failed, is overloaded, or another process held it for too long); so do
 * an `InvariantViolation` and the classes of `refusals.ts`. Any other error of a write leaves open whether it took
 * effect; whoever committed extents must then keep their bytes.
 *
 * Background duties of several nodes take turns by leases. A write that is given a lease looks, within its transaction,
 * whether that lease is still held, and else rejects with `LeaseLost`: a duty that lost it without noticing does nothing.
 *
 * Drivers: `sqlite/` (embedded; its writer runs on a thread of its own). `contract.ts` is the test suite that every
 * driver passes.
 */
export interface Catalog {
  /** Creates the database unless it exists. `created` says which. */
  createDatabase(name: string): Promise<{ database: DatabaseRecord; created: boolean }>;
  /** The database of that name (any case). */
  database(name: string): Promise<DatabaseRecord | undefined>;
  databases(): Promise<DatabaseRecord[]>;

  /**
   * Creates a table, and its database, unless they exist. An existing table is returned as it is, whatever `columns`
   * says. Columns are taken in order; `retentionDays` undefined keeps rows for ever; `clusterBy` names some of `columns`.
   */
  createTable(request: CreateTable): Promise<{ table: TableRecord; created: boolean }>;
  /** The table of that name (any case) with its columns as of now. A point look-up: cheap enough for every request. */
  table(database: string, name: string): Promise<TableRecord | undefined>;
  /**
   * What a query begins with, all as of one moment and asked for at once: the newest snapshot, and the tables of those
   * names (any case). Undefined when there is no such database.
   */
  resolve(database: string, tables: readonly string[]): Promise<Resolution | undefined>;
  /** All tables of a database, by name; none when there is no such database. */
  tables(database: string): Promise<TableRecord[]>;
  /** All tables of all databases, by id: for background duties. */
  allTables(): Promise<TableRecord[]>;
  /** The tables of a database (of all without one), by name, with the number of their columns instead of the columns. */
  tableSummaries(database?: string): Promise<TableSummary[]>;
  /**
   * Sets the retention of a table in days, or (undefined) lifts it. Throws `EngineError`: `table_not_found`,
   * `invalid_parameter` for a number of days that no table may have.
   */
  setRetention(tableId: number, days: number | undefined): Promise<TableRecord>;
  /**
   * Sets by which columns (any case) compaction orders rows of one time; none with `[]`. Files that are merged already
   * stay as they are. Throws `EngineError`: `table_not_found`, `invalid_parameter` as `cluster-columns.ts` has it.
   */
  setClusterBy(tableId: number, columns: readonly string[]): Promise<TableRecord>;
  /**
   * Says whether new columns of the table get types by their values (`format/ndjson/infer-types.ts`) where a request
   * does not say; undefined leaves it to the configuration. Columns that are there stay as they are.
   */
  setInferTypes(tableId: number, inferTypes: boolean | undefined): Promise<TableRecord>;
  /**
   * Sets after how many seconds rows of the table are published for other programs; 0 leaves it to compaction's own pace,
   * undefined to the configuration. Throws `EngineError`: `table_not_found`, `invalid_parameter` for more than a day.
   */
  setOpenLag(tableId: number, secs: number | undefined): Promise<TableRecord>;
  /**
   * Adds columns to a table, all or none. Idempotent. Throws `EngineError`: `conflict` when a name is taken by another
   * type, the columns would be too many, or one is a vector and the table has rows (`vectorOnRows`), `invalid_name` for a
   * name that no column may have.
   */
  addColumns(tableId: number, columns: readonly ColumnSpec[]): Promise<TableRecord>;
  /**
   * Makes inferred `long` columns of those names (any case) `real`, each whose stored values allow it, and leaves the
   * others: see `widening.ts`. A transaction of its own, before the flush that asks for it is sealed under the type that
   * the column then has: a refusal costs no second seal, as the table too is made before. Throws `table_not_found`.
   */
  widenColumns(tableId: number, names: readonly string[]): Promise<TableRecord>;

  /** A number that changes whenever a database, table or column is added or a table's settings change, by any process. */
  schemaGeneration(): Promise<number>;

  /** The newest snapshot. */
  head(): Promise<Snapshot>;
  /** The newest snapshots, newest first, at most `limit`. */
  snapshots(limit: number): Promise<Snapshot[]>;
  /**
   * The newest snapshot committed at or before the time; undefined when the catalog is younger. Of a time before the
   * oldest readable snapshot it may be an earlier one than that, which cannot be read either: see `sweepSnapshots`.
   */
  snapshotAt(timeMs: number): Promise<Snapshot | undefined>;
  /**
   * The oldest snapshot at which a table (without one: every table) may still be read: the first until
   * `expireSnapshots`, `expireTable` or `deleteRows` says otherwise. Older ones may miss extents whose bytes are gone, or
   * have rows that were deleted.
   */
  oldestSnapshot(tableId?: number): Promise<Snapshot>;
  /**
   * The oldest snapshot for which the extents of a table are kept: what ended by then may be forgotten. After a deletion
   * of rows this is behind `oldestSnapshot`, until the queries are over that began before.
   */
  oldestKeptSnapshot(tableId: number): Promise<Snapshot>;
  /**
   * Makes snapshots before that number unreadable, before what only they can see is deleted; resolves to the oldest
   * readable one. It only ever advances, not past the head, and not past what a live reader holds.
   */
  expireSnapshots(before: number, lease?: Lease): Promise<Snapshot>;
  /** The same for one table; resolves to the oldest snapshot for which its extents are kept. */
  expireTable(tableId: number, before: number): Promise<Snapshot>;
  /**
   * Forgets at most `limit` snapshots of which no table can be read any more, the oldest first; resolves to how many.
   * The very first stays, so that a time before the catalog can be told from one that is too long ago.
   */
  sweepSnapshots(limit: number): Promise<number>;
  /**
   * Says for `ttlMs` from now on, by the catalog's own time, that queries of this node read snapshots from `oldest` on;
   * replaces what the node said before. Rejects with `snapshot_expired`, and leaves what was said, when that one cannot
   * be read any more. (Of a single table it may still be unreadable: see `planScan`.)
   */
  holdSnapshots(node: string, oldest: number, ttlMs: number): Promise<void>;
  /** The node reads nothing any more. */
  releaseSnapshots(node: string): Promise<void>;
  /**
   * Commits all flushes that can be committed as one new snapshot; one outcome per flush, in order. Flushes are judged
   * in order, each seeing what the ones before it did: of two with the same key, or from the same staged object, the
   * first wins; those of a table that was dropped are sent back. Throws, and stores nothing, when an extent id is in the
   * catalog already; rejects with `ExtentPendingDeletion` when one is pending deletion.
   */
  commit(flushes: readonly FlushCommit[], lease?: Lease): Promise<FlushOutcome[]>;
  /** The acknowledgement recorded for the key, if one is and it is younger than 24 hours, and when that was so. */
  lookUpKey(tableId: number, key: string): Promise<KeyLookUp>;
  /** Which of these staged objects have been committed. */
  committedStaged(ids: readonly string[]): Promise<string[]>;
  /** Forgets staged objects committed strictly before the time; resolves to how many. */
  sweepStaged(beforeMs: number): Promise<number>;

  /**
   * Extents of a table that are alive at the snapshot and may hold rows in the range, in the order of their commits.
   * `statsOf` names the columns (any case) whose statistics are wanted, none with `[]`: statistics are most of a
   * record, so a caller that does not prune by them should not have them read. Without it all come along. Rejects with
   * `snapshot_expired` when the table cannot be read at that snapshot any more, so an answer is never partial.
   */
  extents(tableId: number, atSnapshot: number, range?: TimeRange, statsOf?: readonly string[]): Promise<ExtentRecord[]>;
  /**
   * Which of a table's extents cannot hold a row that answers to all probes, as their filters say. Extents without a
   * filter of that kind may; so may ids that are unknown, and all of them when a column is (names in any case).
   */
  extentsWithout(tableId: number, extentIds: readonly string[], probes: readonly ColumnProbe[]): Promise<string[]>;
  /**
   * The extents of a table at a snapshot that may hold rows that a scan needs, by time and by statistics, and how many
   * it does not need. Made for tables of 100,000 extents: only what is to be read leaves the catalog. Rejects with
   * `snapshot_expired` as `extents` does.
   */
  planScan(request: ScanRequest): Promise<ScanPlan>;
  /**
   * The extents that commits brought to a table since a snapshot, in the order of the commits, also those that a merge has
   * replaced since. What a merge or a deletion made of other extents is not among them. Rejects with `snapshot_expired`
   * when the extents of the snapshot before `from` are not kept any more, and when one of those found had rows deleted.
   */
  additions(request: AdditionsRequest): Promise<Additions>;
  /**
   * The snapshots after one, ascending, with which files of a table that other programs can read (`isPublishable`) came or
   * went, and those of `also`, whether they did or not. Of snapshots that cannot be read any more some may be missing.
   */
  fileChanges(tableId: number, after: number, also?: readonly number[]): Promise<FileChange[]>;
  /**
   * What the snapshots from one on changed in those tables, the newest first, and within one by the table's id. Of
   * snapshots before the oldest that can be read, and of that one, extents that went may be missing.
   */
  tableChanges(tableIds: readonly number[], from: number): Promise<TableChange[]>;
  /** Of the ids, those that no extent has: whoever keeps copies of extents has no use for these any more. */
  goneExtents(extentIds: readonly string[]): Promise<string[]>;
  /** Rows and bytes of a table at the head. */
  tableStats(tableId: number): Promise<{ rows: number; extents: number; sizeBytes: number }>;
  /**
   * How many values were kept in `props` because they did not fit their column, by column id, of a table's live extents:
   * of all, or of those with these ids. Columns without any are left out.
   */
  misfits(tableId: number, extentIds?: readonly string[]): Promise<ReadonlyMap<number, number>>;

  /**
   * Marks extents as dead from a new snapshot on (soft deletion: their bytes stay, older snapshots still read them).
   * Ids that are not alive in that table are ignored; resolves to what died. No snapshot is made when nothing did.
   */
  endExtents(tableId: number, extentIds: readonly string[], lease?: Lease): Promise<ExtentSummary[]>;
  /**
   * Extents of a table whose soft deletion happened strictly before `beforeMs`, in the order of their end snapshots; at
   * most `limit`.
   */
  deadExtents(tableId: number, beforeMs: number, limit?: number): Promise<ExtentSummary[]>;
  /**
   * Forgets dead extents once their bytes are gone. Throws an `InvariantViolation`, and forgets none, when one of them
   * is alive or a snapshot sees it that can still be read; unknown ids are ignored, so that a deletion that was
   * interrupted can be repeated. Resolves to the ids of those that this very call forgot.
   */
  forgetExtents(extentIds: readonly string[], lease?: Lease): Promise<string[]>;
  /**
   * Live extents of a table without a row as new as the time, the oldest first, at most `limit`. A row is as new as its
   * `at`, or as its arrival if that is earlier: rows dated into the future go by their arrival. An extent is as new as
   * the smaller of its largest `at` and the time of the commit that brought it; one that a merge made, as the smaller of
   * its largest `at` and the newest of the merge's inputs.
   */
  expiredExtents(tableId: number, beforeMs: number, limit: number): Promise<ExtentSummary[]>;
  /**
   * Replaces live extents of a table by others that hold the same rows, in one new snapshot; undefined, and nothing is
   * stored, when one of the inputs is not alive in that table: the loser of a race discards its outputs (as does a merge
   * of a table that was dropped). Throws an
   * `InvariantViolation` (`mergesConserveRows`) when the numbers of rows differ, an `Error` when there is no input, one
   * is named twice, the table is unknown, or an output's id is in the catalog already. Rejects with `ExtentPendingDeletion`.
   */
  mergeExtents(merge: ExtentMerge): Promise<Snapshot | undefined>;
  /**
   * Replaces live extents of a table by others that hold the same rows but for those that are deleted, in one new
   * snapshot, before which the table cannot be read any more; an open query reads on. Undefined, and nothing is stored,
   * when one of the inputs is not alive in that table: the caller looks at the table again. Throws an
   * `InvariantViolation` (`deletionsConserveRows`) when the numbers of rows do not add up, and else as `mergeExtents`;
   * but there may be no inputs at all.
   */
  deleteRows(deletion: RowDeletion): Promise<Snapshot | undefined>;
  /**
   * Drops a table: from here on its name is free, and nothing of it can be read at any snapshot, nor any key of its
   * ledger found. Its extents end with a new snapshot and stay for queries that began before. A table that is made
   * again under the name is another one. `also` is done in the same transaction. Undefined when the table is not there.
   */
  dropTable(tableId: number, also?: readonly Statement[]): Promise<Dropped | undefined>;
  /** The same for a database with all its tables, with one snapshot. */
  dropDatabase(databaseId: number, also?: readonly Statement[]): Promise<Dropped | undefined>;
  /** Tables that were dropped and not forgotten, by id. */
  droppedTables(): Promise<DroppedTable[]>;
  /** When a table of that name (any case), or its whole database, was last dropped; undefined when none ever was. */
  droppedAt(database: string, table: string): Promise<number | undefined>;
  /**
   * Forgets a dropped table, and its database if that was dropped and has no others; false, and it stays, while one of
   * its extents is known, and for a table that was not dropped.
   */
  forgetTable(tableId: number): Promise<boolean>;
  /**
   * UTC days of tables that have at least `minExtents` live extents smaller than `belowBytes`, with what those add up
   * to; the most extents first, then by table and day. An extent counts for the day of its smallest `at`.
   */
  crowdedDays(request: { belowBytes: number; minExtents: number; limit: number }): Promise<CrowdedDay[]>;
  /**
   * UTC days of tables with live extents whose files other programs cannot read (`isPublished`), and what those add up
   * to; by the age of the oldest. An extent counts for the day of its smallest `at`.
   */
  unpublishedDays(request: UnpublishedRequest): Promise<UnpublishedDay[]>;
  /**
   * Of ids of objects that were found in the store, those that no extent has, alive or dead. From here on every commit
   * and merge refuses these (`ExtentPendingDeletion`), so the objects can be deleted.
   */
  markPendingDeletion(extentIds: readonly string[]): Promise<string[]>;
  /**
   * Forgets at most `limit` ids pending deletion that were made (as the UUIDv7 says) strictly before the time, the oldest
   * first; resolves to how many. A commit takes these again: whoever calls it knows that none comes any more.
   */
  sweepPendingDeletions(madeBeforeMs: number, limit: number): Promise<number>;

  /**
   * Takes the lease of that name for `ttlMs`, or renews it for the same holder; undefined while somebody else holds it.
   * The fence is higher than that of every holder before; a renewal in time keeps it, a lease taken again after its end
   * gets a new one. Time is the catalog's own, so clocks of nodes do not matter.
   */
  acquireLease(name: string, holder: string, ttlMs: number): Promise<Lease | undefined>;
  /** Gives the lease back early. Harmless when it is lost. */
  releaseLease(lease: Lease): Promise<void>;

  /** The catalog's own time, by which everything above goes. */
  nowMs(): Promise<number>;
  /**
   * Deletes ledger entries that were past their time to live at `asOfMs` (now, when that is earlier or absent); resolves
   * to how many. While a flush may come that was accepted at some time, later entries must stay: see `acceptedAtMs`.
   */
  sweepLedger(asOfMs?: number): Promise<number>;
  /** Walks the whole catalog and throws naming the first invariant that does not hold (see `invariants.ts`). */
  verify(): Promise<void>;
  /**
   * Reads all of it, with the tables of every feature, as of now: see `transfer/transfer.ts`. Hold the oldest readable
   * snapshot before, and until what the rows point to has been copied. Rejects with `conflict` when another version of the
   * program has upgraded the catalog.
   */
  openReader(): Promise<CatalogReader>;
  /** Finishes the calls that are under way, then releases everything. Calls made after it fail (`unavailable`). */
  close(): Promise<void>;
}

export type DatabaseRecord = { id: number; name: string };

/** A column with its stable id, unique within the table and never reused. */
export type ColumnRecord = ColumnSpec & {
  id: number;
  /** The first snapshot that has it; absent for the columns that the table was created with. */
  sinceSnapshot?: number;
  /** It was `long` before this schema version of its table, and to snapshots before this one: see `widening.ts`. */
  widened?: { version: number; snapshot: number };
};

export type TableRecord = {
  id: number;
  databaseId: number;
  database: string;
  name: string;
  /** Counts the changes of the column set; extents record the version they were sealed under. */
  schemaVersion: number;
  columns: readonly ColumnRecord[];
  retentionDays?: number;
  /** Names of columns by which compaction orders rows of one time; see `cluster-columns.ts`. */
  clusterBy: readonly string[];
  /** Whether new columns get types by their values where a request does not say; absent where the configuration says. */
  inferTypes?: boolean;
  /** Seconds after which rows are published for other programs (0: at compaction's own pace); absent where the configuration says. */
  openLagSecs?: number;
};

/** A table without its columns, which are most of a record. */
export type TableSummary = Omit<TableRecord, "columns"> & { columnCount: number };

export type Resolution = {
  database: DatabaseRecord;
  head: Snapshot;
  /** One per name, in order; undefined where there is no such table. */
  tables: readonly (TableRecord | undefined)[];
};

export type CreateTable = {
  database: string;
  name: string;
  columns: readonly ColumnSpec[];
  retentionDays?: number;
  clusterBy?: readonly string[];
  inferTypes?: boolean;
  openLagSecs?: number;
  /** Of a table that was there before and is made anew: its database may have any name that was ever accepted. */
  wasThere?: true;
};

export type Snapshot = { id: number; committedAtMs: number };

/** A snapshot, with how many publishable files of a table came with it and went with it. */
export type FileChange = Snapshot & { added: number; removed: number };

/** What a snapshot changed in a table: the extents that came with it and went with it, and their rows. */
export type TableChange = {
  snapshot: number;
  tableId: number;
  added: number;
  removed: number;
  rowsAdded: number;
  rowsRemoved: number;
};

/** Inclusive bounds on `at`, nanoseconds since the epoch. */
export type TimeRange = { minNs?: bigint; maxNs?: bigint };

/** An extent whose bytes are durable in the object store, as the sealer describes it. */
export type NewExtent = {
  /** UUIDv7. */
  id: string;
  key: string;
  format: ExtentFormat;
  formatVersion: number;
  rows: number;
  sizeBytes: number;
  /** `checksumOf` the bytes. */
  checksum: string;
  /** Smallest and largest `at`, nanoseconds. */
  minAtNs: bigint;
  maxAtNs: bigint;
  /** One per column that the extent has; every row of a column without any is taken to be NULL. */
  stats: readonly ColumnStats[];
  /** Columns of which the file has nanoseconds as well (`format/parquet-times.ts`); absent where there are none. */
  nanosecondColumns?: readonly string[];
  /** At most one of each kind for a column. Kept apart and never read as a whole: see `Catalog.extentsWithout`. */
  filters?: readonly ColumnFilter[];
};

export type ExtentRecord = Omit<NewExtent, "filters" | "nanosecondColumns"> & {
  tableId: number;
  /** The ids of its `nanosecondColumns`. */
  nanosecondColumnIds?: readonly number[];
  /** A schema version that has all the extent's columns; the extent may lack some of that version's. */
  schemaVersion: number;
  beginSnapshot: number;
  /** The snapshot from which on the extent is gone; undefined while it is alive. */
  endSnapshot?: number;
  /** When it was soft-deleted. */
  deletedAtMs?: number;
};

/** An extent without the statistics of its columns. */
export type ExtentSummary = Omit<ExtentRecord, "stats">;

/** An extent to be read, with the names of the columns that it has. */
export type PlannedExtent = ExtentSummary & { columns: readonly string[] };

/** One reader of the table: rows with `at` in the range that pass all tests. */
export type ScanFilter = { range: TimeRange; tests: readonly StatsTest[] };

export type ScanRequest = {
  tableId: number;
  atSnapshot: number;
  /** An extent is needed when any of them may need it. */
  filters: readonly ScanFilter[];
  /**
   * Only so many rows matter, those with the newest (else the oldest) `at`, of the rows within the range of the one
   * filter there is, which has no tests.
   */
  top?: { rows: number; newest: boolean };
};

export type ExtentTotals = { extents: number; sizeBytes: number };

export type ScanPlan = {
  /** What is to be read, in the order of the commits. */
  extents: PlannedExtent[];
  /** Of all extents alive at the snapshot, how many there are and how many each rule left out. */
  total: ExtentTotals;
  prunedByTime: ExtentTotals;
  prunedByStats: ExtentTotals;
  prunedByTop: ExtentTotals;
};

export type AdditionsRequest = {
  tableId: number;
  /** The first snapshot whose extents are asked for; at least 1. */
  from: number;
  /** The last one: the head, or one before it. */
  upTo: number;
  /** Most extents. Those of one snapshot come together, however many they are. */
  limit: number;
};

export type Additions = {
  extents: PlannedExtent[];
  /** Up to this snapshot, and with it, these are all. */
  upTo: number;
};

/** What the filter of a column is asked. */
export type ColumnProbe = FilterProbe & { column: string };

/** A ledger entry to be made by a commit: the acknowledgement of one request but for its snapshot. */
export type NewLedgerEntry = { key: string; extentCount: number; rows: number; sizeBytes: number };

export type LedgerEntry = NewLedgerEntry & { snapshotId: number };

export type KeyLookUp = {
  /** Undefined when the key is free. */
  entry: LedgerEntry | undefined;
  /** By the catalog's time, and not after the look-up. */
  atMs: number;
};

export type FlushCommit = {
  /** The id of the staged object that the flush comes from. The commit records it. */
  staged?: string;
  tableId: number;
  /** The schema version that the flush was sealed under. */
  schemaVersion: number;
  /** Columns the flush found that the table did not have under `schemaVersion`, in order of appearance. */
  newColumns: readonly ColumnSpec[];
  extents: readonly NewExtent[];
  /** An entry lives from the time of the commit on, however long before the flush was accepted. */
  ledger: readonly NewLedgerEntry[];
  /**
   * When the flush was accepted, if not just now: its keys are also taken by entries that were alive then and have ended
   * since. By the catalog's time; who knows it by another clock gives the earliest that it may have been.
   */
  acceptedAtMs?: number;
  /**
   * When the keys were looked up and were free (`lookUpKey`), the earliest of them. A flush that was held up for so long
   * that a key may have been taken and forgotten since is refused: `too_late`. Without it none is.
   */
  keysFreeAtMs?: number;
  /**
   * The steps that the flush takes of inputs, in order: it is stored where each source is where its step begins, and
   * they move with it. Of several flushes of one commit, each goes on from where those before it left the source.
   */
  sources?: readonly SourceStep[];
};

export type FlushOutcome =
  | { kind: "committed"; snapshot: Snapshot; schemaVersion: number }
  /**
   * The schema moved in a way that contradicts the flush: a column that it adds exists with another type, or no longer
   * fits under the column cap; or the table was dropped, or got a vector column since, which the flush's rows must fill;
   * or a column was widened since (`widening.ts`), and the flush has values of it that the wider type does not hold.
   * Seal it again under the table as it is now. (A column added meanwhile with the same name and type is no
   * contradiction.)
   */
  | { kind: "schema_conflict" }
  /** These keys are in the ledger already; the flush must give up their rows and come back. */
  | { kind: "key_conflict"; entries: readonly LedgerEntry[] }
  /**
   * One of the flush's sources at least is not where its step begins. `positions` are those that the flush was judged
   * by: the steps that do not fit them (`stepsThatFit`) must go, and the rest of the flush come back.
   */
  | { kind: "position_conflict"; positions: readonly SourcePosition[] }
  /**
   * Nothing is stored. Of keys that were looked up at `lookedUpByMs` (the catalog's time) or before, the ledger cannot
   * tell any more whether they were taken since. This is looked at before anything else.
   */
  | { kind: "too_late"; lookedUpByMs: number }
  /** The staged object that the flush comes from was committed before, with that snapshot; nothing is stored. */
  | { kind: "replayed"; snapshotId: number };

/** A lease as taken: good for writes until it ends or is given back. */
export type Lease = { name: string; holder: string; fence: number };

export type ExtentMerge = {
  tableId: number;
  /** The table's version that the outputs were written under. */
  schemaVersion: number;
  /** Ids of extents. */
  inputs: readonly string[];
  outputs: readonly NewExtent[];
  lease?: Lease;
};

export type RowDeletion = {
  tableId: number;
  /** The table's version that the outputs were written under. */
  schemaVersion: number;
  /** Extents that are replaced together; without outputs all their rows are deleted. */
  groups: readonly { inputs: readonly string[]; outputs: readonly NewExtent[] }[];
  /** How many rows are deleted. */
  rows: number;
  /** Done in the same transaction, once the new snapshot is there to be read. */
  also?: readonly Statement[];
};

/** What dropping tables took away, as of its snapshot. */
export type Dropped = { snapshot: Snapshot; tables: number; rows: number; extents: number; sizeBytes: number };

export type DroppedTable = { id: number; database: string; name: string; droppedAtMs: number };

export type CrowdedDay = {
  tableId: number;
  /** Midnight UTC. */
  dayMs: number;
  extents: number;
  rows: number;
  sizeBytes: number;
};

export type UnpublishedRequest = {
  /** Else all tables. */
  tableId?: number;
  /** Parquet of that size and above does not count. */
  belowBytes?: number;
  /** What came with later snapshots does not count. */
  upTo?: number;
};

export type UnpublishedDay = CrowdedDay & {
  /** When the oldest of these extents was made, by its id. */
  sinceMs: number;
  /** The first snapshot that has one of them. */
  firstSnapshot: number;
};
