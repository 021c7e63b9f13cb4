import type { ColumnFilter, FilterProbe } from "../format/filter/filter.ts";
import type { ColumnSpec, ColumnStats, ExtentFormat } from "../format/types.ts";
import type { StatsTest } from "./stats-test.ts";

/**
 * The catalog: what exists, and since when.
 *
 *     databases → tables → columns        names unique without regard to case; column ids never reused
 *     snapshots                           numbered by one head that only ever increases
 *     extents                             files of rows, alive from begin_snapshot until end_snapshot (exclusive)
 *     idempotency ledger                  (table, key) → the acknowledgement given, kept 24 hours
 *
 * A commit is one transaction: it advances the head by one, inserts extents and new columns, and inserts ledger
 * entries. It happens whole or not at all, and it is durable when it returns. A reader that remembers a snapshot
 * number sees exactly the extents with `begin_snapshot <= n < end_snapshot`, for ever, until those extents are
 * physically deleted; so a query needs no lock.
 *
 * Several flushes travel in one commit. Each is accepted or sent back on its own: a flush whose key somebody else
 * committed first, or whose idea of the schema is out of date, must not take its neighbours with it.
 *
 * Times are the catalog's own and never decrease from one snapshot to the next.
 *
 * Errors: an `EngineError` says that nothing of the call was stored (`insufficient_storage` on a full or read-only disk,
 * `unavailable` when the catalog is closed, has failed, is overloaded, or another process held it for too long). Any
 * other error of a write leaves open whether it took effect; whoever committed extents must then keep their bytes.
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
   * says. Columns are taken in order; `retentionDays` undefined keeps rows for ever.
   */
  createTable(request: CreateTable): Promise<{ table: TableRecord; created: boolean }>;
  /** The table of that name (any case) with its columns as of now. A point look-up: cheap enough for every request. */
  table(database: string, name: string): Promise<TableRecord | undefined>;
  /** All tables of a database, by name; none when there is no such database. */
  tables(database: string): Promise<TableRecord[]>;
  /**
   * Adds columns to a table, all or none. Idempotent. Throws `EngineError`: `conflict` when a name is taken by another
   * type or the columns would be too many, `invalid_name` for a name that no column may have.
   */
  addColumns(tableId: number, columns: readonly ColumnSpec[]): Promise<TableRecord>;

  /** A number that changes whenever a database, table or column is added, by any process. */
  schemaGeneration(): Promise<number>;

  /** The newest snapshot. */
  head(): Promise<Snapshot>;
  /** The newest snapshots, newest first, at most `limit`. */
  snapshots(limit: number): Promise<Snapshot[]>;
  /** The newest snapshot committed at or before the time; undefined when the catalog is younger. */
  snapshotAt(timeMs: number): Promise<Snapshot | undefined>;
  /**
   * The oldest snapshot that may still be read: the first until `expireSnapshots` says otherwise. Older ones may miss
   * extents whose bytes are gone.
   */
  oldestSnapshot(): Promise<Snapshot>;
  /**
   * Makes snapshots before that number unreadable, before what only they can see is deleted; resolves to the oldest
   * readable one. It only ever advances, and not past the head.
   */
  expireSnapshots(before: number): Promise<Snapshot>;
  /**
   * Commits all flushes that can be committed as one new snapshot; one outcome per flush, in order. Flushes are judged
   * in order, each seeing what the ones before it did: of two with the same key the first wins. Throws, and stores
   * nothing, when an extent id is in the catalog already.
   */
  commit(flushes: readonly FlushCommit[]): Promise<FlushOutcome[]>;
  /** The acknowledgement recorded for the key, if one is and it is younger than 24 hours. */
  ledgerEntry(tableId: number, key: string): Promise<LedgerEntry | undefined>;

  /**
   * Extents of a table that are alive at the snapshot and may hold rows in the range, in the order of their commits.
   * `statsOf` names the columns (any case) whose statistics are wanted, none with `[]`: statistics are most of a
   * record, so a caller that does not prune by them should not have them read. Without it all come along.
   */
  extents(tableId: number, atSnapshot: number, range?: TimeRange, statsOf?: readonly string[]): Promise<ExtentRecord[]>;
  /**
   * Which of a table's extents cannot hold a row that answers to all probes, as their filters say. Extents without a
   * filter of that kind may; so may ids that are unknown, and all of them when a column is (names in any case).
   */
  extentsWithout(tableId: number, extentIds: readonly string[], probes: readonly ColumnProbe[]): Promise<string[]>;
  /**
   * The extents of a table at a snapshot that may hold rows that a scan needs, by time and by statistics, and how many
   * it does not need. Made for tables of 100,000 extents: only what is to be read leaves the catalog.
   */
  planScan(request: ScanRequest): Promise<ScanPlan>;
  /** Rows and bytes of a table at the head. */
  tableStats(tableId: number): Promise<{ rows: number; extents: number; sizeBytes: number }>;

  /**
   * Marks extents as dead from a new snapshot on (soft deletion: their bytes stay, older snapshots still read them).
   * Ids that are not alive in that table are ignored; resolves to what died. No snapshot is made when nothing did.
   */
  endExtents(tableId: number, extentIds: readonly string[]): Promise<ExtentSummary[]>;
  /** Extents of a table whose soft deletion happened strictly before `beforeMs`. */
  deadExtents(tableId: number, beforeMs: number): Promise<ExtentSummary[]>;
  /**
   * Forgets dead extents once their bytes are gone. Throws, and forgets none, when one of them is alive; unknown ids
   * are ignored, so that a deletion that was interrupted can be repeated.
   */
  forgetExtents(extentIds: readonly string[]): Promise<void>;

  /** Deletes ledger entries older than their time to live; resolves to how many. */
  sweepLedger(): Promise<number>;
  /** Walks the whole catalog and throws naming the first invariant that does not hold (see `invariants.ts`). */
  verify(): Promise<void>;
  /** Finishes the calls that are under way, then releases everything. Calls made after it fail (`unavailable`). */
  close(): Promise<void>;
}

export type DatabaseRecord = { id: number; name: string };

/** A column with its stable id, unique within the table and never reused. */
export type ColumnRecord = ColumnSpec & {
  id: number;
  /** The first snapshot that has it; absent for the columns that the table was created with. */
  sinceSnapshot?: number;
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
};

export type CreateTable = {
  database: string;
  name: string;
  columns: readonly ColumnSpec[];
  retentionDays?: number;
};

export type Snapshot = { id: number; committedAtMs: number };

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
  /** At most one of each kind for a column. Kept apart and never read as a whole: see `Catalog.extentsWithout`. */
  filters?: readonly ColumnFilter[];
};

export type ExtentRecord = Omit<NewExtent, "filters"> & {
  tableId: number;
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

/** What the filter of a column is asked. */
export type ColumnProbe = FilterProbe & { column: string };

/** A ledger entry to be made by a commit: the acknowledgement of one request but for its snapshot. */
export type NewLedgerEntry = { key: string; extentCount: number; rows: number; sizeBytes: number };

export type LedgerEntry = NewLedgerEntry & { snapshotId: number };

export type FlushCommit = {
  tableId: number;
  /** The schema version that the flush was sealed under. */
  schemaVersion: number;
  /** Columns the flush found that the table did not have under `schemaVersion`, in order of appearance. */
  newColumns: readonly ColumnSpec[];
  extents: readonly NewExtent[];
  ledger: readonly NewLedgerEntry[];
};

export type FlushOutcome =
  | { kind: "committed"; snapshot: Snapshot; schemaVersion: number }
  /**
   * The schema moved in a way that contradicts the flush: a column that it adds exists with another type, or no longer
   * fits under the column cap. Seal it again under the table as it is now. (A column added meanwhile with the same
   * name and type is no contradiction.)
   */
  | { kind: "schema_conflict" }
  /** These keys are in the ledger already; the flush must give up their rows and come back. */
  | { kind: "key_conflict"; entries: readonly LedgerEntry[] };
