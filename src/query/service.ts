import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Catalog, ExtentRecord, Snapshot, TableRecord } from "../catalog/catalog.ts";
import type { Clock } from "../core/clock.ts";
import { Semaphore } from "../core/concurrency.ts";
import { EngineError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import { nearest } from "../core/nearest.ts";
import { ObjectNotFound, type ObjectStore } from "../io/objectstore/objectstore.ts";
import type { ChildPool } from "./child-pool.ts";
import type { LocalExtent, NeededTable, Needs, ResolvedTable, TableShape } from "./protocol.ts";
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

const FETCHES = 16;

export function createQueryService(options: QueryServiceOptions): ClosableQueryService {
  const service = new Queries(options);
  return { run: (request) => service.run(request), close: () => options.pool.close() };
}

class Queries {
  readonly #options: QueryServiceOptions;
  readonly #fetches = new Semaphore(FETCHES);
  readonly #roots: readonly string[];
  #running = 0;

  constructor(options: QueryServiceOptions) {
    this.#options = options;
    this.#roots = rootsOf(options.store);
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
    const fetched: string[] = [];
    let rssBytes = 0;
    try {
      const { text, database } = request;
      const needs = await child.ask({ kind: "parse", text, database, roots: this.#roots });
      if (needs.kind !== "needs") throw unexpected(needs.kind);
      const resolved = await this.#resolve(child, request.database, needs, stop, fetched);
      const done = await child.ask({ kind: "run", ...resolved });
      if (done.kind !== "done") throw unexpected(done.kind);
      rssBytes = done.rssBytes;
      return { rows: done.rows, body: await readOnce(done.file, request.signal) };
    } catch (error) {
      throw stop.aborted ? stop.reason : error;
    } finally {
      stop.removeEventListener("abort", onStop);
      await Promise.all(fetched.map((path) => rm(path, { force: true })));
      this.#options.pool.release(child, rssBytes);
    }
  }

  /** Resolves what the query needs; on failure the child forgets the query and stays good for the next one. */
  async #resolve(
    child: QueryProcess,
    database: string,
    needs: Needs,
    stop: AbortSignal,
    fetched: string[],
  ): Promise<{ tables: ResolvedTable[]; listed: TableShape[] }> {
    try {
      const { catalog } = this.#options;
      const known = await catalog.database(database);
      if (known === undefined) throw await this.#databaseNotFound(database);
      // Read once: all tables of a query are seen at the same snapshot.
      const head = await catalog.head();
      const tables: ResolvedTable[] = [];
      for (const need of needs.tables) tables.push(await this.#table(known.name, need, head, child, stop, fetched));
      const listed = needs.listsTables ? await catalog.tables(known.name) : [];
      return { tables, listed: listed.map(({ name, columns }) => ({ name, columns })) };
    } catch (error) {
      if (child.alive) await child.ask({ kind: "drop" });
      throw error;
    }
  }

  async #table(
    database: string,
    need: NeededTable,
    head: Snapshot,
    child: QueryProcess,
    stop: AbortSignal,
    fetched: string[],
  ): Promise<ResolvedTable> {
    const { catalog } = this.#options;
    const table = await catalog.table(database, need.name);
    if (table === undefined) throw await this.#tableNotFound(database, need);
    const snapshot = need.version ?? BigInt(head.id);
    if (snapshot < 0n || snapshot > BigInt(head.id)) {
      const message = `there is no snapshot ${snapshot}; the newest is ${head.id}`;
      throw new EngineError("invalid_query", message, placeOf(need));
    }
    const extents = await catalog.extents(table.id, Number(snapshot), need.range);
    const local = await Promise.all(extents.map((extent) => this.#local(extent, child, stop, fetched)));
    return { ...shapeOf(table), extents: local };
  }

  async #local(extent: ExtentRecord, child: QueryProcess, stop: AbortSignal, fetched: string[]): Promise<LocalExtent> {
    const { store } = this.#options;
    const { id, format, rows } = extent;
    const path = store.localPath?.(extent.key);
    if (path !== undefined) return { id, format, rows, path };
    const copy = join(child.folder, `${id}.${format}`);
    await this.#fetches.run(async () => {
      stop.throwIfAborted();
      fetched.push(copy);
      await writeFile(copy, await fetchExtent(store, extent, stop));
    });
    return { id, format, rows, path: copy };
  }

  async #databaseNotFound(name: string): Promise<EngineError> {
    const databases = await this.#options.catalog.databases();
    const suggestion = nearest(
      name,
      databases.map((database) => database.name),
    );
    return notFound("database_not_found", "database", name, suggestion, {});
  }

  async #tableNotFound(database: string, need: NeededTable): Promise<EngineError> {
    const tables = await this.#options.catalog.tables(database);
    const suggestion = nearest(
      need.name,
      tables.map((table) => table.name),
    );
    return notFound("table_not_found", "table", need.name, suggestion, placeOf(need));
  }
}

function notFound(
  code: "database_not_found" | "table_not_found",
  thing: string,
  name: string,
  suggestion: string | undefined,
  place: { line?: number; column?: number },
): EngineError {
  const hint = suggestion === undefined ? "" : `; did you mean ${JSON.stringify(suggestion)}?`;
  return new EngineError(code, `there is no ${thing} ${JSON.stringify(name)}${hint}`, {
    ...place,
    ...(suggestion === undefined ? {} : { suggestion }),
  });
}

function placeOf(need: NeededTable): { line?: number; column?: number } {
  const { line, column } = need;
  return line === undefined || column === undefined ? {} : { line, column };
}

function shapeOf(table: TableRecord): TableShape {
  return { name: table.name, columns: table.columns.map(({ name, type }) => ({ name, type })) };
}

async function fetchExtent(store: ObjectStore, extent: ExtentRecord, signal: AbortSignal): Promise<Uint8Array> {
  try {
    return await store.get(extent.key, { signal });
  } catch (error) {
    if (!(error instanceof ObjectNotFound)) throw error;
    throw new EngineError("query_failed", `the data of extent ${extent.id} is missing`, { cause: error });
  }
}

/** The folder that holds the objects of a store with local paths. */
function rootsOf(store: ObjectStore): string[] {
  const probe = "probe";
  const path = store.localPath?.(probe);
  return path?.endsWith(probe) === true ? [path.slice(0, -probe.length)] : [];
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
