import { QUERY_OPTIONS } from "../src/query/options.ts";
import { valuesOf } from "../src/config/option.ts";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { AuditLog } from "../src/auth/audit.ts";
import { listStaged } from "../src/ingest/staged/listing.ts";
import { queryCapacity, type QueryCapacity } from "../src/query/budgets/capacity.ts";
import { createChildPool } from "../src/query/scan/child-pool.ts";
import { confinementOf } from "./confinement.ts";
import { rootOf } from "../src/query/fetch/fetch.ts";
import { canLend } from "../src/query/scan/lend-files.ts";
import { availableMemoryBytes } from "../src/query/budgets/memory-limit.ts";
import { QueryAudit } from "../src/query/query-audit.ts";
import type { QueryProcesses } from "../src/query/contract/engines.ts";
import type { QueryChecker } from "../src/query/contract/check.ts";
import type { RunningQueries } from "../src/query/contract/running.ts";
import type { EngineRegistry } from "../src/query/engines/registry.ts";
import type { QueryService } from "../src/query/contract/query.ts";
import { contributed } from "../src/feature/collect.ts";
import { checkDeclared } from "../src/query/system-tables/system-tables.ts";
import { createQueryService } from "../src/query/service.ts";
import { keepTranslations } from "../src/query/translator/kept-translations.ts";
import { createTranslator } from "../src/query/translator/translator.ts";
import { Tails } from "../src/query/tail/tails.ts";
import type { Parts } from "./parts.ts";
import type { Storage } from "./storage.ts";

/** What the role `query` is made of. */
export async function createQuery(
  parts: Parts,
  storage: Storage,
  engines?: Pick<EngineRegistry, "names">,
): Promise<{ service: QueryProcesses & RunningQueries & QueryChecker; confinement: string }> {
  const systemTables = await contributed(parts.features, (feature) => feature.systemTables?.());
  checkDeclared(systemTables);
  const { log, metrics, clock, newId, cleanup } = parts;
  const config = valuesOf(QUERY_OPTIONS, parts.config);
  const { memoryBytes, totalMemoryBytes, processes } = capacityForQueries(parts);
  const confinement = await confinementOf(parts);
  const common = { log, clock, tempDir: join(config.home, "tmp") };
  const { queryRetryAfterSecs: retryAfterSecs } = config;
  const snapshotDir = join(config.home, "cache", "kql");
  const translator = keepTranslations(
    createTranslator({ ...common, metrics, confinement, snapshotDir, memoryBytes, retryAfterSecs }),
  );
  const service = createQueryService({
    ...storage,
    ...common,
    metrics,
    audit: new QueryAudit({ audit: new AuditLog(storage.records, newId), clock, log }),
    systemTables,
    listStaged: () => listStaged(storage.store, config.pathPrefix),
    pool: createChildPool({
      ...common,
      children: config.queryWorkers,
      childrenAtFirst: 1,
      maxChildren: processes,
      memoryBytes,
      confinement,
      systemTables,
      readableFolders: foldersToRead(parts, storage),
      retryAfterSecs,
    }),
    translator,
    wallMs: config.queryWallMs,
    memoryBytes,
    totalMemoryBytes,
    maxConcurrent: config.queryMaxConcurrent,
    maxConcurrentPerTenant: config.queryMaxConcurrentPerTenant,
    retryAfterSecs,
    objectStoreBytes: config.queryObjectStoreBytes,
    cacheDir: config.queryCacheDir,
    cacheBytes: config.queryCacheBytes,
    slowMs: config.querySlowMs,
    node: newId(),
    newId,
    ...(engines !== undefined && { engineNames: () => engines.names() }),
  });
  cleanup.defer(() => service.close());
  if (config.kqlWarm) translator.warm();
  return { service, confinement: confinement.name };
}

/** Live tails, which are read by queries. */
export function createTails(parts: Parts, storage: Storage, query: QueryService): Tails {
  const tails = new Tails({ ...parts, ...storage, query });
  parts.cleanup.defer(async () => tails.close());
  return tails;
}

/**
 * Folders that query processes must see: none, but where extents (the store's objects where they are local files, else
 * the cache's) are on another file system than the processes' own folders.
 */
function foldersToRead({ config, log }: Parts, { store }: Storage): string[] {
  const folder = rootOf(store) ?? valuesOf(QUERY_OPTIONS, config).queryCacheDir;
  const tempDir = join(config.home, "tmp");
  for (const each of [folder, tempDir]) mkdirSync(each, { recursive: true, mode: 0o700 });
  if (canLend(folder, tempDir)) return [];
  log.warn({ folder, tempDir }, "query processes can read all extents: keep both folders on one file system");
  return [folder];
}

/** What queries may take of this machine, and a line in the log that says so. */
function capacityForQueries({ origins, log, ...parts }: Parts): QueryCapacity {
  const config = valuesOf(QUERY_OPTIONS, parts.config);
  const availableBytes = availableMemoryBytes();
  const isDefault = origins["queryMemoryBytes"]?.startsWith("default") === true;
  const asked = { workers: config.queryWorkers, memoryBytes: config.queryMemoryBytes };
  const capacity = queryCapacity({ ...asked, isDefault, availableBytes });
  log.info({ ...capacity, availableBytes }, "memory of queries");
  if (capacity.lowered && !isDefault) log.warn("ENGINE_QUERY_MEMORY_BYTES is more than queries may take; lowered");
  if (process.platform !== "linux") {
    log.warn("this system sets no limit on the memory of a process: a watchdog alone holds queries to their budgets");
  }
  return capacity;
}
