import { mkdir } from "node:fs/promises";
import { join } from "node:path";

import { createApp } from "../src/api/app.ts";
import { errorResponse, asEngineError } from "../src/api/error-response.ts";
import { engineRoutes } from "../src/api/engine/routes.ts";
import { requestIdOf } from "../src/api/request-id.ts";
import type { Catalog } from "../src/catalog/catalog.ts";
import { openSqliteCatalog } from "../src/catalog/sqlite/sqlite.ts";
import type { Address } from "../src/config/kinds.ts";
import type { LoadedConfig } from "../src/config/load.ts";
import { systemClock } from "../src/core/clock.ts";
import { StartupError, systemCodeOf } from "../src/core/errors.ts";
import { uuidV7Source } from "../src/core/ids.ts";
import type { Service } from "../src/core/lifecycle.ts";
import { assertLimits } from "../src/core/limits.ts";
import { createLog, type Log } from "../src/core/log.ts";
import { createMetrics, type Metrics } from "../src/core/metrics.ts";
import { systemRandom } from "../src/core/random.ts";
import { VERSION } from "../src/core/version.ts";
import { Committer } from "../src/ingest/committer.ts";
import { createSealPool, type SealPool } from "../src/ingest/seal-pool.ts";
import { createIngestService } from "../src/ingest/service.ts";
import { createHttpServer } from "../src/io/http/create.ts";
import { DEFAULT_SHAPE } from "../src/format/types.ts";
import { openFilesystemStore } from "../src/io/objectstore/filesystem.ts";
import type { ObjectStore } from "../src/io/objectstore/objectstore.ts";
import { createChildPool } from "../src/query/child-pool.ts";
import { createQueryService } from "../src/query/service.ts";
import { runUntilStopped } from "./serve.ts";

/** Everything in one process: HTTP, ingest, queries, on a SQLite catalog and the local disk. */
export type AllInOneOptions = LoadedConfig & { listen: Address };

const LEDGER_SWEEP_MS = 60_000;
const MAX_HEADER_BYTES = 64 * 1024;
const HEADERS_TIMEOUT_MS = 15_000;
const IDLE_TIMEOUT_MS = 60_000;

export async function runAllInOne(options: AllInOneOptions): Promise<number> {
  assertLimits();
  const { config } = options;
  const log = createLog(config.logLevel);
  for (const warning of options.warnings) log.warn(warning);
  const catalog = await openCatalog(options, log);
  try {
    const store = await openFilesystemStore({ root: config.localData, random: systemRandom, log });
    return await serve({ ...options, log, catalog, store });
  } finally {
    await catalog.close();
  }
}

async function openCatalog({ config }: AllInOneOptions, log: Log): Promise<Catalog> {
  if (config.catalogUrl.kind !== "sqlite") {
    throw new StartupError("a PostgreSQL catalog is not supported yet: unset ENGINE_CATALOG_URL or use sqlite:PATH", 2);
  }
  return openSqliteCatalog({ path: config.catalogUrl.path, clock: systemClock, log, mode: "server" });
}

type Wiring = AllInOneOptions & { log: Log; catalog: Catalog; store: ObjectStore };

async function serve(wiring: Wiring): Promise<number> {
  const { config, log, catalog, store } = wiring;
  const metrics = createMetrics({ process: true });
  const tempDir = join(config.home, "tmp");
  await mkdir(tempDir, { recursive: true, mode: 0o700 });
  const sealPool = createSealPool({ threads: config.sealThreads, log });
  const ingest = createIngest(wiring, metrics, sealPool);
  const children = createChildPool({
    children: config.queryWorkers,
    memoryBytes: config.queryMemoryBytes,
    log,
    clock: systemClock,
    tempDir,
  });
  const query = createQueryService({
    catalog,
    store,
    pool: children,
    clock: systemClock,
    log,
    metrics,
    tempDir,
    wallMs: config.queryWallMs,
    memoryBytes: config.queryMemoryBytes,
    maxConcurrent: config.queryMaxConcurrent,
    retryAfterSecs: config.queryRetryAfterSecs,
  });
  const draining = { on: false };
  const newId = uuidV7Source(systemClock, systemRandom);
  const app = createApp({
    routes: engineRoutes({
      catalog,
      store,
      ingest,
      query,
      clock: systemClock,
      log,
      metrics,
      version: VERSION,
      isDraining: () => draining.on,
      schemaCacheTtlMs: config.schemaCacheTtlSecs * 1000,
    }),
    cors: { origins: config.corsAllowedOrigins },
    clock: systemClock,
    newId,
    log,
    metrics,
    isDraining: () => draining.on,
  });
  const server = createHttpServer({
    driver: config.httpDriver,
    handler: app.handler,
    renderError: (error, request) => {
      const requestId = requestIdOf(request.header("x-request-id"), newId);
      const response = errorResponse(asEngineError(error, requestId), requestId);
      response.headers["X-Request-ID"] = requestId;
      return response;
    },
    maxHeaderBytes: MAX_HEADER_BYTES,
    headersTimeoutMs: HEADERS_TIMEOUT_MS,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
  });

  const drainTimeoutMs = config.drainTimeoutSecs * 1000;
  return runUntilStopped({
    log,
    drainTimeoutMs,
    services: [
      ledgerSweeper(catalog, log),
      {
        name: "sealing",
        run: () => warmUp(sealPool),
        drain: async () => {},
        stop: () => sealPool.close(),
      },
      { name: "ingest", run: async () => {}, drain: async () => {}, stop: () => ingest.drain() },
      { name: "queries", run: async () => {}, drain: async () => {}, stop: () => query.close() },
      {
        name: "http",
        run: async () => announce(await listen(server, wiring.listen), server.driver, wiring),
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

function createIngest({ config, log, catalog, store }: Wiring, metrics: Metrics, sealPool: SealPool) {
  return createIngestService({
    catalog,
    store,
    committer: new Committer({
      catalog,
      clock: systemClock,
      metrics,
      windowMs: config.commitWindowMs,
      maxExtents: config.commitMaxExtents,
    }),
    seal: sealPool.seal,
    clock: systemClock,
    random: systemRandom,
    newId: uuidV7Source(systemClock, systemRandom),
    log,
    metrics,
    format: config.writeFormat,
    keyPrefix: config.pathPrefix,
    staging: {
      maxRows: config.flushMaxRows,
      maxBytes: config.flushMaxBytes,
      maxAgeMs: config.flushMaxAgeMs,
      disabled: config.stagingDisabled,
    },
    maxInflightBytes: config.ingestMaxInflightBytes,
  });
}

async function listen(server: ReturnType<typeof createHttpServer>, address: Address): Promise<Address> {
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

function announce(address: Address, driver: string, { config, catalog: _catalog, log, origins }: Wiring): void {
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  const url = `http://${host}:${address.port}`;
  const catalog = config.catalogUrl.kind === "sqlite" ? config.catalogUrl.path : "postgres";
  log.info({ url, driver, version: VERSION, catalog, data: config.localData, homeFrom: origins.home }, "listening");
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
