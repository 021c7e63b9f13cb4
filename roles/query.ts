import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { listStaged } from "../src/ingest/staged/listing.ts";
import { queryCapacity, type QueryCapacity } from "../src/query/capacity.ts";
import { createChildPool } from "../src/query/child-pool.ts";
import type { Confinement } from "../src/query/confinement/confinement.ts";
import { configuredConfinement } from "../src/query/confinement/open-confinement.ts";
import { rootOf } from "../src/query/fetch.ts";
import { availableMemoryBytes } from "../src/query/memory-limit.ts";
import type { QueryService } from "../src/query/query.ts";
import { createQueryService } from "../src/query/service.ts";
import type { Parts } from "./parts.ts";
import type { Storage } from "./storage.ts";

/** What the role `query` is made of. */
export function createQuery(parts: Parts, storage: Storage): { service: QueryService; confinement: string } {
  const { config, log, metrics, clock, newId, cleanup } = parts;
  const { memoryBytes, totalMemoryBytes, processes } = capacityForQueries(parts);
  const confinement = confinementOf(parts);
  const common = { log, clock, tempDir: join(config.home, "tmp") };
  const service = createQueryService({
    ...storage,
    ...common,
    metrics,
    listStaged: () => listStaged(storage.store, config.pathPrefix),
    pool: createChildPool({
      ...common,
      children: config.queryWorkers,
      maxChildren: processes,
      memoryBytes,
      confinement,
      readableFolders: foldersOfExtents(parts, storage),
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
    node: newId(),
  });
  cleanup.defer(() => service.close());
  return { service, confinement: confinement.name };
}

/** How the operating system keeps query processes in, and a line in the log that says so. */
function confinementOf({ config, log }: Parts): Confinement {
  const confinement = configuredConfinement(config.queryConfinement, { log, tempDir: join(config.home, "tmp") });
  log[confinement.isOn ? "info" : "warn"]({ confinement: confinement.name }, "query confinement");
  return confinement;
}

/** The store where its objects are local files, else the cache; a process can be given only what is there. */
function foldersOfExtents({ config }: Parts, { store }: Storage): string[] {
  const folder = rootOf(store) ?? config.queryCacheDir;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return [folder];
}

/** What queries may take of this machine, and a line in the log that says so. */
function capacityForQueries({ config, origins, log }: Parts): QueryCapacity {
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
