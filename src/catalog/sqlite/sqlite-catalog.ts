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
  NewExtent,
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
import type { Clock } from "../../core/clock.ts";
import { EngineError, messageOf } from "../../core/errors.ts";
import { startOfIds } from "../../core/ids.ts";
import type { ColumnSpec } from "../../format/types.ts";
import type { EncodedExtent, EncodedFlush } from "./commit.ts";
import type { Connection } from "../../db/sqlite/connection.ts";
import { readDroppedAt, readDroppedTables } from "./drop.ts";
import { isBusy, toDatabaseError } from "../../db/sqlite/errors.ts";
import { toExtentRecords } from "./extents.ts";
import { findLedgerEntry } from "./ledger.ts";
import type { ServerLock } from "../../db/sqlite/lock.ts";
import { LateSync } from "../../db/sqlite/late-sync.ts";
import type { LogFile } from "../../db/sqlite/log-file.ts";
import type { OpenOptions } from "../../db/sqlite/open.ts";
import type { Reader } from "./reader.ts";
import { outcomeOf, readRecords, runRecords } from "../../db/sqlite/records.ts";
import { SchemaReader } from "./schema.ts";
import { findSnapshotAt, readHead, readOldestKept, readOldestSnapshot } from "./snapshots.ts";
import type { CatalogDatabase } from "../catalog-database.ts";
import type { ReadOptions, RecordRow, RecordStore, Statement, TransactOutcome } from "../../db/records.ts";
import type { SchemaUpkeep } from "../../db/schema-upkeep.ts";
import { localSignals } from "../../db/signals.ts";
import { CommitSignals } from "../commit-signals.ts";
import { encodeStats } from "../stats-encoding.ts";
import { openTransfer } from "./transfer-reader.ts";
import type { CatalogReader, SchemaNumbers } from "../transfer/transfer.ts";
import type { PartClient } from "../../db/sqlite/thread-client.ts";
import { readTotals } from "./totals.ts";
import type { Writer } from "./writer.ts";

/** Rows per transaction of deletions that may be large, so that commits get their turn in between. */
const DELETIONS_PER_TRANSACTION = 2_000;
const MARKS_PER_TRANSACTION = 1_000;

/** Some 10 ms of reading filters, so that the reads of other queries get their turn in between. */
const EXTENTS_PER_PROBING = 500;

/** How every part of one catalog is opened. */
export type OpenShared = Omit<OpenOptions, "part">;

/** The connection of the caller's thread, and the parts that have threads of their own. */
export type Parts = {
  open: OpenShared;
  lock: ServerLock | undefined;
  writer: PartClient<Writer>;
  reader: PartClient<Reader>;
  local: Connection;
  /** Syncs what `local` has committed. */
  log: Pick<LogFile, "sync" | "close">;
  /** How many migrations this program knows. */
  schema: SchemaNumbers;
  /** One more reader, for what takes long. Its death is its caller's alone: the catalog itself is well. */
  openVerifier: () => Promise<PartClient<Reader>>;
  upkeep: SchemaUpkeep;
};

/** The catalog over its parts, which `sqlite.ts` opens. Times are those of `clock`. */
export class SqliteCatalog implements CatalogDatabase {
  readonly records: RecordStore;
  readonly signals = localSignals();
  readonly upkeep: SchemaUpkeep;
  readonly #commitSignals: CommitSignals;
  readonly #parts: Parts;
  readonly #clock: Clock;
  readonly #onFailure: (reason: Error) => void;
  readonly #schema: SchemaReader;
  readonly #running = new Set<Promise<unknown>>();
  #closed: Promise<void> | undefined;
  #failure: Error | undefined;
  /** Of what was committed on this thread, which may be lost with the power until then. */
  readonly #lateSync: LateSync;

  /** @param onFailure is told once what the catalog cannot go on after, and has it `fail` */
  constructor(parts: Parts, clock: Clock, onFailure = (reason: Error) => this.fail(reason)) {
    this.#onFailure = onFailure;
    this.#parts = parts;
    this.upkeep = parts.upkeep;
    this.#clock = clock;
    this.#commitSignals = new CommitSignals(this.signals, clock, 0);
    this.#schema = new SchemaReader(parts.local);
    this.#lateSync = new LateSync(parts.log, (error) => this.#unsynced(error));
    this.records = {
      rows: (sql, values = [], options = {}) => this.#rows({ sql, values }, options),
      write: (statement) => this.#run(() => parts.writer.call("writeRecords", clock.nowMs(), statement)),
      transact: (statements, { early } = {}) =>
        early === true
          ? this.#transactHere(statements)
          : this.#run(() => parts.writer.call("transactRecords", clock.nowMs(), statements)),
    };
  }

  createDatabase(name: string): Promise<{ database: DatabaseRecord; created: boolean }> {
    return this.#run(() => this.#parts.writer.call("createDatabase", name));
  }

  database(name: string): Promise<DatabaseRecord | undefined> {
    return this.#lookUp(() => this.#schema.database(name));
  }

  databases(): Promise<DatabaseRecord[]> {
    return this.#run(() => this.#parts.reader.call("databases"));
  }

  createTable(request: CreateTable): Promise<{ table: TableRecord; created: boolean }> {
    return this.#run(() => this.#parts.writer.call("createTable", request));
  }

  table(database: string, name: string): Promise<TableRecord | undefined> {
    return this.#lookUp(() => this.#schema.table(database, name));
  }

  resolve(database: string, tables: readonly string[]): Promise<Resolution | undefined> {
    const { local } = this.#parts;
    return this.#lookUp(() =>
      local.read(() => {
        const known = this.#schema.database(database);
        if (known === undefined) return undefined;
        const found = tables.map((name) => this.#schema.table(database, name));
        return { database: known, head: readHead(local), tables: found };
      }),
    );
  }

  tables(database: string): Promise<TableRecord[]> {
    return this.#run(() => this.#parts.reader.call("tables", database));
  }

  allTables(): Promise<TableRecord[]> {
    return this.#run(() => this.#parts.reader.call("allTables"));
  }

  tableSummaries(database?: string): Promise<TableSummary[]> {
    return this.#run(() => this.#parts.reader.call("tableSummaries", database));
  }

  setRetention(tableId: number, days: number | undefined): Promise<TableRecord> {
    return this.#run(() => this.#parts.writer.call("setRetention", tableId, days));
  }

  widenColumns(tableId: number, names: readonly string[]): Promise<TableRecord> {
    return this.#run(() => this.#parts.writer.call("widenColumns", tableId, names));
  }

  setInferTypes(tableId: number, inferTypes: boolean | undefined): Promise<TableRecord> {
    return this.#run(() => this.#parts.writer.call("setInferTypes", tableId, inferTypes));
  }

  setOpenLag(tableId: number, secs: number | undefined): Promise<TableRecord> {
    return this.#run(() => this.#parts.writer.call("setOpenLag", tableId, secs));
  }

  setClusterBy(tableId: number, columns: readonly string[]): Promise<TableRecord> {
    return this.#run(() => this.#parts.writer.call("setClusterBy", tableId, columns));
  }

  addColumns(tableId: number, columns: readonly ColumnSpec[]): Promise<TableRecord> {
    return this.#run(() => this.#parts.writer.call("addColumns", tableId, columns));
  }

  schemaGeneration(): Promise<number> {
    return this.#lookUp(() => this.#schema.generation());
  }

  head(): Promise<Snapshot> {
    return this.#lookUp(() => readHead(this.#parts.local));
  }

  snapshots(limit: number): Promise<Snapshot[]> {
    return this.#run(() => this.#parts.reader.call("snapshots", limit));
  }

  snapshotAt(timeMs: number): Promise<Snapshot | undefined> {
    return this.#lookUp(() => findSnapshotAt(this.#parts.local, timeMs));
  }

  oldestSnapshot(tableId?: number): Promise<Snapshot> {
    return this.#lookUp(() => readOldestSnapshot(this.#parts.local, tableId));
  }

  oldestKeptSnapshot(tableId: number): Promise<Snapshot> {
    return this.#lookUp(() => readOldestKept(this.#parts.local, tableId));
  }

  expireSnapshots(before: number, lease?: Lease): Promise<Snapshot> {
    return this.#run(() => this.#parts.writer.call("expireSnapshots", this.#clock.nowMs(), before, lease));
  }

  expireTable(tableId: number, before: number): Promise<Snapshot> {
    return this.#run(() => this.#parts.writer.call("expireTable", this.#clock.nowMs(), tableId, before));
  }

  holdSnapshots(node: string, oldest: number, ttlMs: number): Promise<void> {
    return this.#run(() => this.#parts.writer.call("holdSnapshots", this.#clock.nowMs(), node, oldest, ttlMs));
  }

  releaseSnapshots(node: string): Promise<void> {
    return this.#run(() => this.#parts.writer.call("releaseSnapshots", node));
  }

  commit(flushes: readonly FlushCommit[], lease?: Lease): Promise<FlushOutcome[]> {
    return this.#run(async () => {
      if (flushes.length === 0) return [];
      const outcomes = await this.#parts.writer.call("commit", this.#clock.nowMs(), flushes.map(encodeFlush), lease);
      this.#commitSignals.committed(flushes, outcomes);
      return outcomes;
    });
  }

  lookUpKey(tableId: number, key: string): Promise<KeyLookUp> {
    return this.#lookUp(() => {
      const atMs = this.#clock.nowMs();
      return { entry: findLedgerEntry(this.#parts.local, tableId, key, atMs), atMs };
    });
  }

  committedStaged(ids: readonly string[]): Promise<string[]> {
    return this.#run(() => this.#parts.reader.call("committedStaged", ids));
  }

  sweepStaged(beforeMs: number): Promise<number> {
    return this.#sweep((limit) => this.#parts.writer.call("sweepStaged", beforeMs, limit));
  }

  extents(
    tableId: number,
    atSnapshot: number,
    range: TimeRange = {},
    statsOf?: readonly string[],
  ): Promise<ExtentRecord[]> {
    return this.#run(async () => {
      const extents: ExtentRecord[] = [];
      await this.#parts.reader.stream("extents", [tableId, atSnapshot, range, statsOf], (part) => {
        for (const extent of toExtentRecords(part)) extents.push(extent);
      });
      return extents;
    });
  }

  extentsWithout(tableId: number, extentIds: readonly string[], probes: readonly ColumnProbe[]): Promise<string[]> {
    return this.#run(async () => {
      const without: string[] = [];
      if (probes.length === 0) return without;
      for (const batch of batchesOf(extentIds, EXTENTS_PER_PROBING)) {
        without.push(...(await this.#parts.reader.call("extentsWithout", tableId, batch, probes)));
      }
      return without;
    });
  }

  planScan(request: ScanRequest): Promise<ScanPlan> {
    return this.#run(async () => {
      let plan: ScanPlan | undefined;
      await this.#parts.reader.stream("planScan", [request], (part) => {
        if (plan === undefined) plan = part;
        else for (const extent of part.extents) plan.extents.push(extent);
      });
      if (plan === undefined) throw new Error("the catalog's reader gave no plan");
      return plan;
    });
  }

  additions(request: AdditionsRequest): Promise<Additions> {
    return this.#run(async () => {
      const additions: Additions = { extents: [], upTo: request.upTo };
      await this.#parts.reader.stream("additions", [request], (part) => {
        additions.upTo = part.upTo;
        for (const extent of part.extents) additions.extents.push(extent);
      });
      return additions;
    });
  }

  fileChanges(tableId: number, after: number, also: readonly number[] = []): Promise<FileChange[]> {
    return this.#run(() => this.#parts.reader.call("fileChanges", tableId, after, also));
  }

  tableChanges(tableIds: readonly number[], from: number): Promise<TableChange[]> {
    return this.#run(() => this.#parts.reader.call("tableChanges", tableIds, from));
  }

  goneExtents(extentIds: readonly string[]): Promise<string[]> {
    return this.#run(async () => {
      const gone: string[] = [];
      for (const batch of batchesOf(extentIds, EXTENTS_PER_PROBING)) {
        gone.push(...(await this.#parts.reader.call("goneExtents", batch)));
      }
      return gone;
    });
  }

  tableStats(tableId: number): Promise<{ rows: number; extents: number; sizeBytes: number }> {
    return this.#lookUp(() => readTotals(this.#parts.local, tableId));
  }

  misfits(tableId: number, extentIds?: readonly string[]): Promise<ReadonlyMap<number, number>> {
    return this.#run(async () => new Map(await this.#parts.reader.call("misfits", tableId, extentIds)));
  }

  endExtents(tableId: number, extentIds: readonly string[], lease?: Lease): Promise<ExtentSummary[]> {
    return this.#run(async () => {
      if (extentIds.length === 0) return [];
      return await this.#parts.writer.call("endExtents", this.#clock.nowMs(), tableId, extentIds, lease);
    });
  }

  deadExtents(tableId: number, beforeMs: number, limit = -1): Promise<ExtentSummary[]> {
    return this.#collect((onPart) => this.#parts.reader.stream("deadExtents", [tableId, beforeMs, limit], onPart));
  }

  forgetExtents(extentIds: readonly string[], lease?: Lease): Promise<string[]> {
    return this.#run(async () => {
      const forgotten: string[] = [];
      const batches = batchesOf(extentIds, DELETIONS_PER_TRANSACTION);
      // All are looked at before any is forgotten; what may be forgotten once always may.
      if (batches.length > 1) {
        for (const batch of batches) await this.#parts.writer.call("refuseReadableExtents", batch);
      }
      for (const batch of batches) {
        forgotten.push(...(await this.#parts.writer.call("forgetExtents", this.#clock.nowMs(), batch, lease)));
      }
      return forgotten;
    });
  }

  expiredExtents(tableId: number, beforeMs: number, limit: number): Promise<ExtentSummary[]> {
    const beforeNs = BigInt(Math.floor(beforeMs)) * 1_000_000n;
    return this.#collect((onPart) => this.#parts.reader.stream("expiredExtents", [tableId, beforeNs, limit], onPart));
  }

  mergeExtents(merge: ExtentMerge): Promise<Snapshot | undefined> {
    return this.#run(async () => {
      const encoded = { ...merge, outputs: merge.outputs.map(encodeExtent) };
      return await this.#parts.writer.call("mergeExtents", this.#clock.nowMs(), encoded);
    });
  }

  deleteRows(deletion: RowDeletion): Promise<Snapshot | undefined> {
    return this.#run(async () => {
      const groups = deletion.groups.map((group) => ({ ...group, outputs: group.outputs.map(encodeExtent) }));
      return await this.#parts.writer.call("deleteRows", this.#clock.nowMs(), { ...deletion, groups });
    });
  }

  dropTable(tableId: number, also: readonly Statement[] = []): Promise<Dropped | undefined> {
    return this.#run(() => this.#parts.writer.call("dropTable", this.#clock.nowMs(), tableId, also));
  }

  dropDatabase(databaseId: number, also: readonly Statement[] = []): Promise<Dropped | undefined> {
    return this.#run(() => this.#parts.writer.call("dropDatabase", this.#clock.nowMs(), databaseId, also));
  }

  droppedTables(): Promise<DroppedTable[]> {
    return this.#lookUp(() => readDroppedTables(this.#parts.local));
  }

  droppedAt(database: string, table: string): Promise<number | undefined> {
    return this.#lookUp(() => readDroppedAt(this.#parts.local, database, table));
  }

  forgetTable(tableId: number): Promise<boolean> {
    return this.#run(() => this.#parts.writer.call("forgetTable", tableId));
  }

  crowdedDays(request: { belowBytes: number; minExtents: number; limit: number }): Promise<CrowdedDay[]> {
    return this.#run(() => this.#parts.reader.call("crowdedDays", request));
  }

  unpublishedDays(request: UnpublishedRequest): Promise<UnpublishedDay[]> {
    return this.#run(() => this.#parts.reader.call("unpublishedDays", request));
  }

  markPendingDeletion(extentIds: readonly string[]): Promise<string[]> {
    return this.#run(async () => {
      const marked: string[] = [];
      for (const batch of batchesOf(extentIds, MARKS_PER_TRANSACTION)) {
        marked.push(...(await this.#parts.writer.call("markPendingDeletion", batch)));
      }
      return marked;
    });
  }

  acquireLease(name: string, holder: string, ttlMs: number): Promise<Lease | undefined> {
    return this.#run(() => this.#parts.writer.call("acquireLease", this.#clock.nowMs(), name, holder, ttlMs));
  }

  releaseLease(lease: Lease): Promise<void> {
    return this.#run(() => this.#parts.writer.call("releaseLease", lease));
  }

  nowMs(): Promise<number> {
    return this.#lookUp(() => this.#clock.nowMs());
  }

  sweepLedger(asOfMs = Infinity): Promise<number> {
    const endedByMs = Math.min(this.#clock.nowMs(), asOfMs);
    return this.#sweep((limit) => this.#parts.writer.call("sweepLedger", endedByMs, limit));
  }

  sweepSnapshots(most: number): Promise<number> {
    return this.#sweep((limit) => this.#parts.writer.call("sweepSnapshots", limit), most);
  }

  sweepPendingDeletions(madeBeforeMs: number, most: number): Promise<number> {
    const before = startOfIds(madeBeforeMs);
    return this.#sweep((limit) => this.#parts.writer.call("sweepPendingDeletions", before, limit), most);
  }

  verify(): Promise<void> {
    return this.#run(async () => {
      const verifier = await this.#parts.openVerifier();
      try {
        await verifier.call("verify");
        await verifier.close();
      } finally {
        await verifier.terminate();
      }
    });
  }

  openReader(): Promise<CatalogReader> {
    return this.#run(async () => openTransfer(await this.#parts.openVerifier(), this.#parts.schema));
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Every call from now on fails; those that wait for a thread are rejected with the reason. */
  fail(reason: Error): void {
    this.#failure ??= reason;
    this.#parts.writer.fail(reason);
    this.#parts.reader.fail(reason);
  }

  // The writer goes last of the connections: the last one to close folds the log into the file, and may write.
  async #close(): Promise<void> {
    const { local, log, reader, writer, lock } = this.#parts;
    await Promise.allSettled(this.#running);
    await Promise.allSettled([this.#lateSync.durable()]);
    try {
      log.close();
      local.close();
      await reader.close();
      await writer.close();
    } finally {
      await Promise.all([reader.terminate(), writer.terminate()]);
      lock?.release();
    }
  }

  /** Deletes at most so many, in transactions of bounded size, until one finds less than it may delete. */
  #sweep(deleteSome: (limit: number) => Promise<number>, most = Infinity): Promise<number> {
    return this.#run(async () => {
      for (let swept = 0; ;) {
        const limit = Math.min(DELETIONS_PER_TRANSACTION, most - swept);
        const count = await deleteSome(limit);
        swept += count;
        if (count < limit || swept >= most) return swept;
      }
    });
  }

  #collect(stream: (onPart: (part: ExtentSummary[]) => void) => Promise<void>): Promise<ExtentSummary[]> {
    return this.#run(async () => {
      const all: ExtentSummary[] = [];
      await stream((part) => {
        for (const extent of part) all.push(extent);
      });
      return all;
    });
  }

  /** On this thread, unless somebody else is writing: that takes less than to hand it to the other one and back. */
  #transactHere(statements: readonly Statement[]): Promise<TransactOutcome> {
    return this.#run(async () => {
      const nowMs = this.#clock.nowMs();
      const outcome = this.#writeHere(nowMs, statements);
      if (outcome === undefined) return await this.#parts.writer.call("transactRecords", nowMs, statements);
      if (!outcome.done) return outcome;
      this.#lateSync.committed();
      return { ...outcome, durable: () => this.#track(this.#lateSync.durable()) };
    });
  }

  /** Undefined, and nothing has happened, while somebody else is writing. */
  #writeHere(nowMs: number, statements: readonly Statement[]): TransactOutcome | undefined {
    const { local, open } = this.#parts;
    try {
      return outcomeOf(() => local.writeAtOnce(() => runRecords(local, nowMs, statements)));
    } catch (error) {
      if (isBusy(error)) return undefined;
      throw toDatabaseError(error, open.path);
    }
  }

  /** What could not be synced may be lost, though a later sync may not say so. */
  #unsynced(error: unknown): void {
    // It may have failed for another reason before.
    if (this.#failure !== undefined) return;
    this.#onFailure(new Error(`a commit was not synced: ${messageOf(error)}`, { cause: error }));
  }

  /** What is read is durable when it is shown. */
  #rows(statement: Pick<Statement, "sql" | "values">, { early }: ReadOptions): Promise<RecordRow[]> {
    const nowMs = this.#clock.nowMs();
    const reading = this.#lookUp(() => readRecords(this.#parts.local, nowMs, statement));
    if (early === true || this.#lateSync.isDurable) return reading;
    return this.#track(Promise.all([reading, this.#lateSync.durable()]).then(([rows]) => rows));
  }

  #run<T>(work: () => Promise<T>): Promise<T> {
    const refusal = this.#refusal();
    return refusal === undefined ? this.#track(work()) : Promise.reject(refusal);
  }

  /** `close` waits for it. */
  #track<T>(running: Promise<T>): Promise<T> {
    this.#running.add(running);
    void Promise.allSettled([running]).then(() => this.#running.delete(running));
    return running;
  }

  #lookUp<T>(work: () => T): Promise<T> {
    try {
      const refusal = this.#refusal();
      return refusal === undefined ? Promise.resolve(work()) : Promise.reject(refusal);
    } catch (error) {
      return Promise.reject(toDatabaseError(error, this.#parts.open.path));
    }
  }

  #refusal(): EngineError | undefined {
    if (this.#closed !== undefined) return new EngineError("unavailable", "the catalog is closed");
    if (this.#failure === undefined) return undefined;
    return new EngineError("unavailable", `the catalog has failed: ${this.#failure.message}`, { cause: this.#failure });
  }
}

function encodeFlush(flush: FlushCommit): EncodedFlush {
  return { ...flush, extents: flush.extents.map(encodeExtent) };
}

function encodeExtent(extent: NewExtent): EncodedExtent {
  return { ...extent, stats: encodeStats(extent.stats) };
}

function batchesOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}
