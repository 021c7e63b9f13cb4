import type { Catalog, DroppedTable, ExtentSummary, Lease, Snapshot } from "../catalog/catalog.ts";
import { LeaseLost } from "../catalog/refusals.ts";
import { Semaphore } from "../core/concurrency.ts";
import { messageOf } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import type { DeletionReport, DeletionReports } from "./deletion-reports.ts";
import type { Duty, DutyTurn } from "../feature/lease-loop.ts";
import { COMPACTION_METRICS } from "./metrics.ts";

/**
 * Physical deletion: frees what no readable snapshot sees.
 *
 * The order makes every interruption harmless. First the oldest readable snapshot advances, past nothing that a reader
 * holds: from here on nobody plans with what goes. Then the bytes go, then the records: a crash in between leaves
 * records that the next run finds again, and never bytes that nothing points to. Snapshots that are unreadable need no
 * record either.
 *
 * Tables that were dropped go the same way, and are forgotten at last. When the last extent is gone that had rows which
 * were deleted on request, the report of that deletion says so (`deletion-reports.ts`).
 */
export type DeletionPorts = {
  catalog: Pick<
    Catalog,
    | "allTables"
    | "nowMs"
    | "snapshotAt"
    | "expireSnapshots"
    | "sweepSnapshots"
    | "oldestKeptSnapshot"
    | "deadExtents"
    | "forgetExtents"
    | "droppedTables"
    | "tableStats"
    | "head"
    | "extents"
    | "endExtents"
    | "forgetTable"
  >;
  reports: Pick<DeletionReports, "open" | "settle">;
  store: Pick<ObjectStore, "delete">;
  log: Log;
  metrics: Metrics;
};

export type Freed = { extents: number; rows: number; sizeBytes: number };

/** Snapshots forgotten at a time. */
const BATCH_SNAPSHOTS = 10_000;
/** Reports looked at at a time. */
const BATCH_REPORTS = 1_000;
/** For so long it is known that a table was dropped: a process that stood still may come with a flush for it. */
const DROPS_KNOWN_MS = 86_400_000;

/** A snapshot stays readable for `graceMs` after the next one came. */
export function createDeletion(ports: DeletionPorts, { graceMs }: { graceMs: number }): Duty {
  return async (turn) => {
    const { catalog, metrics } = ports;
    const newest = await catalog.snapshotAt((await catalog.nowMs()) - graceMs);
    if (newest !== undefined) {
      const oldest = await catalog.expireSnapshots(newest.id, turn.lease);
      COMPACTION_METRICS.of(metrics).oldestSnapshot.set(oldest.id);
      COMPACTION_METRICS.of(metrics).heldSnapshots.set(Math.max(0, newest.id - oldest.id));
    }
    while ((await catalog.sweepSnapshots(BATCH_SNAPSHOTS)) === BATCH_SNAPSHOTS) turn.signal.throwIfAborted();
    const failures: unknown[] = [];
    // One table that cannot be cleaned up does not keep the others from it.
    const attempt = async (work: () => Promise<void>): Promise<void> => {
      turn.signal.throwIfAborted();
      await work().catch((error: unknown) => {
        if (turn.signal.aborted || error instanceof LeaseLost) throw error;
        failures.push(error);
        // What `deleteDead` throws for bytes that stayed.
        if (error instanceof AggregateError) COMPACTION_METRICS.of(metrics).deletionFailures.inc(error.errors.length);
      });
    };
    for (const table of await catalog.allTables()) await attempt(() => deleteUnreadable(ports, table, turn));
    for (const table of await catalog.droppedTables()) await attempt(() => deleteDropped(ports, table, turn));
    await settleReports(ports, turn);
    if (failures.length > 0) throw new AggregateError(failures, `some tables: ${messageOf(failures[0])}`);
  };
}

type Named = Pick<DroppedTable, "id" | "database" | "name">;

async function deleteUnreadable(ports: DeletionPorts, table: Named, turn: DutyTurn): Promise<void> {
  const { catalog, log, metrics } = ports;
  const oldest = await catalog.oldestKeptSnapshot(table.id);
  const freed = await deleteDead(ports, {
    tableId: table.id,
    beforeMs: oldest.committedAtMs + 1,
    makeUnreadable: async () => oldest,
    ...turn,
  });
  COMPACTION_METRICS.of(metrics).deletedExtents.inc(freed.extents);
  COMPACTION_METRICS.of(metrics).deletedBytes.inc(freed.sizeBytes);
  if (freed.extents > 0) log.info({ database: table.database, table: table.name, ...freed }, "extents are deleted");
}

async function deleteDropped(ports: DeletionPorts, table: DroppedTable, turn: DutyTurn): Promise<void> {
  const { catalog } = ports;
  // A node of an earlier version may have committed to it after the drop.
  if ((await catalog.tableStats(table.id)).extents > 0) {
    const { id: head } = await catalog.head();
    const alive = await catalog.extents(table.id, head, {}, []);
    const ids = alive.map(({ id }) => id);
    await catalog.endExtents(table.id, ids, turn.lease);
  }
  await deleteUnreadable(ports, table, turn);
  if (table.droppedAtMs + DROPS_KNOWN_MS <= (await catalog.nowMs())) await catalog.forgetTable(table.id);
}

/** Notes of which deletions of rows the last bytes are gone. */
async function settleReports({ catalog, reports, log }: DeletionPorts, { signal }: DutyTurn): Promise<void> {
  for (let after = ""; ;) {
    const open = await reports.open(after, BATCH_REPORTS);
    for (const report of open) {
      signal.throwIfAborted();
      if (!(await isGone(catalog, report))) continue;
      await reports.settle(report.id);
      const { id, database, table, rows } = report;
      log.info({ deletion: id, database, table, rows }, "the last bytes of deleted rows are gone");
    }
    const last = open.at(-1);
    if (last === undefined || open.length < BATCH_REPORTS) return;
    after = last.id;
  }
}

/** Whether no extent is known that ended with the deletion or before. */
async function isGone(
  catalog: Pick<Catalog, "deadExtents">,
  { tableId, snapshotId, committedAtMs }: DeletionReport,
): Promise<boolean> {
  const [first] = await catalog.deadExtents(tableId, committedAtMs + 1, 1);
  return first?.endSnapshot === undefined || first.endSnapshot > snapshotId;
}

export type DeadRequest = {
  tableId: number;
  /** Only extents that were soft-deleted strictly before. */
  beforeMs: number;
  /** Makes snapshots before that one unreadable where it may; resolves to the oldest that can be read of the table. */
  makeUnreadable: (before: number) => Promise<Snapshot>;
  lease?: Lease;
  signal?: AbortSignal;
};

/** Extents looked up and forgotten at a time. */
const BATCH_EXTENTS = 1_000;
/** Objects per request to the store, and requests at a time. */
const CHUNK_EXTENTS = 100;
const PARALLEL_CHUNKS = 4;
/** After so many extents whose bytes could not be deleted the rest waits for the next run. */
const MAX_FAILED_EXTENTS = 1_000;

/**
 * Deletes dead extents of a table that no readable snapshot sees, in the order in which they died; resolves to what this
 * call has freed. Throws when bytes of some could not be deleted, after it has freed the others.
 */
export async function deleteDead(
  { catalog, store }: Pick<DeletionPorts, "store"> & { catalog: Pick<Catalog, "deadExtents" | "forgetExtents"> },
  { tableId, beforeMs, makeUnreadable, lease, signal }: DeadRequest,
): Promise<Freed> {
  const failed = new Map<string, unknown>();
  const freed: Freed = { extents: 0, rows: 0, sizeBytes: 0 };
  while (failed.size < MAX_FAILED_EXTENTS) {
    signal?.throwIfAborted();
    const found = await catalog.deadExtents(tableId, beforeMs, BATCH_EXTENTS + failed.size);
    const dead = found.filter(({ id }) => !failed.has(id));
    const last = dead.at(-1)?.endSnapshot;
    if (last === undefined) break;
    const oldest = await makeUnreadable(last);
    const unreadable = dead.filter(({ endSnapshot = Infinity }) => endSnapshot <= oldest.id);
    if (unreadable.length === 0) break;
    const gone = await deleteBytes(store, unreadable, failed);
    const forgotten = new Set(await catalog.forgetExtents([...gone.keys()], lease));
    for (const id of forgotten) add(freed, gone.get(id));
    if (unreadable.length < dead.length) break;
  }
  if (failed.size === 0) return freed;
  const [first] = failed.values();
  const text = `bytes of ${failed.size} extents could not be deleted: ${messageOf(first)}`;
  throw new AggregateError([...failed.values()], text);
}

function add(freed: Freed, extent: ExtentSummary | undefined): void {
  if (extent === undefined) return;
  freed.extents++;
  freed.rows += extent.rows;
  freed.sizeBytes += extent.sizeBytes;
}

/** The extents whose bytes are gone; the others are added to `failed`. */
async function deleteBytes(
  store: Pick<ObjectStore, "delete">,
  extents: readonly ExtentSummary[],
  failed: Map<string, unknown>,
): Promise<Map<string, ExtentSummary>> {
  const turns = new Semaphore(PARALLEL_CHUNKS);
  const chunks = Array.from({ length: Math.ceil(extents.length / CHUNK_EXTENTS) }, (_, i) =>
    extents.slice(i * CHUNK_EXTENTS, (i + 1) * CHUNK_EXTENTS),
  );
  await Promise.all(chunks.map((chunk) => turns.run(() => deleteChunk(store, chunk, failed))));
  return new Map(extents.filter(({ id }) => !failed.has(id)).map((extent) => [extent.id, extent]));
}

/** Failures in a row after which the store, and not an object, is taken to be the cause. */
const FAILURES_IN_A_ROW = 3;

/** One object that cannot be deleted must not keep its neighbours: after a failure they go one by one. */
async function deleteChunk(
  store: Pick<ObjectStore, "delete">,
  chunk: readonly ExtentSummary[],
  failed: Map<string, unknown>,
): Promise<void> {
  try {
    await store.delete(chunk.map(({ key }) => key));
    return;
  } catch (error) {
    // Those that the loop below does not come to.
    for (const { id } of chunk) failed.set(id, error);
  }
  let inARow = 0;
  for (const { id, key } of chunk) {
    try {
      await store.delete([key]);
      failed.delete(id);
      inARow = 0;
    } catch (error) {
      failed.set(id, error);
      if (++inARow === FAILURES_IN_A_ROW) return;
    }
  }
}
