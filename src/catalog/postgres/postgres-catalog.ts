import { EngineError } from "../../core/errors.ts";
import type { ColumnSpec } from "../../format/types.ts";
import type {
  Additions,
  AdditionsRequest,
  ColumnProbe,
  CreateTable,
  CrowdedDay,
  DatabaseRecord,
  Dropped,
  DroppedTable,
  ExtentMerge,
  ExtentRecord,
  ExtentSummary,
  FileChange,
  TableChange,
  FlushCommit,
  FlushOutcome,
  Lease,
  KeyLookUp,
  Resolution,
  RowDeletion,
  ScanPlan,
  ScanRequest,
  Snapshot,
  TableRecord,
  TableSummary,
  TimeRange,
  UnpublishedDay,
  UnpublishedRequest,
} from "../catalog.ts";
import type { CatalogDatabase } from "../catalog-database.ts";
import type { RecordStore, Statement } from "../../db/records.ts";
import type { Clock } from "../../core/clock.ts";
import type { SchemaUpkeep } from "../../db/schema-upkeep.ts";
import type { Signals } from "../../db/signals.ts";
import { CommitSignals } from "../commit-signals.ts";
import type { CatalogReader } from "../transfer/transfer.ts";
import type { TableTotals } from "../invariants.ts";
import { SnapshotWriter } from "./commit.ts";
import type { Database } from "../../db/postgres/database.ts";
import { forgetTable, readDroppedAt, readDroppedTables } from "./drops.ts";
import { markPendingDeletion, findCrowdedDays, findUnpublishedDays, forgetExtents, goneExtents } from "./duties.ts";
import { toTotals } from "../rows.ts";
import { fileChangesSql, toFileChange } from "../file-changes.ts";
import { tableChangesSql, toTableChange } from "../table-changes.ts";
import { findDeadExtents, findExpiredExtents } from "./extents.ts";
import { FilterReader } from "./filters.ts";
import { findMisfits } from "./misfits.ts";
import { acquireLease, releaseLease } from "./leases.ts";
import { committedStaged, lookUpKey } from "./ledger.ts";
import { PostgresRecords } from "../../db/postgres/records.ts";
import { ScanPlanner } from "./scan.ts";
import { SchemaWriter } from "./schema-writer.ts";
import { SchemaReader } from "./schema.ts";
import { findSnapshotAt, Horizon, readHead, readSnapshots } from "./snapshots.ts";
import { sweepPendingDeletions, sweepLedger, sweepSnapshots, sweepStaged } from "./sweeps.ts";
import { verifyCatalog } from "./verify.ts";

export type PostgresCatalogParts = {
  database: Database;
  signals: Signals;
  upkeep: SchemaUpkeep;
  clock: Clock;
  /** Opens a session of its own that reads the whole catalog. */
  openReader: () => Promise<CatalogReader>;
  /** Ends what the database works with. */
  release: () => Promise<void>;
};

const FILE_CHANGES = fileChangesSql({
  prefix: "engine.",
  table: "$1::bigint",
  after: "$2::bigint",
  also: "SELECT value::bigint AS id FROM json_array_elements_text($3::text::json)",
});

const TABLE_CHANGES = tableChangesSql({
  prefix: "engine.",
  tables: "SELECT value::bigint FROM json_array_elements_text($1::text::json)",
  from: "$2::bigint",
});

/** A signal is a transaction, and every session that listens hears it. */
const COMMIT_SIGNAL_GAP_MS = 20;

/**
 * The catalog of a cluster: a PostgreSQL database that all nodes share. Every call asks the primary, so what one node
 * acknowledged every node shows; what is kept in memory is what never changes, or is brought up to date by a number
 * read from the database.
 */
export class PostgresCatalog implements CatalogDatabase {
  readonly records: RecordStore;
  readonly signals: Signals;
  readonly upkeep: SchemaUpkeep;
  readonly #release: () => Promise<void>;
  readonly #openReader: () => Promise<CatalogReader>;
  readonly #database: Database;
  readonly #schema: SchemaReader;
  readonly #schemaWriter: SchemaWriter;
  readonly #snapshots: SnapshotWriter;
  readonly #horizon: Horizon;
  readonly #scans: ScanPlanner;
  readonly #filters: FilterReader;
  readonly #commitSignals: CommitSignals;
  readonly #running = new Set<Promise<unknown>>();
  #closed: Promise<void> | undefined;

  constructor({ database, signals, upkeep, clock, openReader, release }: PostgresCatalogParts) {
    this.signals = signals;
    this.upkeep = upkeep;
    this.#commitSignals = new CommitSignals(signals, clock, COMMIT_SIGNAL_GAP_MS);
    this.#release = release;
    this.#openReader = openReader;
    this.#database = database;
    this.#schema = new SchemaReader(database);
    this.#schemaWriter = new SchemaWriter(database, this.#schema);
    this.#snapshots = new SnapshotWriter(database, this.#schema);
    this.#horizon = new Horizon(database);
    this.#scans = new ScanPlanner(database, this.#schema);
    this.#filters = new FilterReader(database, this.#schema);
    const records = new PostgresRecords(database);
    this.records = {
      rows: (sql, values) => this.#run(() => records.rows(sql, values)),
      write: (statement) => this.#run(() => records.write(statement)),
      transact: (statements) => this.#run(() => records.transact(statements)),
    };
  }

  createDatabase(name: string): Promise<{ database: DatabaseRecord; created: boolean }> {
    return this.#run(() => this.#schemaWriter.createDatabase(name));
  }

  database(name: string): Promise<DatabaseRecord | undefined> {
    return this.#run(() => this.#schema.database(name));
  }

  databases(): Promise<DatabaseRecord[]> {
    return this.#run(() => this.#schema.databases());
  }

  createTable(request: CreateTable): Promise<{ table: TableRecord; created: boolean }> {
    return this.#run(() => this.#schemaWriter.createTable(request));
  }

  table(database: string, name: string): Promise<TableRecord | undefined> {
    return this.#run(() => this.#schema.table(database, name));
  }

  resolve(database: string, tables: readonly string[]): Promise<Resolution | undefined> {
    return this.#run(() => this.#schema.resolve(database, tables));
  }

  tables(database: string): Promise<TableRecord[]> {
    return this.#run(() => this.#schema.tables(database));
  }

  allTables(): Promise<TableRecord[]> {
    return this.#run(() => this.#schema.allTables());
  }

  tableSummaries(database?: string): Promise<TableSummary[]> {
    return this.#run(() => this.#schema.summaries(database));
  }

  setRetention(tableId: number, days: number | undefined): Promise<TableRecord> {
    return this.#run(() => this.#schemaWriter.setRetention(tableId, days));
  }

  widenColumns(tableId: number, names: readonly string[]): Promise<TableRecord> {
    return this.#run(() => this.#schemaWriter.widenColumns(tableId, names));
  }

  setInferTypes(tableId: number, inferTypes: boolean | undefined): Promise<TableRecord> {
    return this.#run(() => this.#schemaWriter.setInferTypes(tableId, inferTypes));
  }

  setOpenLag(tableId: number, secs: number | undefined): Promise<TableRecord> {
    return this.#run(() => this.#schemaWriter.setOpenLag(tableId, secs));
  }

  setClusterBy(tableId: number, columns: readonly string[]): Promise<TableRecord> {
    return this.#run(() => this.#schemaWriter.setClusterBy(tableId, columns));
  }

  addColumns(tableId: number, columns: readonly ColumnSpec[]): Promise<TableRecord> {
    return this.#run(() => this.#schemaWriter.addColumns(tableId, columns));
  }

  schemaGeneration(): Promise<number> {
    return this.#run(() => this.#schema.generation());
  }

  head(): Promise<Snapshot> {
    return this.#run(() => readHead(this.#database));
  }

  snapshots(limit: number): Promise<Snapshot[]> {
    return this.#run(() => readSnapshots(this.#database, limit));
  }

  snapshotAt(timeMs: number): Promise<Snapshot | undefined> {
    return this.#run(() => findSnapshotAt(this.#database, timeMs));
  }

  oldestSnapshot(tableId?: number): Promise<Snapshot> {
    return this.#run(() => this.#horizon.oldest(tableId));
  }

  oldestKeptSnapshot(tableId: number): Promise<Snapshot> {
    return this.#run(() => this.#horizon.oldestKept(tableId));
  }

  expireSnapshots(before: number, lease?: Lease): Promise<Snapshot> {
    return this.#run(() => this.#horizon.expireSnapshots(before, lease));
  }

  expireTable(tableId: number, before: number): Promise<Snapshot> {
    return this.#run(() => this.#horizon.expireTable(tableId, before));
  }

  holdSnapshots(node: string, oldest: number, ttlMs: number): Promise<void> {
    return this.#run(() => this.#horizon.hold(node, oldest, ttlMs));
  }

  releaseSnapshots(node: string): Promise<void> {
    return this.#run(() => this.#horizon.release(node));
  }

  commit(flushes: readonly FlushCommit[], lease?: Lease): Promise<FlushOutcome[]> {
    return this.#run(async () => {
      if (flushes.length === 0) return [];
      const outcomes = await this.#snapshots.commit(flushes, lease);
      this.#commitSignals.committed(flushes, outcomes);
      return outcomes;
    });
  }

  lookUpKey(tableId: number, key: string): Promise<KeyLookUp> {
    return this.#run(() => lookUpKey(this.#database, tableId, key));
  }

  committedStaged(ids: readonly string[]): Promise<string[]> {
    return this.#run(() => committedStaged(this.#database, ids));
  }

  sweepStaged(beforeMs: number): Promise<number> {
    return this.#run(() => sweepStaged(this.#database, beforeMs));
  }

  extents(
    tableId: number,
    atSnapshot: number,
    range: TimeRange = {},
    statsOf?: readonly string[],
  ): Promise<ExtentRecord[]> {
    return this.#run(() => this.#scans.extents(tableId, atSnapshot, range, statsOf));
  }

  extentsWithout(tableId: number, extentIds: readonly string[], probes: readonly ColumnProbe[]): Promise<string[]> {
    return this.#run(() => this.#filters.extentsWithout(tableId, extentIds, probes));
  }

  planScan(request: ScanRequest): Promise<ScanPlan> {
    return this.#run(() => this.#scans.plan(request));
  }

  additions(request: AdditionsRequest): Promise<Additions> {
    return this.#run(() => this.#scans.additions(request));
  }

  fileChanges(tableId: number, after: number, also: readonly number[] = []): Promise<FileChange[]> {
    return this.#run(async () => {
      const rows = await this.#database.rows(FILE_CHANGES, [tableId, after, JSON.stringify(also)]);
      return rows.map(toFileChange);
    });
  }

  tableChanges(tableIds: readonly number[], from: number): Promise<TableChange[]> {
    return this.#run(async () => {
      const rows = await this.#database.rows(TABLE_CHANGES, [JSON.stringify(tableIds), from]);
      return rows.map(toTableChange);
    });
  }

  goneExtents(extentIds: readonly string[]): Promise<string[]> {
    return this.#run(() => goneExtents(this.#database, extentIds));
  }

  tableStats(tableId: number): Promise<TableTotals> {
    return this.#run(async () => {
      const sql = "SELECT row_count, extent_count, size_bytes FROM engine.table_totals WHERE table_id = $1";
      const [row] = await this.#database.rows(sql, [tableId]);
      return toTotals(row);
    });
  }

  misfits(tableId: number, extentIds?: readonly string[]): Promise<ReadonlyMap<number, number>> {
    return this.#run(() => findMisfits(this.#database, tableId, extentIds));
  }

  endExtents(tableId: number, extentIds: readonly string[], lease?: Lease): Promise<ExtentSummary[]> {
    return this.#run(() => this.#snapshots.endExtents(tableId, extentIds, lease));
  }

  deadExtents(tableId: number, beforeMs: number, limit?: number): Promise<ExtentSummary[]> {
    return this.#run(() => findDeadExtents(this.#database, tableId, beforeMs, limit));
  }

  forgetExtents(extentIds: readonly string[], lease?: Lease): Promise<string[]> {
    return this.#run(async () => {
      const forgotten = await forgetExtents(this.#database, extentIds, lease);
      this.#filters.forget(forgotten);
      return forgotten;
    });
  }

  expiredExtents(tableId: number, beforeMs: number, limit: number): Promise<ExtentSummary[]> {
    return this.#run(() => findExpiredExtents(this.#database, tableId, beforeMs, limit));
  }

  mergeExtents(merge: ExtentMerge): Promise<Snapshot | undefined> {
    return this.#run(() => this.#snapshots.mergeExtents(merge));
  }

  deleteRows(deletion: RowDeletion): Promise<Snapshot | undefined> {
    return this.#run(() => this.#snapshots.deleteRows(deletion));
  }

  dropTable(tableId: number, also: readonly Statement[] = []): Promise<Dropped | undefined> {
    return this.#run(() => this.#snapshots.drop({ tableId }, also));
  }

  dropDatabase(databaseId: number, also: readonly Statement[] = []): Promise<Dropped | undefined> {
    return this.#run(() => this.#snapshots.drop({ databaseId }, also));
  }

  droppedTables(): Promise<DroppedTable[]> {
    return this.#run(() => readDroppedTables(this.#database));
  }

  droppedAt(database: string, table: string): Promise<number | undefined> {
    return this.#run(() => readDroppedAt(this.#database, database, table));
  }

  forgetTable(tableId: number): Promise<boolean> {
    return this.#run(() => forgetTable(this.#database, tableId));
  }

  crowdedDays(request: { belowBytes: number; minExtents: number; limit: number }): Promise<CrowdedDay[]> {
    return this.#run(() => findCrowdedDays(this.#database, request));
  }

  unpublishedDays(request: UnpublishedRequest): Promise<UnpublishedDay[]> {
    return this.#run(() => findUnpublishedDays(this.#database, request));
  }

  markPendingDeletion(extentIds: readonly string[]): Promise<string[]> {
    return this.#run(() => markPendingDeletion(this.#database, extentIds));
  }

  acquireLease(name: string, holder: string, ttlMs: number): Promise<Lease | undefined> {
    return this.#run(() => acquireLease(this.#database, { name, holder, ttlMs }));
  }

  releaseLease(lease: Lease): Promise<void> {
    return this.#run(() => releaseLease(this.#database, lease));
  }

  nowMs(): Promise<number> {
    return this.#run(async () => {
      const [row] = await this.#database.rows("SELECT engine.now_ms($1::bigint) AS ms", [this.#database.now]);
      return Number(row?.["ms"]);
    });
  }

  sweepLedger(asOfMs?: number): Promise<number> {
    return this.#run(() => sweepLedger(this.#database, asOfMs));
  }

  sweepSnapshots(limit: number): Promise<number> {
    return this.#run(() => sweepSnapshots(this.#database, limit));
  }

  sweepPendingDeletions(madeBeforeMs: number, limit: number): Promise<number> {
    return this.#run(() => sweepPendingDeletions(this.#database, madeBeforeMs, limit));
  }

  verify(): Promise<void> {
    return this.#run(() => this.#database.read(verifyCatalog, true));
  }

  openReader(): Promise<CatalogReader> {
    return this.#run(this.#openReader);
  }

  close(): Promise<void> {
    this.#closed ??= (async () => {
      await Promise.allSettled(this.#running);
      await this.#release();
    })();
    return this.#closed;
  }

  #run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed !== undefined) return Promise.reject(new EngineError("unavailable", "the catalog is closed"));
    const running = work();
    this.#running.add(running);
    void Promise.allSettled([running]).then(() => this.#running.delete(running));
    return running;
  }
}
