import type { Catalog, FlushCommit, FlushOutcome, NewExtent, NewLedgerEntry, TableRecord } from "../catalog/catalog.ts";
import { stepsThatFit, type SourcePosition, type SourceStep } from "../catalog/input-positions.ts";
import { PositionMoved } from "../catalog/refusals.ts";
import { backoffMs } from "../core/backoff.ts";
import { releaseShared } from "../core/buffer-pool.ts";
import { sleep, type Clock } from "../core/clock.ts";
import { EngineError, fromErrorRecord, messageOf } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { LIMITS } from "../core/limits.ts";
import type { Log } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { Random } from "../core/random.ts";
import { specOf, type ColumnSpec, type ExtentFormat } from "../format/types.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import type { Committer } from "./committer.ts";
import { ackOfNothing, readingOf, toldOf, type BodyReading, type IngestAck } from "./ingest.ts";
import { INGEST_METRICS, countWidened } from "./metrics.ts";
import { columnToSeal, type SealBody, type SealedBody, type Sealer } from "./seal.ts";
import type { SealedFlush } from "./seal-cuts.ts";
import { sealAgreed, widenableBy } from "./seal-widening.ts";
import { asReplay, createTable, infersTypes, ofOneShape, shapeFor, tableNotFound } from "./tables.ts";
import { discardExtents, shareOf, uploadExtent } from "./upload.ts";

/**
 * One flush of one table: seal, upload, commit, and an answer for every body.
 *
 * A body leaves the flush in one of three ways: its scan fails (rejected alone), its key turns out to be applied
 * already (it gets that acknowledgement), or its rows are committed. When the commit sends the flush back, what is left
 * of it is sealed again under the table as it then is.
 *
 * A table that does not exist yet is created when rows for it were read, not before: a flush whose every body is refused
 * leaves no table behind, and no columns, which come with the commit. Not so a failure of the store or the catalog
 * after that, which may leave the table, empty.
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
  /** `ENGINE_INGEST_INFER_TYPES`; false unless given. */
  inferTypes?: boolean;
  /** Is told of the table as each flush finds it: one that was dropped and made again is another one. */
  onTable?: (table: TableRecord) => void;
};

export type FlushBody = BodyReading & {
  bytes: Uint8Array;
  evolve: boolean;
  /** See `IngestRequest.inferTypes`. */
  inferTypes?: boolean;
  autoCreate: boolean;
  /** See `IngestRequest.columns`. */
  columns?: readonly ColumnSpec[];
  arrivedAtNs: bigint;
  key?: string;
  /** When the key was last known to be free; of bodies with a key. The clock is the catalog's, in staged mode the node's. */
  keyFreeAtMs?: number;
  /** See `IngestRequest.source`. */
  source?: SourceStep;
  answer: PromiseWithResolvers<IngestAck>;
};

/** A table, by the catalog's spelling. */
export type Target = { database: string; table: string };
type Survivor = { body: FlushBody; rows: number; outcome: SealedBody };

const CONFLICT_PAUSE = { firstMs: 2, mostMs: 500 } as const;

/** How metrics call what sends a flush back. */
const CONFLICTS: Record<Exclude<FlushOutcome["kind"], "committed">, string> = {
  schema_conflict: "schema",
  key_conflict: "idempotency",
  position_conflict: "position",
  too_late: "idempotency",
  replayed: "idempotency",
};

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
      if (attempt > 0) await sleep(ports.clock, conflictPauseMs(attempt, ports.random));
      left = await attemptFlush(ports, target, left, onSealed);
    }
  } catch (error) {
    const failure = asIngestError(error);
    ports.log.error({ err: error, database: target.database, table: target.table }, "flush failed");
    for (const body of left) body.answer.reject(failure);
  }
}

/** How long to wait before a commit is tried again that met others. */
export function conflictPauseMs(attempt: number, random: Random): number {
  return backoffMs(CONFLICT_PAUSE, attempt, random, 1);
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
    let known = await ports.catalog.table(target.database, target.table);
    // A table that is to be created gets one shape: whoever asks for another comes when it is there.
    const [sealable, later] = known === undefined ? ofOneShape(rejectUnlessCreating(target, bodies)) : [bodies, []];
    let sealed = await sealBodies(ports, known, sealable);
    onSealed();
    const wider = known === undefined ? undefined : await widen(ports, known, sealed);
    if (wider !== undefined) {
      for (const { bytes } of sealed.extents) releaseShared(bytes);
      known = wider;
      sealed = await sealBodies(ports, known, sealable);
    }
    const survivors = rejectFailed(sealable, sealed);
    if (survivors.length === 0) return later;
    const infers = firstInfersTypes(survivors, ports.inferTypes);
    const table = known ?? (await createTable(ports.catalog, { ...target, ...shapeFor(sealable) }, infers));
    if (table === undefined) {
      // Somebody else was faster, and the table may have other columns than these rows were read under.
      for (const { bytes } of sealed.extents) releaseShared(bytes);
      INGEST_METRICS.of(ports.metrics).commitConflicts.inc({ reason: "schema" });
      return [...survivors.map(({ body }) => body), ...later];
    }
    ports.onTable?.(table);
    const extents = await uploadAll(ports, table, sealed);
    const commit = describeCommit(table, sealed.newColumns, extents, survivors);
    committing = true;
    const outcome = ports.committer.commit(commit);
    leave();
    return [...(await concludeCommit(ports, commit, await outcome, survivors)), ...later];
  } catch (error) {
    if (committing || error instanceof EngineError) throw error;
    throw new EngineError("ingest_failed", `nothing was stored: ${messageOf(error)}`, { cause: error });
  } finally {
    leave();
  }
}

/**
 * The table with those columns widened that the flush asks for (`catalog/widening.ts`); undefined when there is none, or
 * the catalog leaves them as they are: then fractions are in `props`.
 */
async function widen(
  { catalog, metrics }: Pick<FlushPorts, "catalog" | "metrics">,
  table: TableRecord,
  sealed: SealedFlush,
): Promise<TableRecord | undefined> {
  const wanted = widenableBy(sealed, table.columns);
  if (wanted.length === 0) return undefined;
  try {
    const after = await catalog.widenColumns(table.id, wanted);
    countWidened(metrics, table, after);
    return after.schemaVersion === table.schemaVersion ? undefined : after;
  } catch (error) {
    // It was dropped: the commit says so, and what comes back makes it anew.
    if (error instanceof EngineError && error.code === "table_not_found") return undefined;
    throw error;
  }
}

/** The bodies that may create the table; the others hear that it does not exist (any more, for it did when they came). */
export function rejectUnlessCreating(target: Target, bodies: FlushBody[]): FlushBody[] {
  for (const { autoCreate, answer } of bodies) if (!autoCreate) answer.reject(tableNotFound(target));
  return bodies.filter(({ autoCreate }) => autoCreate);
}

/** Of the bodies that create a table, the first that can be read says what the table is to do from then on. */
function firstInfersTypes([first]: readonly Survivor[], configured: boolean | undefined): boolean {
  return infersTypes(first?.body ?? {}, undefined, configured);
}

/** Under the table's columns; under those that it is to have when there is no table yet. */
async function sealBodies(
  ports: FlushPorts,
  table: TableRecord | undefined,
  bodies: FlushBody[],
): Promise<SealedFlush> {
  const startedMs = ports.clock.monotonicMs();
  const sealed = await sealAgreed(ports.seal, ports.sealThreads, {
    columns: table?.columns.map(columnToSeal) ?? shapeFor(bodies).columns.map(specOf),
    bodies: bodies.map((body) => toSeal(body, table, ports.inferTypes)),
    format: ports.format,
  });
  INGEST_METRICS.of(ports.metrics).sealDuration.observe((ports.clock.monotonicMs() - startedMs) / 1000);
  return sealed;
}

/** What the sealer needs of a body. */
export function toSeal(body: FlushBody, table: TableRecord | undefined, configured: boolean | undefined): SealBody {
  const { bytes, evolve, arrivedAtNs } = body;
  return { bytes, ...readingOf(body), evolve, inferTypes: infersTypes(body, table, configured), arrivedAtNs };
}

async function uploadAll(ports: FlushPorts, table: TableRecord, { extents }: SealedFlush): Promise<NewExtent[]> {
  const startedMs = ports.clock.monotonicMs();
  const uploaded = await Promise.all(extents.map((extent) => uploadExtent(ports, table, extent)));
  INGEST_METRICS.of(ports.metrics).uploadDuration.observe((ports.clock.monotonicMs() - startedMs) / 1000);
  return uploaded;
}

function rejectFailed(bodies: FlushBody[], sealed: SealedFlush): Survivor[] {
  const survivors: Survivor[] = [];
  bodies.forEach((body, i) => {
    const outcome = sealed.outcomes[i];
    if (outcome === undefined) body.answer.reject(new EngineError("internal", "the sealer gave no outcome"));
    else if (outcome.ok && outcome.rows === 0) body.answer.resolve(ackOfNothing(outcome.rejected));
    else if (outcome.ok) survivors.push({ body, rows: outcome.rows, outcome });
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
  const steps = survivors.flatMap(({ body }) => body.source ?? []);
  const sources = steps.length === 0 ? {} : { sources: steps };
  const { id: tableId, schemaVersion } = table;
  return { tableId, schemaVersion, newColumns, extents, ledger, ...keysFreeAtMs, ...sources };
}

async function concludeCommit(
  ports: FlushPorts,
  commit: FlushCommit,
  outcome: Awaited<ReturnType<Committer["commit"]>>,
  survivors: Survivor[],
): Promise<FlushBody[]> {
  if (outcome.kind === "committed") {
    for (const { body, rows, outcome: sealed } of survivors) {
      const share = shareOf(commit.extents, rows);
      body.answer.resolve({ snapshotId: outcome.snapshot.id, ...share, replayed: false, ...toldOf(sealed) });
    }
    return [];
  }
  INGEST_METRICS.of(ports.metrics).commitConflicts.inc({ reason: CONFLICTS[outcome.kind] });
  await discardExtents(ports, commit.extents);
  if (outcome.kind === "position_conflict") return rejectMoved(survivors, outcome.positions);
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

/** The bodies whose inputs are where they begin; the others hear where those are. */
function rejectMoved(survivors: readonly Survivor[], positions: readonly SourcePosition[]): FlushBody[] {
  // Of inputs that are not named, the catalog says nothing: they are where they begin.
  const named = new Set(positions.map(({ name }) => name));
  const placed = survivors.flatMap(({ body }) =>
    body.source === undefined || !named.has(body.source.name) ? [] : [{ body, step: body.source }],
  );
  const fits = stepsThatFit(
    placed.map(({ step }) => step),
    positions,
  );
  const moved = placed.filter((_, i) => fits[i] !== true);
  for (const { body, step } of moved) {
    const position = positions.find(({ name }) => name === step.name)?.position;
    body.answer.reject(new PositionMoved({ name: step.name, position }));
  }
  const gone = new Set(moved.map(({ body }) => body));
  return survivors.map(({ body }) => body).filter((body) => !gone.has(body));
}
