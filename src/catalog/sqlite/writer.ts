import type {
  CreateTable,
  DatabaseRecord,
  Dropped,
  ExtentSummary,
  FlushOutcome,
  Lease,
  Snapshot,
  TableRecord,
} from "../catalog.ts";
import { EngineError } from "../../core/errors.ts";
import { checkName, checkNewDatabase, foldName } from "../../core/names.ts";
import type { ColumnSpec } from "../../format/types.ts";
import { clusterColumns, encodeClusterBy } from "../cluster-columns.ts";
import { liveExtentsAreNotForgotten, readableExtentsAreNotForgotten } from "../invariants.ts";
import {
  checkOpenLag,
  checkRetention,
  columnsToCreate,
  missingColumns,
  vectorOnRows,
  vectorsAmong,
} from "../new-columns.ts";
import type { RecordRow, Statement, TransactOutcome } from "../../db/records.ts";
import { addNewColumns, bumpGeneration, insertColumns, widenColumns } from "./columns.ts";
import { commitFlushes, type EncodedFlush } from "./commit.ts";
import { markPendingDeletion, sweepPendingDeletionIds } from "./pending-deletion.ts";
import type { Connection } from "../../db/sqlite/connection.ts";
import { deleteRows, type EncodedDeletion } from "./delete-rows.ts";
import { dropDatabase, dropTable, forgetTable } from "./drop.ts";
import { endExtent } from "./extents.ts";
import { FarValues } from "./far-values.ts";
import { expireSnapshots, expireTable, holdSnapshots, releaseSnapshots } from "./holds.ts";
import { acquireLease, checkLease, releaseLease } from "./leases.ts";
import { sweepLedgerEntries } from "./ledger.ts";
import { mergeExtents, type EncodedMerge } from "./merge.ts";
import { outcomeOf, readRecords, runRecords } from "../../db/sqlite/records.ts";
import { SchemaReader } from "./schema.ts";
import { insertSnapshot, nextSnapshot, readOldestKept, sweepUnreadableSnapshots } from "./snapshots.ts";
import { sweepStagedEntries } from "./staged.ts";
import { addToTotals, readTotals } from "./totals.ts";

/**
 * Everything that writes, on the one connection that does. Each call is one transaction. Times come from the caller's
 * clock, so that a test's clock reaches this thread.
 */
export class Writer {
  readonly #connection: Connection;
  readonly #schema: SchemaReader;
  readonly #far: FarValues;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#schema = new SchemaReader(connection);
    this.#far = new FarValues(connection);
  }

  createDatabase(name: string): { database: DatabaseRecord; created: boolean } {
    checkName("database", name);
    return this.#write(() => this.#ensureDatabase(name));
  }

  createTable(request: CreateTable): { table: TableRecord; created: boolean } {
    checkName("database", request.database);
    checkName("table", request.name);
    checkRetention(request.retentionDays);
    checkOpenLag(request.openLagSecs);
    return this.#write(() => {
      const existing = this.#schema.table(request.database, request.name);
      if (existing !== undefined) return { table: existing, created: false };
      const columns = columnsToCreate(request.columns);
      const clusterBy = clusterColumns(columns, request.clusterBy ?? []);
      const { database } = this.#ensureDatabase(request.database, request.wasThere);
      return { table: this.#insertTable(database.id, { ...request, columns, clusterBy }), created: true };
    });
  }

  addColumns(tableId: number, columns: readonly ColumnSpec[]): TableRecord {
    return this.#write(() => {
      const table = this.#schema.tableById(tableId);
      if (table === undefined) throw new EngineError("table_not_found", `there is no table with the id ${tableId}`);
      const missing = missingColumns(table, columns);
      if (missing.kind === "conflict") throw missing.error;
      const needsEmpty = vectorsAmong(missing.columns).length > 0;
      if (needsEmpty && readTotals(this.#connection, tableId).rows > 0) throw vectorOnRows(table, missing.columns);
      return addNewColumns(this.#connection, this.#schema, table, missing.columns);
    });
  }

  widenColumns(tableId: number, names: readonly string[]): TableRecord {
    return this.#write(() => {
      const table = this.#schema.tableById(tableId);
      if (table === undefined) throw new EngineError("table_not_found", `there is no table with the id ${tableId}`);
      return widenColumns(this.#connection, this.#schema, table, names, this.#far);
    });
  }

  setRetention(tableId: number, days: number | undefined): TableRecord {
    checkRetention(days);
    return this.#set(tableId, "retention_days", days ?? null);
  }

  setInferTypes(tableId: number, inferTypes: boolean | undefined): TableRecord {
    return this.#set(tableId, "infer_types", toFlag(inferTypes));
  }

  setOpenLag(tableId: number, secs: number | undefined): TableRecord {
    checkOpenLag(secs);
    return this.#set(tableId, "open_lag_secs", secs ?? null);
  }

  #set(tableId: number, column: "retention_days" | "infer_types" | "open_lag_secs", value: number | null): TableRecord {
    return this.#write(() => {
      const known = this.#schema.tableById(tableId);
      if (known === undefined) throw new EngineError("table_not_found", `there is no table with the id ${tableId}`);
      this.#connection.run(`UPDATE tables SET ${column} = ? WHERE id = ?`, value, tableId);
      bumpGeneration(this.#connection);
      return this.#schema.tableById(tableId) ?? known;
    });
  }

  setClusterBy(tableId: number, columns: readonly string[]): TableRecord {
    return this.#write(() => {
      const table = this.#schema.tableById(tableId);
      if (table === undefined) throw new EngineError("table_not_found", `there is no table with the id ${tableId}`);
      const clusterBy = clusterColumns(table.columns, columns);
      this.#connection.run("UPDATE tables SET cluster_by = ? WHERE id = ?", encodeClusterBy(clusterBy), tableId);
      bumpGeneration(this.#connection);
      return { ...table, clusterBy };
    });
  }

  commit(nowMs: number, flushes: readonly EncodedFlush[], lease?: Lease): FlushOutcome[] {
    return this.#leased(nowMs, lease, () => commitFlushes(this.#connection, this.#schema, nowMs, flushes));
  }

  mergeExtents(nowMs: number, merge: EncodedMerge): Snapshot | undefined {
    return this.#leased(nowMs, merge.lease, () => mergeExtents(this.#connection, this.#schema, nowMs, merge));
  }

  deleteRows(nowMs: number, deletion: EncodedDeletion): Snapshot | undefined {
    return this.#write(() => deleteRows(this.#connection, this.#schema, nowMs, deletion));
  }

  dropTable(nowMs: number, tableId: number, also: readonly Statement[]): Dropped | undefined {
    return this.#write(() => dropTable(this.#connection, tableId, { nowMs, also }));
  }

  dropDatabase(nowMs: number, databaseId: number, also: readonly Statement[]): Dropped | undefined {
    return this.#write(() => dropDatabase(this.#connection, databaseId, { nowMs, also }));
  }

  forgetTable(tableId: number): boolean {
    return this.#write(() => forgetTable(this.#connection, tableId));
  }

  expireSnapshots(nowMs: number, before: number, lease?: Lease): Snapshot {
    return this.#leased(nowMs, lease, () => expireSnapshots(this.#connection, nowMs, before));
  }

  expireTable(nowMs: number, tableId: number, before: number): Snapshot {
    return this.#write(() => expireTable(this.#connection, nowMs, tableId, before));
  }

  holdSnapshots(nowMs: number, node: string, oldest: number, ttlMs: number): void {
    this.#write(() => holdSnapshots(this.#connection, { node, oldest, expiresAtMs: nowMs + ttlMs }));
  }

  releaseSnapshots(node: string): void {
    this.#write(() => releaseSnapshots(this.#connection, node));
  }

  acquireLease(nowMs: number, name: string, holder: string, ttlMs: number): Lease | undefined {
    return this.#write(() => acquireLease(this.#connection, { name, holder, ttlMs, nowMs }));
  }

  releaseLease(lease: Lease): void {
    this.#write(() => releaseLease(this.#connection, lease));
  }

  markPendingDeletion(extentIds: readonly string[]): string[] {
    return this.#write(() => markPendingDeletion(this.#connection, extentIds));
  }

  endExtents(nowMs: number, tableId: number, extentIds: readonly string[], lease?: Lease): ExtentSummary[] {
    return this.#leased(nowMs, lease, () => {
      const snapshot = nextSnapshot(this.#connection, nowMs);
      const end = { snapshotId: snapshot.id, deletedAtMs: snapshot.committedAtMs };
      const ended = extentIds.flatMap((id) => endExtent(this.#connection, tableId, id, end) ?? []);
      if (ended.length === 0) return ended;
      insertSnapshot(this.#connection, snapshot);
      addToTotals(this.#connection, tableId, {
        rows: -ended.reduce((sum, { rows }) => sum + rows, 0),
        extents: -ended.length,
        sizeBytes: -ended.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      });
      return ended;
    });
  }

  /** Throws when one of the extents is alive or readable. What is dead, unreadable or unknown stays so. */
  refuseReadableExtents(extentIds: readonly string[]): void {
    for (const id of extentIds) this.#forgettableExtent(id);
  }

  forgetExtents(nowMs: number, extentIds: readonly string[], lease?: Lease): string[] {
    return this.#leased(nowMs, lease, () => extentIds.filter((id) => this.#forgetExtent(id)));
  }

  #forgetExtent(id: string): boolean {
    const seq = this.#forgettableExtent(id);
    if (seq === undefined) return false;
    this.#connection.run("DELETE FROM extent_filters WHERE seq = ?", seq);
    this.#connection.run("DELETE FROM extent_stats WHERE seq = ?", seq);
    this.#connection.run("DELETE FROM extents WHERE seq = ?", seq);
    this.#connection.run("UPDATE meta SET forgotten_extents = forgotten_extents + 1");
    return true;
  }

  sweepLedger(asOfMs: number, limit: number): number {
    return this.#write(() => sweepLedgerEntries(this.#connection, asOfMs, limit));
  }

  sweepSnapshots(limit: number): number {
    return this.#write(() => sweepUnreadableSnapshots(this.#connection, limit));
  }

  sweepPendingDeletions(before: string, limit: number): number {
    return this.#write(() => sweepPendingDeletionIds(this.#connection, before, limit));
  }

  sweepStaged(beforeMs: number, limit: number): number {
    return this.#write(() => sweepStagedEntries(this.#connection, beforeMs, limit));
  }

  writeRecords(nowMs: number, statement: Statement): RecordRow[] {
    return this.#connection.write(() => readRecords(this.#connection, nowMs, statement));
  }

  transactRecords(nowMs: number, statements: readonly Statement[]): TransactOutcome {
    return outcomeOf(() => this.#connection.write(() => runRecords(this.#connection, nowMs, statements)));
  }

  #forgettableExtent(id: string): number | undefined {
    const row = this.#connection.get("SELECT seq, table_id, end_snapshot FROM extents WHERE id = ?", id);
    if (row === undefined) return undefined;
    const endSnapshot = row["end_snapshot"] === null ? undefined : Number(row["end_snapshot"]);
    liveExtentsAreNotForgotten(id, endSnapshot);
    const oldest = readOldestKept(this.#connection, Number(row["table_id"]));
    readableExtentsAreNotForgotten(id, endSnapshot, oldest.id);
    return Number(row["seq"]);
  }

  #ensureDatabase(name: string, wasThere?: true): { database: DatabaseRecord; created: boolean } {
    const existing = this.#schema.database(name);
    if (existing !== undefined) return { database: existing, created: false };
    if (wasThere !== true) checkNewDatabase(name);
    const { lastInsertRowid } = this.#connection
      .statement("INSERT INTO databases (name, folded_name) VALUES (?, ?)")
      .run(name, foldName(name));
    bumpGeneration(this.#connection);
    return { database: { id: Number(lastInsertRowid), name }, created: true };
  }

  #insertTable(databaseId: number, request: Required<Pick<CreateTable, "clusterBy">> & CreateTable): TableRecord {
    const sql =
      "INSERT INTO tables (database_id, name, folded_name, schema_version, next_column_id, retention_days, cluster_by, " +
      "infer_types, open_lag_secs) VALUES (?, ?, ?, 1, 1, ?, ?, ?, ?)";
    const { name, columns, retentionDays, clusterBy, inferTypes, openLagSecs } = request;
    const settings = [retentionDays ?? null, encodeClusterBy(clusterBy), toFlag(inferTypes), openLagSecs ?? null];
    const inserted = this.#connection.statement(sql).run(databaseId, name, foldName(name), ...settings);
    const tableId = Number(inserted.lastInsertRowid);
    this.#connection.run("INSERT INTO table_totals VALUES (?, 0, 0, 0)", tableId);
    insertColumns(this.#connection, tableId, columns, 0);
    bumpGeneration(this.#connection);
    const table = this.#schema.tableById(tableId);
    if (table === undefined) throw new Error(`table id ${tableId} vanished inside a transaction`);
    return table;
  }

  /** A write that happens only while the lease, if one is given, is held. */
  #leased<T>(nowMs: number, lease: Lease | undefined, work: () => T): T {
    return this.#write(() => {
      checkLease(this.#connection, nowMs, lease);
      return work();
    });
  }

  #write<T>(work: () => T): T {
    try {
      return this.#connection.write(work);
    } catch (error) {
      this.#schema.forget();
      throw error;
    }
  }
}

/** As SQLite stores it. */
function toFlag(value: boolean | undefined): number | null {
  return value === undefined ? null : Number(value);
}
