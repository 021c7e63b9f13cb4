import type { Catalog } from "../../catalog/catalog.ts";
import type { Clock } from "../../core/clock.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { IngestService } from "../../ingest/ingest.ts";
import type { ObjectStore } from "../../io/objectstore/objectstore.ts";
import type { QueryService } from "../../query/query.ts";

/** What the routes about the process itself work with. */
export type ServiceDeps = {
  metrics: Metrics;
  version: string;
  /** Whether `/health` says that the server is about to stop. */
  isDraining: () => boolean;
};

/** What queries, and reads of the catalog, work with. */
export type QueryDeps = {
  query: QueryService;
  catalog: Catalog;
  clock: Clock;
  schemaCacheTtlMs: number;
};

/** What ingest, and the administration of tables, work with. */
export type IngestDeps = {
  ingest: IngestService;
  catalog: Catalog;
  store: ObjectStore;
};
