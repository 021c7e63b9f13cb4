import type { Catalog } from "../../catalog/catalog.ts";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { IngestService } from "../../ingest/ingest.ts";
import type { ObjectStore } from "../../io/objectstore/objectstore.ts";
import type { QueryService } from "../../query/query.ts";

/** What the engine's routes work with. */
export type EngineDeps = {
  catalog: Catalog;
  store: ObjectStore;
  ingest: IngestService;
  query: QueryService;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  version: string;
  /** Whether the server refuses new work because it is about to stop. */
  isDraining: () => boolean;
  schemaCacheTtlMs: number;
};
