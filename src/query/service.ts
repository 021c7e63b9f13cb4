import { QUERY_METRICS } from "./metrics.ts";
import { mayUseDatabase } from "../auth/caller.ts";
import { SnapshotHolds } from "../catalog/snapshot-holds.ts";
import { withTimeLimit, type TimerHandle } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import { Attempt, type AttemptDeps, type AttemptTools, type Outcome, type QueryContext } from "./attempt.ts";
import { Admission } from "./budgets/admission.ts";
import { budgetError, budgetOf, loweredBudget } from "./budgets/budget.ts";
import { LargeTexts } from "./budgets/large-texts.ts";
import { supervise } from "./budgets/supervision.ts";
import { Watchdog } from "./budgets/watchdog.ts";
import type { QueryRequest, QueryResult } from "./contract/query.ts";
import type { Conversion, Converted, QueryProcesses } from "./contract/engines.ts";
import {
  QueryEnded,
  type Followable,
  type Followed,
  type FollowedQuery,
  type RunningQueries,
} from "./contract/running.ts";
import { CHECK_WALL_MS, checkIn, wrong } from "./check.ts";
import type { CheckRequest, QueryCheck, QueryChecker } from "./contract/check.ts";
import { converted } from "./conversion.ts";
import { createExtentFetcher } from "./fetch/fetch.ts";
import type { QueryAudit } from "./query-audit.ts";
import { databaseNotFound } from "../auth/name-not-found.ts";
import { isImpliedDatabase } from "./resolve/resolve-tables.ts";
import type { ChildPool } from "./scan/child-pool.ts";
import { watchedBody } from "./stream/watched-body.ts";
import { QueryLog, type QueryTrace } from "./system-tables/query-log.ts";
import { KqlQuery } from "./translator/kql-query.ts";
import type { Translator } from "./translator/translator.ts";

/** Runs queries in the processes of the pool, over tables of the catalog and extents of the store. */
export type QueryServiceOptions = AttemptDeps & {
  store: ObjectStore;
  /** Closed together with the service. */
  pool: ChildPool;
  /** Closed together with the service. */
  translator: Translator;
  tempDir: string;
  /** Is told of queries that fail. */
  audit?: QueryAudit;
  wallMs: number;
  memoryBytes: number;
  /** What the budgets of all queries that run may add up to. */
  totalMemoryBytes: number;
  /** Queries in flight at most, those waiting for a process included; 0 for no limit. */
  maxConcurrent: number;
  /** The same for one tenant. */
  maxConcurrentPerTenant: number;
  retryAfterSecs: number;
  newId: IdSource;
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
  /** Query engines of others, for which a query may be small that is too large here. */
  engineNames?: () => Promise<readonly string[]>;
};

export type ClosableQueryService = QueryProcesses &
  RunningQueries &
  QueryChecker & {
    /** Kills what runs. */
    close(): Promise<void>;
  };

export function createQueryService(options: QueryServiceOptions): ClosableQueryService {
  const service = new Queries(options);
  return {
    run: (request) => service.run(request),
    convert: (conversion) => service.convert(conversion),
    check: (request) => service.check(request),
    states: (asker) => service.queryLog.states(asker),
    state: (asker, id) => service.queryLog.state(asker, id),
    end: (ender, id) => service.end(ender, id),
    follow: (query, work) => service.followOther(query, work),
    close: () => service.close(),
  };
}

/** Callers do not wait for each other, nor for themselves in another database. */
function tenantOf({ caller, database }: Pick<QueryRequest, "database"> & Pick<Conversion, "caller">): string {
  return `${caller.subject}\0${database}`;
}

const CACHE_SWEEP_MS = 300_000;
/** Of a query that failed for what was not its own fault, at one size of its permit. */
const MAX_RETRIES = 1;

class Queries {
  readonly #options: QueryServiceOptions;
  readonly #tools: AttemptDeps & AttemptTools;
  readonly #admission: Admission;
  readonly #holds: SnapshotHolds | undefined;
  #sweepTimer: TimerHandle | undefined;
  #isClosed = false;

  constructor(options: QueryServiceOptions) {
    this.#options = options;
    this.#tools = {
      ...options,
      fetcher: createExtentFetcher(options),
      queryLog: new QueryLog(options),
      watchdog: new Watchdog(options),
      largeTexts: new LargeTexts(),
    };
    this.#admission = createAdmission(options);
    const { node, holdTtlMs } = options;
    this.#watch(options);
    this.#sweepLater();
    if (node !== undefined) {
      this.#holds = new SnapshotHolds({ ...options, node, ...(holdTtlMs !== undefined && { ttlMs: holdTtlMs }) });
    }
  }

  #watch({ pool, totalMemoryBytes, ...options }: QueryServiceOptions): void {
    const metrics = QUERY_METRICS.of(options.metrics);
    const admission = this.#admission;
    metrics.queriesRunning.watch({}, () => admission.state.inFlight);
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
        const gone = await this.#tools.fetcher.sweep((ids) => catalog.goneExtents(ids));
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
      await Promise.all([this.#options.pool.close(), this.#options.translator.close()]);
    } finally {
      await this.#holds?.close();
    }
  }

  async run(request: QueryRequest): Promise<QueryResult> {
    const { catalog, clock } = this.#options;
    const metrics = QUERY_METRICS.of(this.#options.metrics);
    const budget = loweredBudget(this.#options, request.budget);
    // To a caller who is limited to others a database does not exist, whether it does or not.
    if (!mayUseDatabase(request.caller, request.database)) {
      const refusal = await databaseNotFound(catalog, request, { refused: true });
      this.#options.audit?.failed(request, refusal);
      throw refusal;
    }
    const permit = this.#admission.enter({ tenant: tenantOf(request), memoryBytes: budget.memoryBytes });
    const startedMs = clock.monotonicMs();
    let outcome = "ok";
    try {
      return await this.#follow(request, (signal, trace) =>
        this.#runBounded({ request: { ...request, signal }, budget, permit, trace }),
      );
    } catch (error) {
      outcome = error instanceof EngineError ? error.code : "internal";
      if (outcome === "budget_exceeded") metrics.queryBudgetKills.inc({ budget: budgetOf(error)?.name ?? "unknown" });
      throw error;
    } finally {
      permit.leave();
      metrics.queryDuration.observe({ outcome }, (clock.monotonicMs() - startedMs) / 1000);
    }
  }

  get queryLog(): QueryLog {
    return this.#tools.queryLog;
  }

  /** See `RunningQueries`. */
  end(ender: Parameters<RunningQueries["end"]>[0], id: string): boolean {
    const ended = this.queryLog.end(ender.caller, id, new QueryEnded(ender.caller.subject));
    if (ended !== undefined) this.#options.audit?.ended(ender, ended);
    return ended !== undefined;
  }

  /** See `RunningQueries`. */
  async followOther<A extends Followable>(query: FollowedQuery, work: (query: Followed) => Promise<A>): Promise<A> {
    return await this.#follow(query, async (signal, trace) => {
      trace.databaseExists();
      trace.enter("scan");
      const answer = await work({ signal, onProgress: (percent) => trace.add({ percent }) });
      trace.add({ rows: answer.rows });
      return answer;
    });
  }

  /** Keeps the query among those that run until its answer is read, and writes down what became of it. */
  async #follow<A extends Followable>(
    query: FollowedQuery & Pick<QueryRequest, "saveTo" | "runOnBy">,
    work: (signal: AbortSignal, trace: QueryTrace) => Promise<A>,
  ): Promise<A> {
    const { audit, metrics } = this.#options;
    const ending = new AbortController();
    const trace = this.queryLog.start(query, (reason) => {
      ending.abort(reason);
      // Of an answer that nobody reads just now.
      trace.streamed(reason);
    });
    const endedBy = (): unknown => (ending.signal.aborted ? ending.signal.reason : undefined);
    try {
      const { body, ...answer } = await work(AbortSignal.any([query.signal, ending.signal]), trace);
      trace.end();
      QUERY_METRICS.of(metrics).queryRows.inc(answer.rows);
      if (query.saveTo !== undefined) trace.streamed();
      return { ...answer, body: watchedBody(body, () => trace.streamed(endedBy())) } as A;
    } catch (thrown) {
      const error = endedBy() ?? (await this.#pointingElsewhere(thrown, query));
      trace.end(error);
      audit?.failed(query, error);
      throw error;
    }
  }

  /** A query that reads more than it may is told where else it can run. */
  async #pointingElsewhere(
    error: unknown,
    { caller, runOnBy }: FollowedQuery & Pick<QueryRequest, "runOnBy">,
  ): Promise<unknown> {
    const { engineNames, log } = this.#options;
    const mayBeSent = runOnBy !== undefined && caller.databases === undefined;
    const isTooLarge = budgetOf(error)?.name === "object_store_bytes";
    if (!(error instanceof EngineError) || !isTooLarge || !mayBeSent || engineNames === undefined) return error;
    try {
      const names = await engineNames();
      if (names.length === 0) return error;
      const hint = `a query engine can take it, in its own SQL: send it with ${runOnBy}: ${names.join(" or ")}`;
      return new EngineError(error.code, `${error.message}; ${hint}`, { ...error.details, hint });
    } catch (failure) {
      log.warn({ err: failure }, "cannot list the query engines; the error has no hint");
      return error;
    }
  }

  /** Takes the place and the memory of a query; its time, and who waits for it, are for the caller to say. */
  async convert(conversion: Conversion): Promise<Converted> {
    const { pool } = this.#options;
    const { signal } = conversion;
    const budget = loweredBudget(this.#options, conversion.budget);
    const permit = this.#admission.enter({ tenant: tenantOf(conversion), memoryBytes: budget.memoryBytes });
    try {
      await permit.reserve(signal);
      // Of files on this machine it takes long only where there is much of it: then it waits for its turn among such.
      if (!permit.grow()) {
        permit.outgrow();
        await permit.reserve(signal);
      }
      const child = await pool.lease(signal);
      const supervision = supervise({ ...this.#options, ...this.#tools, child, stop: signal, permit, budget });
      try {
        return await converted(child, conversion, budget);
      } catch (error) {
        throw supervision.reasonOf(error);
      } finally {
        supervision.end();
        pool.release(child);
      }
    } finally {
      permit.leave();
    }
  }

  /** See `QueryChecker`. */
  async check(request: CheckRequest): Promise<QueryCheck> {
    const { catalog, clock, pool } = this.#options;
    const { database, caller } = request;
    const isKnown =
      mayUseDatabase(caller, database) &&
      (isImpliedDatabase(database) || (await catalog.database(database)) !== undefined);
    if (!isKnown) throw await databaseNotFound(catalog, request);
    const budget = loweredBudget(this.#options, { wallMs: CHECK_WALL_MS });
    const permit = this.#admission.enter({ tenant: tenantOf(request), memoryBytes: budget.memoryBytes });
    const late = (): Error => budgetError("wall_clock_ms", budget.wallMs, budget.wallMs);
    try {
      return await withTimeLimit(clock, { ms: budget.wallMs, late, signal: request.signal }, async (stop) => {
        const bounds = { signal: stop, memoryBytes: budget.memoryBytes };
        let kql: KqlQuery | undefined;
        try {
          kql = request.language === "kql" ? await KqlQuery.translate(this.#options, request, bounds) : undefined;
        } catch (error) {
          return wrong(error, request);
        }
        await permit.reserve(stop);
        const child = await pool.lease(stop);
        try {
          return await checkIn(child, request, kql, { ...this.#options, ...this.#tools, permit, budget, stop });
        } finally {
          pool.release(child);
        }
      });
    } finally {
      permit.leave();
    }
  }

  /** Within the wall-clock budget, and only as long as the client is there. */
  async #runBounded(query: Omit<QueryContext, "stop" | "reading" | "kql">): Promise<QueryResult> {
    const { catalog, clock, metrics } = this.#options;
    const { request, budget, trace } = query;
    const stop = new AbortController();
    const startedMs = clock.monotonicMs();
    const timer = clock.after(budget.wallMs, () => {
      stop.abort(budgetError("wall_clock_ms", clock.monotonicMs() - startedMs, budget.wallMs));
    });
    const onGone = (): void => {
      const { reason } = request.signal as { reason: unknown };
      stop.abort(reason instanceof QueryEnded ? reason : new EngineError("cancelled", "the client left"));
    };
    request.signal.addEventListener("abort", onGone, { once: true });
    if (request.signal.aborted) onGone();
    const reading = this.#holds?.open((reason) => {
      QUERY_METRICS.of(metrics).queryHoldLapses.inc();
      stop.abort(reason);
    });
    try {
      const isKnown = this.#tools.queryLog.knows(request.database);
      if (isKnown || (await catalog.database(request.database)) !== undefined) trace.databaseExists();
      return await this.#attemptUntilDone({ ...query, stop: stop.signal, reading });
    } finally {
      reading?.close();
      timer.cancel();
      request.signal.removeEventListener("abort", onGone);
    }
  }

  /**
   * Attempts to answer the query until one attempt says how it ends. A query that outgrows its permit waits for a larger
   * one and starts over; one that failed for what was not its own fault is tried once more.
   */
  async #attemptUntilDone(query: Omit<QueryContext, "kql">): Promise<QueryResult> {
    const { request, permit, stop, trace } = query;
    const { log } = this.#options;
    const metrics = QUERY_METRICS.of(this.#options.metrics);
    // Before it takes what a query in SQL could have.
    let kql = await this.#translate(query);
    await permit.reserve(stop);
    for (let failures = 0; ;) {
      const outcome = await this.#attempt({ ...query, kql });
      switch (outcome.kind) {
        case "answered":
          return outcome.result;
        case "failed":
          throw outcome.reason;
        case "retryable":
          if (++failures > MAX_RETRIES) throw outcome.reason;
          log.warn({ requestId: request.requestId, err: outcome.reason }, "a query is run again");
          metrics.queryRestarts.inc({ reason: "retryable" });
          trace.enter("queue");
          kql = await this.#translate(query);
          break;
        case "outgrown":
          failures = 0;
          permit.outgrow();
          metrics.queryRestarts.inc({ reason: "outgrown" });
          trace.enter("queue");
          await permit.reserve(stop);
      }
    }
  }

  async #translate({ request, budget, stop, trace }: Omit<QueryContext, "kql">): Promise<KqlQuery | undefined> {
    if (request.language !== "kql") return undefined;
    trace.enter("translate");
    const kql = await KqlQuery.translate(this.#options, request, { signal: stop, memoryBytes: budget.memoryBytes });
    trace.enter("queue");
    return kql;
  }

  /** In the first process that is free. */
  async #attempt(query: QueryContext): Promise<Outcome> {
    const { pool } = this.#options;
    const child = await pool.lease(query.stop);
    try {
      return await new Attempt(this.#tools, query, child).run();
    } finally {
      pool.release(child);
    }
  }
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
      QUERY_METRICS.of(metrics).queryRefused.inc({ reason });
      QUERY_METRICS.of(metrics).queryDuration.observe({ outcome: "too_many_requests" }, 0);
    },
  });
}
