import type { Catalog, FlushCommit, NewExtent, NewLedgerEntry, TableRecord } from "../catalog/catalog.ts";
import { sleep, type Clock } from "../core/clock.ts";
import { EngineError, fromErrorRecord, messageOf } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { LIMITS } from "../core/limits.ts";
import type { Log } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { Random } from "../core/random.ts";
import type { ColumnSpec, ExtentFormat } from "../format/types.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import type { Committer } from "./committer.ts";
import type { IngestAck } from "./ingest.ts";
import type { Sealer } from "./seal.ts";
import { sealWholeOrInCuts, type SealedFlush } from "./seal-cuts.ts";
import { asReplay, findOrCreateTable } from "./tables.ts";
import { discardExtents, shareOf, uploadExtent } from "./upload.ts";

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
  /** Is told of the table as each flush finds it: one that was dropped and made again is another one. */
  onTable?: (table: TableRecord) => void;
};

export type FlushBody = {
  bytes: Uint8Array;
  evolve: boolean;
  autoCreate: boolean;
  arrivedAtNs: bigint;
  key?: string;
  /** When the key was last known to be free; of bodies with a key. The clock is the catalog's, in staged mode the node's. */
  keyFreeAtMs?: number;
  answer: PromiseWithResolvers<IngestAck>;
};

/** A table, by the catalog's spelling. */
export type Target = { database: string; table: string };
type Survivor = { body: FlushBody; rows: number };

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
        ports.metrics.commitsGivenUp.inc();
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
export function backoffMs(attempt: number, random: Random): number {
  return random.next() * Math.min(BACKOFF_MAX_MS, BACKOFF_BASE_MS * 2 ** attempt);
}

/** An `EngineError` says that nothing was stored; anything else may have struck after the commit took effect. */
function asIngestError(error: unknown): EngineError {
  if (error instanceof EngineError) return error;
  const advice = "whether it took effect is not known; retry with the same X-Idempotency-Key";
  return new EngineError("ingest_failed", `${messageOf(error)}: ${advice}`, { cause: error });
}

/** What a request gets that waited in this process for so long that its key may have been used and forgotten since. */
export function heldUp(): EngineError {
  return new EngineError(
    "unavailable",
    "this server was held up for hours; nothing was stored; send the request again",
    {
      headers: { "Retry-After": "1" },
    },
  );
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
    const found = await findTable(ports, target, bodies);
    if (found === undefined) return [];
    const { table } = found;
    ports.onTable?.(table);
    const sealed = await sealBodies(ports, table, found.bodies);
    onSealed();
    const survivors = rejectFailed(found.bodies, sealed);
    if (survivors.length === 0) return [];
    const extents = await uploadAll(ports, table, sealed);
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

/**
 * The table as it is now. One that was dropped since the requests came is made again for those that may create it, as if
 * they had come after the drop; the others are told that it is gone. Undefined when nobody is left.
 */
async function findTable(
  { catalog }: FlushPorts,
  target: Target,
  bodies: FlushBody[],
): Promise<{ table: TableRecord; bodies: FlushBody[] } | undefined> {
  const known = await catalog.table(target.database, target.table);
  if (known !== undefined) return { table: known, bodies };
  const gone = new EngineError("table_not_found", `table ${target.database}.${target.table} does not exist any more`);
  for (const { autoCreate, answer } of bodies) if (!autoCreate) answer.reject(gone);
  const left = bodies.filter(({ autoCreate }) => autoCreate);
  if (left.length === 0) return undefined;
  return { table: await findOrCreateTable(catalog, { ...target, autoCreate: true }), bodies: left };
}

async function sealBodies(ports: FlushPorts, table: TableRecord, bodies: FlushBody[]): Promise<SealedFlush> {
  const startedMs = ports.clock.monotonicMs();
  const sealed = await sealWholeOrInCuts(ports.seal, ports.sealThreads, {
    columns: table.columns.map(({ name, type }) => ({ name, type })),
    bodies: bodies.map(({ bytes, evolve, arrivedAtNs }) => ({ bytes, evolve, arrivedAtNs })),
    format: ports.format,
  });
  ports.metrics.sealDuration.observe((ports.clock.monotonicMs() - startedMs) / 1000);
  return sealed;
}

async function uploadAll(ports: FlushPorts, table: TableRecord, { extents }: SealedFlush): Promise<NewExtent[]> {
  const startedMs = ports.clock.monotonicMs();
  const uploaded = await Promise.all(extents.map((extent) => uploadExtent(ports, table, extent)));
  ports.metrics.uploadDuration.observe((ports.clock.monotonicMs() - startedMs) / 1000);
  return uploaded;
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
  const freeAtMs = survivors.flatMap(({ body }) => body.keyFreeAtMs ?? []);
  const keysFreeAtMs = freeAtMs.length === 0 ? {} : { keysFreeAtMs: Math.min(...freeAtMs) };
  return { tableId: table.id, schemaVersion: table.schemaVersion, newColumns, extents, ledger, ...keysFreeAtMs };
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
  ports.metrics.commitConflicts.inc({ reason: outcome.kind === "schema_conflict" ? "schema" : "idempotency" });
  await discardExtents(ports, commit.extents);
  const applied = new Map(outcome.kind === "key_conflict" ? outcome.entries.map((entry) => [entry.key, entry]) : []);
  const lookedUpByMs = outcome.kind === "too_late" ? outcome.lookedUpByMs : -Infinity;
  return survivors.flatMap(({ body }) => {
    if (body.keyFreeAtMs !== undefined && body.keyFreeAtMs <= lookedUpByMs) {
      body.answer.reject(heldUp());
      return [];
    }
    const entry = body.key === undefined ? undefined : applied.get(body.key);
    if (entry === undefined) return [body];
    body.answer.resolve(asReplay(entry));
    return [];
  });
}
