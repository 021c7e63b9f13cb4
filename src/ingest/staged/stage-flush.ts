import { INGEST_METRICS } from "../metrics.ts";
import type { TableRecord } from "../../catalog/catalog.ts";
import { releaseShared } from "../../core/buffer-pool.ts";
import type { Clock } from "../../core/clock.ts";
import { EngineError, fromErrorRecord, messageOf } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import { LIMITS } from "../../core/limits.ts";
import type { Log } from "../../core/log.ts";
import type { Metrics } from "../../core/metrics.ts";
import { foldName } from "../../core/names.ts";
import { specOf, type ColumnSpec, type ExtentFormat } from "../../format/types.ts";
import { objectKeys, type ObjectStore } from "../../io/objectstore/objectstore.ts";
import { heldUp, rejectUnlessCreating, toSeal, type FlushBody, type Target } from "../flush.ts";
import { infersTypes, shapeFor } from "../tables.ts";
import { ackOfNothing, readingOf, toldOf, type IngestAck } from "../ingest.ts";
import type { BodyOutcome, SealedBody, SealedExtent, Sealer } from "../seal.ts";
import { sealWholeOrInCuts, type SealedFlush } from "../seal-cuts.ts";
import { hasCatchAll } from "./catch-all.ts";
import type { CatalogReach } from "./catalog-reach.ts";
import { checkInTime, isHeldUp } from "./lateness.ts";
import { compressBody, encodeStaged, type StagedExtent, type StagedRequest } from "./object.ts";
import type { SchemaCache } from "./schema-cache.ts";
import type { StagedKeys } from "./staged-keys.ts";

export type StagePorts = {
  reach: CatalogReach;
  schemas: SchemaCache;
  keys: StagedKeys;
  store: ObjectStore;
  seal: Sealer;
  sealThreads: number;
  clock: Clock;
  newId: IdSource;
  log: Log;
  metrics: Metrics;
  keyPrefix: string;
  /** The format of new extents. Only `tlm` ones are sealed here. */
  format: ExtentFormat;
  /** `ENGINE_INGEST_INFER_TYPES`; false unless given. */
  inferTypes?: boolean;
  /** This ingest node: a segment of object keys. */
  node: string;
};

/** A body that can be read; `asIs` when it travels as it came. */
type Survivor = { body: FlushBody; rows: number; outcome: SealedBody; asIs: boolean };
type Plan = { table: TableRecord; survivors: Survivor[]; extents: StagedExtent[] };

/**
 * Runs one flush of staged ingest to its end: seals what it can, writes one object, and answers every body. Never
 * rejects: failures go to the bodies.
 */
export async function stageFlush(
  ports: StagePorts,
  target: Target,
  bodies: FlushBody[],
  onSealed: () => void,
): Promise<void> {
  try {
    const plan = await planFor(ports, target, bodies);
    onSealed();
    if (plan !== undefined && plan.survivors.length > 0) await write(ports, plan);
  } catch (error) {
    ports.log.error({ err: error, database: target.database, table: target.table }, "could not stage a flush");
    const failure =
      error instanceof EngineError
        ? error
        : new EngineError("ingest_failed", `nothing was stored: ${messageOf(error)}`, { cause: error });
    // Those that have their answer already do not hear of it.
    for (const body of bodies) body.answer.reject(failure);
  }
}

/** Undefined when all bodies for a table that does not exist were refused. */
async function planFor(ports: StagePorts, target: Target, bodies: FlushBody[]): Promise<Plan | undefined> {
  const remembered = await ports.schemas.remembered(target);
  // What is settled with the catalog needs the table itself: one that was dropped since is made anew.
  const isRemembered = remembered === undefined || hasCatchAll(remembered.columns);
  const known = isRemembered ? remembered : await ports.schemas.current(target);
  if (known !== undefined) return planUnder(ports, known, bodies);
  // The table is created when rows for it were read, as in sync mode: a refused body leaves none behind.
  const sealable = rejectUnlessCreating(target, bodies);
  const { extents, outcomes } = await sealBodies(ports, undefined, sealable);
  release(extents);
  const readable = rejectFailed(sealable, outcomes, () => true).map(({ body }) => body);
  if (readable.length === 0) return undefined;
  const inferTypes = infersTypes(readable[0] ?? {}, undefined, ports.inferTypes);
  await ports.schemas.create({ ...target, ...shapeFor(readable) }, inferTypes);
  // Somebody else may have created it with other columns, so they are read anew.
  return planUnder(ports, await ports.schemas.fresh(target), readable);
}

function planUnder(ports: StagePorts, table: TableRecord, bodies: FlushBody[]): Promise<Plan> {
  const target = { database: table.database, table: table.name };
  return hasCatchAll(table.columns) ? sealCertain(ports, table, bodies) : settle(ports, target, bodies);
}

/**
 * Seals the bodies whose every field has a column that the node knows of: such a column holds what it holds under whatever
 * columns the table has by now (one that was widened since has the same values). The others travel as they came, since
 * what a field that is unknown here is to be depends on the columns that the commit meets; and so do those with a fraction
 * for a column that may be widened.
 */
async function sealCertain(ports: StagePorts, table: TableRecord, bodies: FlushBody[]): Promise<Plan> {
  const sealed = await sealBodies(ports, table, bodies);
  // No column can come to a table that has all it may have.
  const mayGrow = table.columns.length < LIMITS.columnsPerTable;
  const survivors = rejectFailed(bodies, sealed.outcomes, (outcome) => {
    const mayWiden = outcome.fractions !== undefined;
    return ports.format !== "tlm" || mayWiden || (mayGrow && outcome.unknownFields === true);
  });
  if (!survivors.some(({ asIs }) => asIs))
    return { table, survivors, extents: described(table.columns, sealed.extents) };
  release(sealed.extents);
  const certain = survivors.filter(({ asIs }) => !asIs).map(({ body }) => body);
  if (certain.length === 0) return { table, survivors, extents: [] };
  const again = await sealBodies(ports, table, certain);
  if (again.outcomes.some(({ ok }) => !ok)) throw new Error("a body that was sealed with others cannot be sealed now");
  return { table, survivors, extents: described(table.columns, again.extents) };
}

/**
 * The same for a table that has nowhere to put what does not fit. There a commit could have to refuse a body, so all is
 * settled with the catalog before: the columns are read, and those that the bodies bring are added.
 */
async function settle(ports: StagePorts, target: Target, bodies: FlushBody[]): Promise<Plan> {
  for (let attempt = 0; attempt < LIMITS.commitAttempts; attempt++) {
    const table = await ports.schemas.fresh(target);
    const { extents, newColumns, outcomes } = await sealBodies(ports, table, bodies);
    if (newColumns.length === 0 || (await addColumns(ports, table, newColumns))) {
      const survivors = rejectFailed(bodies, outcomes, () => false);
      return { table, survivors, extents: described([...table.columns, ...newColumns], extents) };
    }
    release(extents);
  }
  ports.metrics.commitsGivenUp.inc();
  throw new EngineError(
    "ingest_failed",
    `the table's columns changed ${LIMITS.commitAttempts} times; nothing was stored`,
  );
}

/** False when the columns have changed so that these cannot be added any more. */
async function addColumns(ports: StagePorts, table: TableRecord, columns: readonly ColumnSpec[]): Promise<boolean> {
  try {
    await ports.reach.ask((catalog) => catalog.addColumns(table.id, columns));
    return true;
  } catch (error) {
    if (error instanceof EngineError && error.code === "conflict") return false;
    throw error;
  }
}

async function sealBodies(
  ports: StagePorts,
  table: TableRecord | undefined,
  bodies: FlushBody[],
): Promise<SealedFlush> {
  const startedMs = ports.clock.monotonicMs();
  const sealed = await sealWholeOrInCuts(ports.seal, ports.sealThreads, {
    columns: (table ?? shapeFor(bodies)).columns.map(specOf),
    bodies: bodies.map((body) => toSeal(body, table, ports.inferTypes)),
    format: "tlm",
  });
  INGEST_METRICS.of(ports.metrics).sealDuration.observe((ports.clock.monotonicMs() - startedMs) / 1000);
  return sealed;
}

function rejectFailed(
  bodies: FlushBody[],
  outcomes: readonly BodyOutcome[],
  asIs: (outcome: SealedBody) => boolean,
): Survivor[] {
  return bodies.flatMap((body, i) => {
    const outcome = outcomes[i];
    if (outcome?.ok === true && outcome.rows > 0) return [{ body, rows: outcome.rows, outcome, asIs: asIs(outcome) }];
    if (outcome?.ok === true) {
      body.answer.resolve(ackOfNothing(outcome.rejected));
      return [];
    }
    const internal = new EngineError("internal", "the sealer gave no outcome");
    body.answer.reject(outcome === undefined ? internal : fromErrorRecord(outcome.error));
    return [];
  });
}

/** Extents with the columns that each has, which are those that it has statistics of. */
function described(columns: readonly ColumnSpec[], extents: readonly SealedExtent[]): StagedExtent[] {
  const byName = new Map(columns.map((column) => [foldName(column.name), column.type]));
  return extents.map((extent) => ({
    ...extent,
    columns: extent.stats.map(({ name }) => {
      const type = byName.get(foldName(name));
      if (type === undefined) throw new Error(`a sealed extent has a column ${JSON.stringify(name)} of its own`);
      return { name, type };
    }),
  }));
}

function release(extents: readonly SealedExtent[]): void {
  for (const { bytes } of extents) releaseShared(bytes);
}

async function write(ports: StagePorts, { table, survivors, extents }: Plan): Promise<void> {
  const id = ports.newId();
  const requests = await describeRequests(survivors, (body) => infersTypes(body, table, ports.inferTypes));
  const shape = survivors.find(({ body }) => body.columns !== undefined)?.body.columns;
  const bytes = encodeStaged({
    id,
    node: ports.node,
    acknowledgedAtMs: ports.clock.nowMs(),
    database: table.database,
    table: table.name,
    ...(shape === undefined ? {} : { columns: shape }),
    requests,
    extents,
  });
  release(extents);
  const startedMs = ports.clock.monotonicMs();
  if (survivors.some(({ body }) => isHeldUp(body, ports.clock.nowMs()))) throw heldUp();
  await put(ports, id, bytes, requests);
  INGEST_METRICS.of(ports.metrics).uploadDuration.observe((ports.clock.monotonicMs() - startedMs) / 1000);
  INGEST_METRICS.of(ports.metrics).stagedWrittenObjects.inc();
  INGEST_METRICS.of(ports.metrics).stagedWrittenBytes.inc(bytes.byteLength);
  const allRows = survivors.reduce((sum, { rows }) => sum + rows, 0);
  for (const { body, rows, outcome } of survivors) {
    const sizeBytes = Math.round((bytes.byteLength * rows) / allRows);
    const known = { snapshotId: undefined, extentCount: 0, rows, sizeBytes };
    const ack: IngestAck = { ...known, replayed: false, staged: true, ...toldOf(outcome) };
    if (body.key !== undefined) ports.keys.remember(table.id, body.key, ack);
    body.answer.resolve(ack);
  }
}

function describeRequests(
  survivors: readonly Survivor[],
  inferTypes: (body: FlushBody) => boolean,
): Promise<StagedRequest[]> {
  let end = 0;
  return Promise.all(
    survivors.map(async ({ body, rows, asIs }): Promise<StagedRequest> => {
      const { key, evolve, autoCreate, arrivedAtNs } = body;
      const common = { ...(key === undefined ? {} : { key }), rows, evolve, autoCreate, arrivedAtNs };
      // The commit goes by what was decided here: its node may be configured otherwise.
      const infers = inferTypes(body) ? { inferTypes: true } : {};
      if (asIs) {
        const compressed = await compressBody(body.bytes);
        return { ...common, ...infers, place: { kind: "body", body: compressed, ...readingOf(body) } };
      }
      const from = end;
      end += rows;
      return { ...common, place: { kind: "rows", from } };
    }),
  );
}

/**
 * Writes the object, and sees to it that it came in time. After a failure it is deleted, in case that it is there; but a
 * write that the store has not finished may still come out of it, so the outcome is not known.
 */
async function put(ports: StagePorts, id: string, bytes: Uint8Array, requests: StagedRequest[]): Promise<void> {
  const place = { prefix: ports.keyPrefix, node: ports.node, id };
  const key = objectKeys.staged(place);
  try {
    await ports.store.put(key, bytes);
    await checkInTime(ports.store, place, requests);
  } catch (error) {
    await ports.store.delete([key]).catch((reason: unknown) => {
      ports.log.warn({ err: reason, key }, "could not delete a staged object whose write failed");
    });
    if (error instanceof EngineError) throw error;
    const advice = "whether it took effect is not known; retry with the same X-Idempotency-Key";
    throw new EngineError("ingest_failed", `${messageOf(error)}: ${advice}`, { cause: error });
  }
}
