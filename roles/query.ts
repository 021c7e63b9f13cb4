import { join } from "node:path";

import { AuditLog } from "../src/auth/audit.ts";
import { listStaged } from "../src/ingest/staged/listing.ts";
import { queryCapacity, type QueryCapacity } from "../src/query/capacity.ts";
import { createChildPool } from "../src/query/child-pool.ts";
import { availableMemoryBytes } from "../src/query/memory-limit.ts";
import { QueryAudit } from "../src/query/query-audit.ts";
import type { QueryService } from "../src/query/query.ts";
import { createQueryService } from "../src/query/service.ts";
import type { Parts } from "./parts.ts";
import type { Storage } from "./storage.ts";

/** What the role `query` is made of. */
export function createQuery(parts: Parts, storage: Storage): QueryService {
  const { config, log, metrics, clock, newId, cleanup } = parts;
  const { memoryBytes, totalMemoryBytes, processes } = capacityForQueries(parts);
  const common = { log, clock, tempDir: join(config.home, "tmp") };
  const service = createQueryService({
    ...storage,
    ...common,
    metrics,
    audit: new QueryAudit({ audit: new AuditLog(storage.records, newId), clock, log }),
    listStaged: () => listStaged(storage.store, config.pathPrefix),
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
    node: newId(),
  });
  cleanup.defer(() => service.close());
  return service;
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
