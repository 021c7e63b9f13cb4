import { resolve } from "node:path";
import type {
  Catalog,
  ColumnProbe,
  CreateTable,
  DatabaseRecord,
  ExtentRecord,
  ExtentSummary,
  FlushCommit,
  FlushOutcome,
  LedgerEntry,
  ScanPlan,
  ScanRequest,
  Snapshot,
  TableRecord,
  TimeRange,
} from "../catalog.ts";
import type { Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { ColumnSpec } from "../../format/types.ts";
import type { EncodedFlush } from "./commit.ts";
import type { Connection } from "./connection.ts";
import { toCatalogError, toStartupError } from "./errors.ts";
import { toExtentRecords } from "./extents.ts";
import { findLedgerEntry } from "./ledger.ts";
import { acquireServerLock, type ServerLock } from "./lock.ts";
import { openConnection, prepareFile, type OpenOptions } from "./open.ts";
import type { Reader } from "./reader.ts";
import { SchemaReader } from "./schema.ts";
import { findSnapshotAt, readHead, readOldestSnapshot } from "./snapshots.ts";
import { encodeStats } from "./stats.ts";
import { ThreadClient } from "./thread-client.ts";
import { readTotals } from "./totals.ts";
import type { Writer } from "./writer.ts";

/**
 * The embedded catalog: one SQLite file in WAL mode.
 *
 *     caller's thread    point look-ups, tens of microseconds, on a read-only connection
 *     writer's thread    every write, one transaction per call, fsynced before it is answered
 *     reader's thread    what may be large: lists of tables and of extents
 *
 * `verify` has a thread of its own for as long as it runs. An administrative process may write beside the server; what
 * it commits is seen at once, since every look-up reads the file and what is cached is keyed by a version read from it.
 */
export type SqliteCatalogOptions = {
  /** The file, made with its folder unless it exists. `-wal`, `-shm`, `.lock` and `.pid` lie beside it. */
  path: string;
  clock: Clock;
  log: Log;
  /** A server takes the lock that keeps a second one out, and upgrades a catalog of an earlier version. */
  mode: "server" | "admin";
  /** How long a write waits for another process's. */
  busyTimeoutMs?: number;
  /** Called once when a thread of the catalog dies; every call fails from then on. */
  onFailure?: (reason: Error) => void;
};

const BUSY_TIMEOUT_MS = 15_000;

/** What a look-up on the caller's thread waits at most; in WAL mode it waits only while another process recovers the log. */
const LOOKUP_BUSY_TIMEOUT_MS = 1_000;
/** Rows per transaction of deletions that may be large, so that commits get their turn in between. */
const DELETIONS_PER_TRANSACTION = 2_000;

/** Some 10 ms of reading filters, so that the reads of other queries get their turn in between. */
const EXTENTS_PER_PROBING = 500;

/** Opens the catalog, creating it where there is none. Rejects with `StartupError`. */
export async function openSqliteCatalog(options: SqliteCatalogOptions): Promise<Catalog> {
  return (await openSqliteParts(options)).catalog;
}

/** The catalog with its parts, for tests that break one. */
export async function openSqliteParts(options: SqliteCatalogOptions): Promise<{ catalog: Catalog; parts: Parts }> {
  let path = resolve(options.path);
  let lock: ServerLock | undefined;
  let catalog: SqliteCatalog | undefined;
  const onDeath = (reason: Error) => {
    options.log.fatal({ err: reason, path }, "a thread of the catalog died");
    catalog?.fail(reason);
    options.onFailure?.(reason);
  };
  try {
    path = prepareFile(options.path);
    if (options.mode === "server") lock = acquireServerLock(path);
    const open: OpenShared = {
      path,
      busyTimeoutMs: options.busyTimeoutMs ?? BUSY_TIMEOUT_MS,
      nowMs: options.clock.nowMs(),
      mayUpgrade: options.mode === "server",
    };
    const parts = await openParts(open, lock, onDeath);
    catalog = new SqliteCatalog(parts, options.clock);
    return { catalog, parts };
  } catch (error) {
    lock?.release();
    throw toStartupError(error, path);
  }
}

type OpenShared = Omit<OpenOptions, "part">;

export type Parts = {
  open: OpenShared;
  lock: ServerLock | undefined;
  writer: ThreadClient<Writer>;
  reader: ThreadClient<Reader>;
  local: Connection;
};

// Both threads start at once; the writer opens first, since it makes the file what the readers expect.
async function openParts(
  open: OpenShared,
  lock: ServerLock | undefined,
  onDeath: (reason: Error) => void,
): Promise<Parts> {
  const writer = new ThreadClient<Writer>("catalog-writer", onDeath);
  const reader = new ThreadClient<Reader>("catalog-reader", onDeath);
  try {
    await writer.open({ ...open, part: "writer" });
    await reader.open({ ...open, part: "reader" });
    const local = openConnection({ ...open, part: "reader", busyTimeoutMs: LOOKUP_BUSY_TIMEOUT_MS });
    return { open, lock, writer, reader, local };
  } catch (error) {
    await Promise.all([reader.terminate(), writer.terminate()]);
    throw error;
  }
}

class SqliteCatalog implements Catalog {
  readonly #parts: Parts;
  readonly #clock: Clock;
  readonly #schema: SchemaReader;
  readonly #running = new Set<Promise<unknown>>();
  #closed: Promise<void> | undefined;
  #failure: Error | undefined;

  constructor(parts: Parts, clock: Clock) {
    this.#parts = parts;
    this.#clock = clock;
    this.#schema = new SchemaReader(parts.local);
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

  tables(database: string): Promise<TableRecord[]> {
    return this.#run(() => this.#parts.reader.call("tables", database));
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

  oldestSnapshot(): Promise<Snapshot> {
    return this.#lookUp(() => readOldestSnapshot(this.#parts.local));
  }

  expireSnapshots(before: number): Promise<Snapshot> {
    return this.#run(() => this.#parts.writer.call("expireSnapshots", before));
  }

  commit(flushes: readonly FlushCommit[]): Promise<FlushOutcome[]> {
    return this.#run(async () => {
      if (flushes.length === 0) return [];
      return await this.#parts.writer.call("commit", this.#clock.nowMs(), flushes.map(encodeFlush));
    });
  }

  ledgerEntry(tableId: number, key: string): Promise<LedgerEntry | undefined> {
    return this.#lookUp(() => findLedgerEntry(this.#parts.local, tableId, key, this.#clock.nowMs()));
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

  tableStats(tableId: number): Promise<{ rows: number; extents: number; sizeBytes: number }> {
    return this.#lookUp(() => readTotals(this.#parts.local, tableId));
  }

  endExtents(tableId: number, extentIds: readonly string[]): Promise<ExtentSummary[]> {
    return this.#run(async () => {
      if (extentIds.length === 0) return [];
      return await this.#parts.writer.call("endExtents", this.#clock.nowMs(), tableId, extentIds);
    });
  }

  deadExtents(tableId: number, beforeMs: number): Promise<ExtentSummary[]> {
    return this.#run(async () => {
      const dead: ExtentSummary[] = [];
      await this.#parts.reader.stream("deadExtents", [tableId, beforeMs], (part) => {
        for (const extent of part) dead.push(extent);
      });
      return dead;
    });
  }

  forgetExtents(extentIds: readonly string[]): Promise<void> {
    return this.#run(async () => {
      const batches = batchesOf(extentIds, DELETIONS_PER_TRANSACTION);
      // All are looked at before any is forgotten; a dead extent never lives again.
      if (batches.length > 1) {
        for (const batch of batches) await this.#parts.writer.call("refuseLiveExtents", batch);
      }
      for (const batch of batches) await this.#parts.writer.call("forgetExtents", batch);
    });
  }

  sweepLedger(): Promise<number> {
    return this.#run(async () => {
      const nowMs = this.#clock.nowMs();
      for (let swept = 0; ;) {
        const count = await this.#parts.writer.call("sweepLedger", nowMs, DELETIONS_PER_TRANSACTION);
        swept += count;
        if (count < DELETIONS_PER_TRANSACTION) return swept;
      }
    });
  }

  verify(): Promise<void> {
    return this.#run(async () => {
      // If this thread dies, its one call is rejected; the catalog itself is well.
      const verifier = new ThreadClient<Reader>("catalog-verifier", () => undefined);
      try {
        await verifier.open({ ...this.#parts.open, part: "reader" });
        await verifier.call("verify");
        await verifier.close();
      } finally {
        await verifier.terminate();
      }
    });
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
    const { local, reader, writer, lock } = this.#parts;
    await Promise.allSettled(this.#running);
    try {
      local.close();
      await reader.close();
      await writer.close();
    } finally {
      await Promise.all([reader.terminate(), writer.terminate()]);
      lock?.release();
    }
  }

  #run<T>(work: () => Promise<T>): Promise<T> {
    const refusal = this.#refusal();
    if (refusal !== undefined) return Promise.reject(refusal);
    const running = work();
    this.#running.add(running);
    void Promise.allSettled([running]).then(() => this.#running.delete(running));
    return running;
  }

  #lookUp<T>(work: () => T): Promise<T> {
    try {
      const refusal = this.#refusal();
      return refusal === undefined ? Promise.resolve(work()) : Promise.reject(refusal);
    } catch (error) {
      return Promise.reject(toCatalogError(error, this.#parts.open.path));
    }
  }

  #refusal(): EngineError | undefined {
    if (this.#closed !== undefined) return new EngineError("unavailable", "the catalog is closed");
    if (this.#failure === undefined) return undefined;
    return new EngineError("unavailable", `the catalog has failed: ${this.#failure.message}`, { cause: this.#failure });
  }
}

function encodeFlush(flush: FlushCommit): EncodedFlush {
  return { ...flush, extents: flush.extents.map((extent) => ({ ...extent, stats: encodeStats(extent.stats) })) };
}

function batchesOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));
}
