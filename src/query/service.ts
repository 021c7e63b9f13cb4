import { rm } from "node:fs/promises";
import { mayUseDatabase } from "../auth/caller.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { RecordStore } from "../db/records.ts";
import { SnapshotHolds, type Reading } from "../catalog/snapshot-holds.ts";
import type { Clock, TimerHandle } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import { ReadBudget } from "./read-budget.ts";
import { Admission, type Permit } from "./admission.ts";
import { budgetError, budgetOf, loweredBudget, type QueryBudget } from "./budget.ts";
import type { ChildPool } from "./child-pool.ts";
import { createExtentFetcher, type ExtentFetcher, type Fetched } from "./fetch.ts";
import { LargeTexts } from "./large-texts.ts";
import { lendFiles, type LentFiles } from "./lend-files.ts";
import { databaseNotFound, expiryOf, explainPruning, planQuery, type QueryPlan } from "./plan.ts";
import { inputFolder, outputFolder } from "./process-folders.ts";
import type { ResolvedTable } from "./protocol.ts";
import type { QueryProcess } from "./query-process.ts";
import type { QueryAudit } from "./query-audit.ts";
import { QueryLog, type QueryFigures, type QueryTrace } from "./query-log.ts";
import type { QueryRequest, QueryResult, QueryService } from "./query.ts";
import { bodyOf, checkedData, saveResult } from "./result-body.ts";
import { Outgrown, supervise } from "./supervision.ts";
import { writeSystemTables, type StagedWrite } from "./system-rows.ts";
import type { SystemTableFile } from "./system-tables.ts";
import { watchedBody } from "./watched-body.ts";
import { Watchdog } from "./watchdog.ts";

/** Runs queries in the processes of the pool, over tables of the catalog and extents of the store. */
export type QueryServiceOptions = {
  catalog: Catalog;
  /** For what `system.` has of records. */
  records: Pick<RecordStore, "rows">;
  store: ObjectStore;
  /** Closed together with the service. */
  pool: ChildPool;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  tempDir: string;
  /** What is staged and not committed, for `system.staged`; called when a query names it. */
  listStaged: () => AsyncIterable<StagedWrite>;
  /** Is told of queries that fail. */
  audit?: QueryAudit;
  /** Whether extents without a row of interest are left out; `false` only to compare. */
  prune?: boolean;
  wallMs: number;
  memoryBytes: number;
  /** What the budgets of all queries that run may add up to. */
  totalMemoryBytes: number;
  /** Queries in flight at most, those waiting for a process included; 0 for no limit. */
  maxConcurrent: number;
  /** The same for one tenant. */
  maxConcurrentPerTenant: number;
  /** How long a query counts as a small one. */
  largeAfterMs?: number;
  retryAfterSecs: number;
  /** Queries that take at least this long are logged; 0 for none. */
  slowMs: number;
  /** Bytes that one query may read from the object store. */
  objectStoreBytes: number;
  /** For extents of stores without local files; used by this service alone. */
  cacheDir: string;
  /** Bytes that stay there; 0 for none. */
  cacheBytes: number;
  /** Under this name the node says which snapshots its queries read; no other service may have it. Absent: it does not. */
  node?: string;
  /** How long the catalog believes that, unless it is said again. */
  holdTtlMs?: number;
};

export type ClosableQueryService = QueryService & {
  /** Kills what runs. */
  close(): Promise<void>;
};

export function createQueryService(options: QueryServiceOptions): ClosableQueryService {
  const service = new Queries(options);
  return { run: (request) => service.run(request), close: () => service.close() };
}

type RunContext = {
  stop: AbortSignal;
  reading: Reading | undefined;
  trace: QueryTrace;
  permit: Permit;
  budget: QueryBudget;
};

async function* none(): AsyncGenerator<never> {}

/** Callers do not wait for each other, nor for themselves in another database. */
function tenantOf({ caller, database }: QueryRequest): string {
  return `${caller.subject}\0${database}`;
}

const CACHE_SWEEP_MS = 300_000;
/** A query that has so much to read is large from the start. */
const LARGE_READ_BYTES = 64 * 1024 * 1024;

class Queries {
  readonly #options: QueryServiceOptions;
  readonly #fetcher: ExtentFetcher;
  readonly #queryLog: QueryLog;
  readonly #admission: Admission;
  readonly #watchdog: Watchdog;
  readonly #largeTexts = new LargeTexts();
  readonly #holds: SnapshotHolds | undefined;
  #sweepTimer: TimerHandle | undefined;
  #isClosed = false;

  constructor(options: QueryServiceOptions) {
    this.#options = options;
    this.#fetcher = createExtentFetcher(options);
    this.#queryLog = new QueryLog(options);
    this.#admission = createAdmission(options);
    this.#watchdog = new Watchdog(options);
    const { node, holdTtlMs } = options;
    this.#watch(options);
    this.#sweepLater();
    if (node !== undefined) {
      this.#holds = new SnapshotHolds({ ...options, node, ...(holdTtlMs !== undefined && { ttlMs: holdTtlMs }) });
    }
  }

  #watch({ metrics, pool, totalMemoryBytes }: QueryServiceOptions): void {
    const admission = this.#admission;
    metrics.queriesWaiting.watch({ for: "memory" }, () => admission.state.waiting);
    metrics.queriesWaiting.watch({ for: "process" }, () => pool.state().waiting);
    metrics.queryMemoryReserved.watch({}, () => admission.state.reservedBytes);
    metrics.queryMemoryLimit.watch({}, () => totalMemoryBytes);
    metrics.queryProcesses.watch({ state: "busy" }, () => pool.state().busy);
    metrics.queryProcesses.watch({ state: "idle" }, () => pool.state().idle);
    metrics.queryHeldSnapshot.watch({}, () => this.#holds?.oldestHeld);
  }

  /** What the catalog has forgotten is kept on this machine for a few minutes more. */
  #sweepLater(): void {
    const { catalog, clock, log } = this.#options;
    const sweep = async (): Promise<void> => {
      try {
        const gone = await this.#fetcher.sweep((ids) => catalog.goneExtents(ids));
        if (gone > 0) log.debug({ extents: gone }, "cached extents that are gone are deleted");
      } catch (error) {
        log.warn({ err: error }, "cached extents that are gone could not be deleted; it will be tried again");
      }
      if (!this.#isClosed) this.#sweepLater();
    };
    this.#sweepTimer = clock.after(CACHE_SWEEP_MS, () => void sweep(), { background: true });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#sweepTimer?.cancel();
    try {
      await this.#options.pool.close();
    } finally {
      await this.#holds?.close();
    }
  }

  async run(request: QueryRequest): Promise<QueryResult> {
    const { clock, metrics } = this.#options;
    const budget = loweredBudget(this.#options, request.budget);
    const { catalog } = this.#options;
    // To a caller who is limited to others a database does not exist, whether it does or not.
    if (!mayUseDatabase(request.caller, request.database)) {
      const refusal = await databaseNotFound(catalog, request, { refused: true });
      this.#options.audit?.failed(request, refusal);
      throw refusal;
    }
    const permit = this.#admission.enter({ tenant: tenantOf(request), memoryBytes: budget.memoryBytes });
    const startedMs = clock.monotonicMs();
    const trace = this.#queryLog.start(request);
    let outcome = "ok";
    metrics.queriesRunning.set(this.#admission.state.inFlight);
    try {
      const { rows, columns, body } = await this.#runBounded(request, { trace, permit, budget });
      trace.end();
      metrics.queryRows.inc(rows);
      if (request.saveTo !== undefined) trace.streamed();
      return { rows, columns, body: watchedBody(body, () => trace.streamed()) };
    } catch (error) {
      trace.end(error);
      this.#options.audit?.failed(request, error);
      outcome = error instanceof EngineError ? error.code : "internal";
      if (outcome === "budget_exceeded") metrics.queryBudgetKills.inc({ budget: budgetOf(error)?.name ?? "unknown" });
      throw error;
    } finally {
      permit.leave();
      metrics.queriesRunning.set(this.#admission.state.inFlight);
      metrics.queryDuration.observe({ outcome }, (clock.monotonicMs() - startedMs) / 1000);
    }
  }

  /** Within the wall-clock budget, and only as long as the client is there. */
  async #runBounded(request: QueryRequest, context: Omit<RunContext, "stop" | "reading">): Promise<QueryResult> {
    const { catalog, clock } = this.#options;
    const { trace, budget } = context;
    const stop = new AbortController();
    const startedMs = clock.monotonicMs();
    const timer = clock.after(budget.wallMs, () => {
      stop.abort(budgetError("wall_clock_ms", clock.monotonicMs() - startedMs, budget.wallMs));
    });
    const onGone = (): void => stop.abort(new EngineError("cancelled", "the client left"));
    request.signal.addEventListener("abort", onGone, { once: true });
    if (request.signal.aborted) onGone();
    const reading = this.#holds?.open((reason) => {
      this.#options.metrics.queryHoldLapses.inc();
      stop.abort(reason);
    });
    try {
      const isKnown = this.#queryLog.knows(request.database);
      if (isKnown || (await catalog.database(request.database)) !== undefined) trace.databaseExists();
      return await this.#runAdmitted(request, { ...context, stop: stop.signal, reading });
    } finally {
      reading?.close();
      timer.cancel();
      request.signal.removeEventListener("abort", onGone);
    }
  }

  /** In the first process that is free; a query that outgrows its permit waits for a larger one and starts over. */
  async #runAdmitted(request: QueryRequest, context: RunContext): Promise<QueryResult> {
    const { permit, stop } = context;
    for (;;) {
      await permit.reserve(stop);
      try {
        return await this.#runOnceOrTwice(request, context);
      } catch (error) {
        if (!(error instanceof Outgrown)) throw error;
        permit.outgrow();
        this.#options.metrics.queryRestarts.inc({ reason: "outgrown" });
        context.trace.enter("queue");
      }
    }
  }

  async #runOnceOrTwice(request: QueryRequest, context: RunContext): Promise<QueryResult> {
    const { pool } = this.#options;
    try {
      return await this.#runIn(await pool.lease(context.stop), request, context);
    } catch (error) {
      if (!(error instanceof Unlucky)) throw error;
      this.#options.log.warn({ requestId: request.requestId, err: error.cause }, "a query is run again");
      this.#options.metrics.queryRestarts.inc({ reason: "unlucky" });
      context.trace.enter("queue");
    }
    try {
      return await this.#runIn(await pool.lease(context.stop), request, context);
    } catch (error) {
      throw error instanceof Unlucky ? error.cause : error;
    }
  }

  async #runIn(child: QueryProcess, request: QueryRequest, context: RunContext): Promise<QueryResult> {
    const { stop, reading, trace, permit } = context;
    const { memoryBytes, objectStoreBytes } = context.budget;
    const supervision = supervise({ ...context, ...this.#options, child, watchdog: this.#watchdog });
    const isKnown = this.#largeTexts.has(request);
    const budget = new ReadBudget(objectStoreBytes);
    let fetched: Fetched | undefined;
    let lent: LentFiles | undefined;
    let system: readonly SystemTableFile[] = [];
    let isParsed = false;
    let plan: QueryPlan | undefined;
    let travels = false;
    try {
      if (isKnown && !permit.grow()) throw new Outgrown();
      const { text, database, parameters, matching: selection, format = "ndjson" } = request;
      trace.enter("parse");
      const bound = parameters === undefined ? {} : { parameters };
      const needs = await child.ask({ kind: "parse", text, database, ...bound, memoryBytes, selection });
      isParsed = true;
      if (needs.kind !== "needs") throw unexpected(needs.kind);
      travels = selection !== undefined || needs.tables.some(({ travel }) => travel !== undefined);
      try {
        trace.enter("plan");
        plan = await planQuery(this.#options.catalog, request, needs, { ...this.#options, reading });
        trace.add(this.#counted(figuresOf(plan)));
        if (bytesToRead(plan) > LARGE_READ_BYTES && !permit.grow()) throw new Outgrown();
        trace.enter("fetch");
        fetched = await this.#fetcher.fetch(plan.tables, { signal: stop, budget });
        trace.add({ bytesRead: budget.usedBytes, cacheHits: fetched.cacheHits });
        const { catalog, records } = this.#options;
        // Of which database a staged write is only its bytes say: who may not see all sees none.
        const listStaged = request.caller.databases === undefined ? this.#options.listStaged : none;
        const target = { database, head: plan.head, folder: inputFolder(child.folder), signal: stop };
        const own = { records, caller: request.caller, queryLog: this.#queryLog };
        system = await writeSystemTables(needs.system, { catalog, listStaged, ...own, ...target });
        lent = await lendFiles(inputFolder(child.folder), fetched.tables);
      } catch (error) {
        // The child forgets the query and stays good for the next one.
        if (child.alive && !child.isCancelled) await child.ask({ kind: "drop" });
        throw error;
      }
      trace.enter("scan");
      const done = await child.ask({
        kind: "run",
        tables: selection?.rows === "matching" ? lent.tables.map(namingExtents) : lent.tables,
        listed: plan.listed,
        system,
        format,
        pruning: explainPruning(plan),
      });
      supervision.end();
      if (isKnown && !supervision.isLong()) this.#largeTexts.delete(request);
      if (done.kind !== "done") throw unexpected(done.kind);
      const data = checkedData(done.data, outputFolder(child.folder));
      reading?.check();
      trace.add({ rows: done.rows, ...done.usage });
      const { saveTo, signal } = request;
      if (saveTo !== undefined) await saveResult(data, saveTo);
      const body = saveTo === undefined ? await bodyOf(data, signal) : none();
      return { rows: done.rows, columns: done.columns, body };
    } catch (error) {
      const reason = supervision.reasonOf(error);
      const isUnlucky = (!isParsed && child.isLost) || fetched?.dropMissing() === true;
      if (stop.aborted) throw reason;
      if (isUnlucky) throw new Unlucky(reason);
      if (!travels && isExpiry(reason)) throw new Unlucky(reason);
      throw await this.#explained(plan, reason);
    } finally {
      supervision.end();
      if (child.isLost) this.#options.metrics.queryProcessesLost.inc();
      if (supervision.isLong()) this.#largeTexts.add(request);
      fetched?.release();
      await lent?.release();
      await Promise.all(system.map(({ path }) => rm(path, { force: true })));
      this.#options.pool.release(child);
    }
  }

  #counted(figures: QueryFigures): QueryFigures {
    const { extentsTotal = 0, extentsRead = 0 } = figures;
    const { queryExtents } = this.#options.metrics;
    queryExtents.inc({ result: "read" }, extentsRead);
    queryExtents.inc({ result: "pruned" }, extentsTotal - extentsRead);
    return figures;
  }

  /** A query whose snapshot was made unreadable under it plans again: at the head, or to hear that it is too late. */
  async #explained(plan: QueryPlan | undefined, reason: unknown): Promise<unknown> {
    if (plan === undefined || reason instanceof Outgrown || isExpiry(reason)) return reason;
    try {
      const expiry = await expiryOf(this.#options.catalog, plan);
      return expiry === undefined ? reason : new Unlucky(expiry);
    } catch (error) {
      this.#options.log.warn({ err: error }, "it is not known whether what a failed query read was still there");
      return reason;
    }
  }
}

/**
 * The query failed for what somebody did to its process before it came, to a cached file, or to the snapshot that it was
 * reading: it deserves another try.
 */
class Unlucky extends Error {
  constructor(cause: unknown) {
    super("a query found its process, a file or its snapshot gone", { cause });
  }
}

function namingExtents(table: ResolvedTable): ResolvedTable {
  return { ...table, namesExtents: true };
}

function isExpiry(error: unknown): boolean {
  return error instanceof EngineError && error.code === "snapshot_expired";
}

/** What the plan says about how much there is to read. */
function figuresOf({ tables }: QueryPlan): QueryFigures {
  const extents = tables.flatMap((table) => table.extents);
  return {
    extentsTotal: tables.reduce((sum, { pruning }) => sum + pruning.total.extents, 0),
    extentsRead: extents.length,
    rowsRead: extents.reduce((sum, extent) => sum + extent.rows, 0),
  };
}

function bytesToRead({ tables }: QueryPlan): number {
  return tables.reduce((sum, { extents }) => sum + extents.reduce((all, extent) => all + extent.sizeBytes, 0), 0);
}

function createAdmission(options: QueryServiceOptions): Admission {
  const { metrics, pool, memoryBytes } = options;
  return new Admission({
    ...options,
    maxPerTenant: options.maxConcurrentPerTenant,
    sparedMemoryBytes: memoryBytes,
    maxLarge: Math.max(1, pool.maxProcesses - 1),
    onLarge: (count) => pool.expectLarge(count),
    onRefused: (reason) => {
      metrics.queryRefused.inc({ reason });
      metrics.queryDuration.observe({ outcome: "too_many_requests" }, 0);
    },
  });
}

function unexpected(kind: string): Error {
  return new EngineError("query_failed", `the query process answered ${kind} out of turn`);
}
