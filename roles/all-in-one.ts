import { join } from "node:path";

import { createApp, type App } from "../src/api/app.ts";
import { asEngineError, errorResponse } from "../src/api/error-response.ts";
import { engineRoutes } from "../src/api/engine/routes.ts";
import { requestIdOf } from "../src/api/request-id.ts";
import type { Catalog } from "../src/catalog/catalog.ts";
import { openSqliteCatalog } from "../src/catalog/sqlite/sqlite.ts";
import type { Address } from "../src/config/kinds.ts";
import type { LoadedConfig } from "../src/config/load.ts";
import { systemClock } from "../src/core/clock.ts";
import { StartupError, systemCodeOf } from "../src/core/errors.ts";
import { uuidV7Source, type IdSource } from "../src/core/ids.ts";
import { Cleanup, type Service } from "../src/core/lifecycle.ts";
import { assertLimits } from "../src/core/limits.ts";
import { createLog, type Log } from "../src/core/log.ts";
import { createMetrics, type Metrics } from "../src/core/metrics.ts";
import { systemRandom } from "../src/core/random.ts";
import { VERSION } from "../src/core/version.ts";
import { DEFAULT_SHAPE } from "../src/format/types.ts";
import { Committer } from "../src/ingest/committer.ts";
import type { IngestService } from "../src/ingest/ingest.ts";
import type { Sealer } from "../src/ingest/seal.ts";
import { createSealPool, type SealPool } from "../src/ingest/seal-pool.ts";
import { createIngestService } from "../src/ingest/service.ts";
import { createHttpServer } from "../src/io/http/create.ts";
import type { HttpServer } from "../src/io/http/http.ts";
import { openFilesystemStore } from "../src/io/objectstore/filesystem.ts";
import type { ObjectStore } from "../src/io/objectstore/objectstore.ts";
import { queryCapacity, type QueryCapacity } from "../src/query/capacity.ts";
import { createChildPool } from "../src/query/child-pool.ts";
import { availableMemoryBytes } from "../src/query/memory-limit.ts";
import { createQueryService, type ClosableQueryService } from "../src/query/service.ts";
import { runUntilStopped } from "./serve.ts";

/** Everything in one process: HTTP, ingest, queries, on a SQLite catalog and the local disk. */
export type AllInOneOptions = LoadedConfig & { listen: Address };

const LEDGER_SWEEP_MS = 60_000;
const MAX_HEADER_BYTES = 64 * 1024;
const HEADERS_TIMEOUT_MS = 15_000;
const IDLE_TIMEOUT_MS = 60_000;

export async function runAllInOne(options: AllInOneOptions): Promise<number> {
  assertLimits();
  const log = createLog(options.config.logLevel);
  for (const warning of options.warnings) log.warn(warning);
  const cleanup = new Cleanup();
  try {
    return await run(options, await openParts(options, log, cleanup));
  } finally {
    await cleanup.run();
  }
}

async function run(options: AllInOneOptions, parts: Parts): Promise<number> {
  const { log } = parts;
  const draining = { on: false };
  const app = createApp({
    ...parts,
    routes: engineRoutes({
      ...parts,
      version: VERSION,
      isDraining: () => draining.on,
      schemaCacheTtlMs: options.config.schemaCacheTtlSecs * 1000,
    }),
    cors: { origins: options.config.corsAllowedOrigins },
    isDraining: () => draining.on,
  });
  const server = createServer(options, parts, app);
  const drainTimeoutMs = options.config.drainTimeoutSecs * 1000;
  return runUntilStopped({
    log,
    drainTimeoutMs,
    services: [
      ledgerSweeper(parts.catalog, log),
      {
        name: "http",
        run: async () => announce(await listen(server, options.listen), server.driver, options, log),
        drain: async () => {
          // New work is refused and /health says so, while what was accepted is finished; then the door closes.
          draining.on = true;
          await app.idle();
          await server.drain(drainTimeoutMs);
        },
        stop: () => server.close(),
      },
    ],
  });
}

/** What the server is made of. Everything that was opened is closed with `cleanup`, the last first. */
async function openParts(options: AllInOneOptions, log: Log, cleanup: Cleanup) {
  const { config } = options;
  const clock = systemClock;
  const newId = uuidV7Source(clock, systemRandom);
  const metrics = createMetrics({ process: true });
  const catalog = await openCatalog(options, log);
  cleanup.defer(() => catalog.close());
  const store = await openFilesystemStore({ root: config.localData, random: systemRandom, log });
  const sealPool = createSealPool({ threads: config.sealThreads, log });
  cleanup.defer(() => sealPool.close());
  metrics.watchSealQueue(() => sealPool.queueDepth());
  const ingest = createIngest(options, { catalog, store, metrics, log, newId, seal: sealPool.seal });
  const query = createQuery(options, { catalog, store, metrics, log });
  cleanup.defer(() => query.close());
  await warmUp(sealPool);
  return { catalog, store, ingest, query, metrics, log, clock, newId };
}

type Parts = Awaited<ReturnType<typeof openParts>>;

async function openCatalog({ config }: AllInOneOptions, log: Log): Promise<Catalog> {
  if (config.catalogUrl.kind !== "sqlite") {
    throw new StartupError("a PostgreSQL catalog is not supported yet: unset ENGINE_CATALOG_URL or use sqlite:PATH", 2);
  }
  return openSqliteCatalog({
    path: config.catalogUrl.path,
    clock: systemClock,
    log,
    mode: "server",
    onFailure: (reason) => {
      // Nothing can be read or acknowledged any more, and what was acknowledged is safe: let a supervisor start anew.
      log.fatal({ err: reason }, "the catalog failed; the server ends");
      process.exit(1);
    },
  });
}

type Storage = { catalog: Catalog; store: ObjectStore; metrics: Metrics; log: Log };

function createIngest({ config }: AllInOneOptions, ports: Storage & { newId: IdSource; seal: Sealer }): IngestService {
  return createIngestService({
    ...ports,
    committer: new Committer({
      ...ports,
      clock: systemClock,
      windowMs: config.commitWindowMs,
      maxExtents: config.commitMaxExtents,
    }),
    clock: systemClock,
    random: systemRandom,
    sealThreads: config.sealThreads,
    format: config.writeFormat,
    keyPrefix: config.pathPrefix,
    staging: {
      maxRows: config.flushMaxRows,
      maxBytes: config.flushMaxBytes,
      maxAgeMs: config.flushMaxAgeMs,
      disabled: config.stagingDisabled,
    },
    maxInflightBytes: config.ingestMaxInflightBytes,
    rate: { perSec: config.ingestRateRps, burst: config.ingestRateBurst },
  });
}

function createQuery(options: AllInOneOptions, ports: Storage): ClosableQueryService {
  const { config } = options;
  const { memoryBytes, totalMemoryBytes, processes } = capacityForQueries(options, ports.log);
  const common = { log: ports.log, clock: systemClock, tempDir: join(config.home, "tmp") };
  return createQueryService({
    ...ports,
    ...common,
    pool: createChildPool({
      ...common,
      children: config.queryWorkers,
      maxChildren: processes,
      memoryBytes,
      retryAfterSecs: config.queryRetryAfterSecs,
    }),
    wallMs: config.queryWallMs,
    memoryBytes,
    totalMemoryBytes,
    maxConcurrent: config.queryMaxConcurrent,
    maxConcurrentPerTenant: config.queryMaxConcurrentPerTenant,
    retryAfterSecs: config.queryRetryAfterSecs,
    objectStoreBytes: config.queryObjectStoreBytes,
    cacheDir: config.queryCacheDir,
    cacheBytes: config.queryCacheBytes,
    slowMs: config.querySlowMs,
  });
}

/** What queries may take of this machine, and a line in the log that says so. */
function capacityForQueries({ config, origins }: AllInOneOptions, log: Log): QueryCapacity {
  const availableBytes = availableMemoryBytes();
  const isDefault = origins.queryMemoryBytes.startsWith("default");
  const asked = { workers: config.queryWorkers, memoryBytes: config.queryMemoryBytes };
  const capacity = queryCapacity({ ...asked, isDefault, availableBytes });
  log.info({ ...capacity, availableBytes }, "memory of queries");
  if (capacity.lowered && !isDefault) log.warn("ENGINE_QUERY_MEMORY_BYTES is more than queries may take; lowered");
  if (process.platform !== "linux") {
    log.warn("this system sets no limit on the memory of a process: a watchdog alone holds queries to their budgets");
  }
  return capacity;
}

function createServer({ config }: AllInOneOptions, { newId, log }: Parts, app: App): HttpServer {
  return createHttpServer({
    driver: config.httpDriver,
    handler: app.handler,
    renderError: (error, request) => {
      const requestId = requestIdOf(request.header("x-request-id"), newId);
      const response = errorResponse(asEngineError(error, requestId), requestId);
      response.headers["X-Request-ID"] = requestId;
      return response;
    },
    reportFailure: (error) => log.error({ err: error }, "a response could not be completed"),
    clock: systemClock,
    maxHeaderBytes: MAX_HEADER_BYTES,
    headersTimeoutMs: HEADERS_TIMEOUT_MS,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
  });
}

async function listen(server: HttpServer, address: Address): Promise<Address> {
  const shown = `${address.host}:${address.port}`;
  try {
    return await server.listen(address);
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === "EADDRINUSE") {
      throw new StartupError(`${shown} is in use by another program; stop it, or choose another with --addr`, 1, error);
    }
    if (code === "EACCES") throw new StartupError(`may not listen on ${shown}: permission denied`, 1, error);
    if (code === "EADDRNOTAVAIL") throw new StartupError(`${shown} is no address of this machine`, 2, error);
    throw error;
  }
}

function announce(address: Address, driver: string, { config }: AllInOneOptions, log: Log): void {
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  const url = `http://${host}:${address.port}`;
  const catalog = config.catalogUrl.kind === "sqlite" ? config.catalogUrl.path : "postgres";
  log.info({ url, driver, version: VERSION, node: process.version, catalog, data: config.localData }, "listening");
}

/** Seals a row that goes nowhere, so that the first client does not wait for a thread to start and load its code. */
async function warmUp(sealPool: SealPool): Promise<void> {
  const bytes = new TextEncoder().encode('{"body":"warm"}\n');
  await sealPool.seal({
    columns: DEFAULT_SHAPE,
    bodies: [{ bytes, evolve: false, arrivedAtNs: 0n }],
    format: "tlm",
  });
}

/** Expired idempotency keys leave the catalog once a minute. */
function ledgerSweeper(catalog: Catalog, log: Log): Service {
  let timer: { cancel(): void } | undefined;
  return {
    name: "ledger sweep",
    run: async () => {
      timer = systemClock.every(LEDGER_SWEEP_MS, () => {
        catalog.sweepLedger().catch((error: unknown) => log.error({ err: error }, "ledger sweep failed"));
      });
    },
    drain: async () => {},
    stop: async () => timer?.cancel(),
  };
}
