import type { Catalog, FlushCommit, NewExtent, NewLedgerEntry, TableRecord } from "../catalog/catalog.ts";
import { releaseShared } from "../core/buffer-pool.ts";
import { sleep, type Clock } from "../core/clock.ts";
import { EngineError, fromErrorRecord, messageOf } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { LIMITS } from "../core/limits.ts";
import type { Log } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { Random } from "../core/random.ts";
import { FORMAT_VERSION, type ColumnSpec, type ExtentFormat } from "../format/types.ts";
import { objectKeys, type ObjectStore } from "../io/objectstore/objectstore.ts";
import type { Committer } from "./committer.ts";
import type { IngestAck } from "./ingest.ts";
import type { SealedExtent, Sealer, SealTask } from "./seal.ts";
import { sealInCuts, type SealedFlush } from "./seal-cuts.ts";

/**
 * One flush of one table: seal, upload, commit, and an answer for every body.
 *
 * A body leaves the flush in one of three ways: its scan fails (rejected alone), its key turns out to be applied
 * already (it gets that acknowledgement), or its rows are committed. When the commit sends the flush back, what is left
 * of it is sealed again under the table as it then is.
 */
export type FlushPorts = {
  catalog: Catalog;
  store: ObjectStore;
  committer: Committer;
  seal: Sealer;
  /** Threads that `seal` runs on. */
  sealThreads: number;
  clock: Clock;
  random: Random;
  newId: IdSource;
  log: Log;
  metrics: Metrics;
  format: ExtentFormat;
  keyPrefix: string;
};

export type FlushBody = {
  bytes: Uint8Array;
  evolve: boolean;
  arrivedAtNs: bigint;
  key?: string;
  answer: PromiseWithResolvers<IngestAck>;
};

type Target = { database: string; table: string };
type Survivor = { body: FlushBody; rows: number };

/** Below twice this a body is not cut: handing over a cut costs as much as scanning some of it. */
const MIN_CUT_BYTES = 2 * 1024 * 1024;
/** Larger extents would keep queries from pruning. */
const MAX_CUT_BYTES = 16 * 1024 * 1024;
const BACKOFF_BASE_MS = 2;
const BACKOFF_MAX_MS = 500;

/** Runs a flush to its end; tells when it is sealed for the first time. Never rejects: failures go to the bodies. */
export async function runFlush(
  ports: FlushPorts,
  target: Target,
  bodies: FlushBody[],
  onSealed: () => void,
): Promise<void> {
  let left = bodies;
  try {
    for (let attempt = 0; left.length > 0; attempt++) {
      if (attempt >= LIMITS.commitAttempts) {
        throw new EngineError("ingest_failed", `the commit met a conflict ${attempt} times; nothing was stored`);
      }
      if (attempt > 0) await sleep(ports.clock, backoffMs(attempt, ports.random));
      left = await attemptFlush(ports, target, left, onSealed);
    }
  } catch (error) {
    const failure = asIngestError(error);
    ports.log.error({ err: error, database: target.database, table: target.table }, "flush failed");
    for (const body of left) body.answer.reject(failure);
  }
}

/** Full jitter (Brooker, "Exponential Backoff And Jitter"). */
function backoffMs(attempt: number, random: Random): number {
  return random.next() * Math.min(BACKOFF_MAX_MS, BACKOFF_BASE_MS * 2 ** attempt);
}

/** An `EngineError` says that nothing was stored; anything else may have struck after the commit took effect. */
function asIngestError(error: unknown): EngineError {
  if (error instanceof EngineError) return error;
  const advice = "whether it took effect is not known; retry with the same X-Idempotency-Key";
  return new EngineError("ingest_failed", `${messageOf(error)}: ${advice}`, { cause: error });
}

/** One round; resolves to the bodies that must come back. */
async function attemptFlush(
  ports: FlushPorts,
  target: Target,
  bodies: FlushBody[],
  onSealed: () => void,
): Promise<FlushBody[]> {
  ports.committer.approach();
  let committing = false;
  let leftCommitter = false;
  const leave = () => {
    if (!leftCommitter) ports.committer.leave();
    leftCommitter = true;
  };
  try {
    const table = await ports.catalog.table(target.database, target.table);
    if (table === undefined) {
      throw new EngineError("table_not_found", `table ${target.database}.${target.table} does not exist any more`);
    }
    const sealed = await sealBodies(ports, table, bodies);
    onSealed();
    const survivors = rejectFailed(bodies, sealed);
    if (survivors.length === 0) return [];
    const extents = await Promise.all(sealed.extents.map((extent) => upload(ports, table, extent)));
    const commit = describeCommit(table, sealed.newColumns, extents, survivors);
    committing = true;
    const outcome = ports.committer.commit(commit);
    leave();
    return await concludeCommit(ports, commit, await outcome, survivors);
  } catch (error) {
    if (committing || error instanceof EngineError) throw error;
    throw new EngineError("ingest_failed", `nothing was stored: ${messageOf(error)}`, { cause: error });
  } finally {
    leave();
  }
}

async function sealBodies(ports: FlushPorts, table: TableRecord, bodies: FlushBody[]): Promise<SealedFlush> {
  const startedMs = ports.clock.monotonicMs();
  const sealed = await sealWholeOrInCuts(ports, {
    columns: table.columns.map(({ name, type }) => ({ name, type })),
    bodies: bodies.map(({ bytes, evolve, arrivedAtNs }) => ({ bytes, evolve, arrivedAtNs })),
    format: ports.format,
  });
  ports.metrics.sealDuration.observe((ports.clock.monotonicMs() - startedMs) / 1000);
  return sealed;
}

/** A body that is worth it is sealed by all threads, in two cuts for each so that none waits long for the last. */
async function sealWholeOrInCuts({ seal, sealThreads }: FlushPorts, task: SealTask): Promise<SealedFlush> {
  const [body] = task.bodies;
  if (task.bodies.length === 1 && body !== undefined && body.bytes.byteLength >= 2 * MIN_CUT_BYTES && sealThreads > 1) {
    const cutBytes = Math.ceil(body.bytes.byteLength / (2 * sealThreads));
    return sealInCuts(seal, task, Math.min(Math.max(cutBytes, MIN_CUT_BYTES), MAX_CUT_BYTES));
  }
  const { extent, newColumns, outcomes } = await seal(task);
  return { extents: extent === undefined ? [] : [extent], newColumns, outcomes };
}

function rejectFailed(bodies: FlushBody[], sealed: SealedFlush): Survivor[] {
  const survivors: Survivor[] = [];
  bodies.forEach((body, i) => {
    const outcome = sealed.outcomes[i];
    if (outcome === undefined) body.answer.reject(new EngineError("internal", "the sealer gave no outcome"));
    else if (outcome.ok) survivors.push({ body, rows: outcome.rows });
    else body.answer.reject(fromErrorRecord(outcome.error));
  });
  return survivors;
}

async function upload(ports: FlushPorts, table: TableRecord, sealed: SealedExtent): Promise<NewExtent> {
  const { bytes, ...described } = sealed;
  const sizeBytes = bytes.byteLength;
  const id = ports.newId();
  const key = objectKeys.extent({
    prefix: ports.keyPrefix,
    database: table.database,
    table: table.name,
    day: utcDay(sealed.minAtNs),
    id,
    format: sealed.format,
  });
  await ports.store.put(key, bytes);
  releaseShared(bytes);
  return { ...described, id, key, formatVersion: FORMAT_VERSION[sealed.format], sizeBytes };
}

const NS_PER_DAY = 86_400_000_000_000n;
const MS_PER_DAY = 86_400_000;

/** The folder of an extent: the UTC day of its earliest row (also before 1970, hence the floor). */
function utcDay(atNs: bigint): string {
  const intoDay = ((atNs % NS_PER_DAY) + NS_PER_DAY) % NS_PER_DAY;
  const day = Number((atNs - intoDay) / NS_PER_DAY);
  return new Date(day * MS_PER_DAY).toISOString().slice(0, 10);
}

function describeCommit(
  table: TableRecord,
  newColumns: readonly ColumnSpec[],
  extents: NewExtent[],
  survivors: Survivor[],
): FlushCommit {
  const ledger: NewLedgerEntry[] = [];
  for (const { body, rows } of survivors) {
    if (body.key !== undefined) ledger.push({ key: body.key, ...shareOf(extents, rows) });
  }
  return { tableId: table.id, schemaVersion: table.schemaVersion, newColumns, extents, ledger };
}

/** What a request of `rows` rows has of the flush's extents: see `IngestAck.sizeBytes`. */
function shareOf(extents: readonly NewExtent[], rows: number): Pick<IngestAck, "extentCount" | "rows" | "sizeBytes"> {
  const allBytes = extents.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const allRows = extents.reduce((sum, extent) => sum + extent.rows, 0);
  return { extentCount: extents.length, rows, sizeBytes: Math.round((allBytes * rows) / allRows) };
}

async function concludeCommit(
  ports: FlushPorts,
  commit: FlushCommit,
  outcome: Awaited<ReturnType<Committer["commit"]>>,
  survivors: Survivor[],
): Promise<FlushBody[]> {
  if (outcome.kind === "committed") {
    for (const { body, rows } of survivors) {
      body.answer.resolve({ snapshotId: outcome.snapshot.id, ...shareOf(commit.extents, rows), replayed: false });
    }
    return [];
  }
  ports.metrics.commitConflicts.inc({ reason: outcome.kind === "key_conflict" ? "idempotency" : "schema" });
  await discard(ports, commit);
  const applied = new Map(outcome.kind === "key_conflict" ? outcome.entries.map((entry) => [entry.key, entry]) : []);
  return survivors.flatMap(({ body }) => {
    const entry = body.key === undefined ? undefined : applied.get(body.key);
    if (entry === undefined) return [body];
    const { snapshotId, extentCount, rows, sizeBytes } = entry;
    body.answer.resolve({ snapshotId, extentCount, rows, sizeBytes, replayed: true });
    return [];
  });
}

/**
 * Deletes the bytes of a flush that the catalog sent back. Only then: when a commit *fails*, whether it took effect may
 * be unknown until the catalog has recovered, and an object that nobody points to costs less than a pointer to nothing.
 */
async function discard(ports: FlushPorts, commit: FlushCommit): Promise<void> {
  try {
    await ports.store.delete(commit.extents.map(({ key }) => key));
  } catch (error) {
    ports.log.warn({ err: error, keys: commit.extents.map(({ key }) => key) }, "could not delete unused extents");
  }
}
