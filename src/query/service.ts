import type { Catalog } from "../catalog/catalog.ts";
import type { Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import type { ChildPool } from "./child-pool.ts";
import { createExtentFetcher, type ExtentFetcher, type Fetched } from "./fetch.ts";
import { planQuery, type QueryPlan } from "./plan.ts";
import type { QueryProcess } from "./query-process.ts";
import type { QueryRequest, QueryResult, QueryService } from "./query.ts";
import { readOnce } from "./result-file.ts";

/** Runs queries in the processes of the pool, over tables of the catalog and extents of the store. */
export type QueryServiceOptions = {
  catalog: Catalog;
  store: ObjectStore;
  /** Closed together with the service. */
  pool: ChildPool;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  tempDir: string;
  wallMs: number;
  memoryBytes: number;
  /** Queries in flight at most, those waiting for a process included; 0 for no limit. */
  maxConcurrent: number;
  retryAfterSecs: number;
};

export type ClosableQueryService = QueryService & {
  /** Kills what runs. */
  close(): Promise<void>;
};

export function createQueryService(options: QueryServiceOptions): ClosableQueryService {
  const service = new Queries(options);
  return { run: (request) => service.run(request), close: () => options.pool.close() };
}

class Queries {
  readonly #options: QueryServiceOptions;
  readonly #fetcher: ExtentFetcher;
  #running = 0;

  constructor(options: QueryServiceOptions) {
    this.#options = options;
    this.#fetcher = createExtentFetcher(options.store);
  }

  async run(request: QueryRequest): Promise<QueryResult> {
    const { clock, metrics, maxConcurrent, retryAfterSecs } = this.#options;
    if (maxConcurrent > 0 && this.#running >= maxConcurrent) {
      metrics.queryDuration.observe({ outcome: "too_many_requests" }, 0);
      throw new EngineError("too_many_requests", `${maxConcurrent} queries are running already; try again later`, {
        headers: { "Retry-After": String(retryAfterSecs) },
      });
    }
    const startedMs = clock.monotonicMs();
    let outcome = "ok";
    this.#running++;
    metrics.queriesRunning.set(this.#running);
    try {
      return await this.#runBounded(request);
    } catch (error) {
      outcome = error instanceof EngineError ? error.code : "internal";
      if (outcome === "budget_exceeded") metrics.queryBudgetKills.inc({ budget: budgetOf(error) });
      throw error;
    } finally {
      this.#running--;
      metrics.queriesRunning.set(this.#running);
      metrics.queryDuration.observe({ outcome }, (clock.monotonicMs() - startedMs) / 1000);
    }
  }

  /** Within the wall-clock budget, and only as long as the client is there. */
  async #runBounded(request: QueryRequest): Promise<QueryResult> {
    const { clock, wallMs, pool } = this.#options;
    const stop = new AbortController();
    const timer = clock.after(wallMs, () => stop.abort(wallClockError(wallMs)));
    const onGone = (): void => stop.abort(new EngineError("unavailable", "the client left"));
    request.signal.addEventListener("abort", onGone, { once: true });
    if (request.signal.aborted) onGone();
    try {
      const child = await pool.lease(stop.signal);
      return await this.#runIn(child, request, stop.signal);
    } finally {
      timer.cancel();
      request.signal.removeEventListener("abort", onGone);
    }
  }

  async #runIn(child: QueryProcess, request: QueryRequest, stop: AbortSignal): Promise<QueryResult> {
    const onStop = (): void => child.kill(stop.reason as Error);
    stop.addEventListener("abort", onStop, { once: true });
    if (stop.aborted) onStop();
    let fetched: Fetched | undefined;
    let rssBytes = 0;
    try {
      const { text, database } = request;
      const needs = await child.ask({ kind: "parse", text, database, roots: this.#fetcher.roots });
      if (needs.kind !== "needs") throw unexpected(needs.kind);
      let plan: QueryPlan;
      try {
        plan = await planQuery(this.#options.catalog, database, needs);
        fetched = await this.#fetcher.fetch(plan.tables, { folder: child.folder, signal: stop, charge: () => {} });
      } catch (error) {
        // The child forgets the query and stays good for the next one.
        if (child.alive) await child.ask({ kind: "drop" });
        throw error;
      }
      const done = await child.ask({ kind: "run", tables: fetched.tables, listed: plan.listed });
      if (done.kind !== "done") throw unexpected(done.kind);
      rssBytes = done.rssBytes;
      return { rows: done.rows, body: await readOnce(done.file, request.signal) };
    } catch (error) {
      throw stop.aborted ? stop.reason : error;
    } finally {
      stop.removeEventListener("abort", onStop);
      await fetched?.release();
      this.#options.pool.release(child, rssBytes);
    }
  }
}

function wallClockError(wallMs: number): EngineError {
  return new EngineError("budget_exceeded", `the query took longer than its budget of ${wallMs} ms`, {
    headers: { "X-Engine-Budget-Limit": `wall_clock_ms=${wallMs}` },
  });
}

function budgetOf(error: unknown): string {
  const limit = error instanceof EngineError ? error.details.headers?.["X-Engine-Budget-Limit"] : undefined;
  return limit?.split("=")[0] ?? "unknown";
}

function unexpected(kind: string): Error {
  return new EngineError("query_failed", `the query process answered ${kind} out of turn`);
}
