import type { Catalog } from "../../catalog/catalog.ts";
import type { Clock } from "../../core/clock.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { Fabric } from "../../fabric/fabric.ts";
import type { ObjectStore } from "../../io/objectstore/objectstore.ts";
import type { QueryProcesses } from "../contract/engines.ts";
import type { QueryChecker } from "../contract/check.ts";
import type { OtherNodes } from "../contract/nodes.ts";
import type { RunningQueries } from "../contract/running.ts";
import type { RemoteJobs } from "../engines/remote-jobs.ts";
import type { EngineRegistry } from "../engines/registry.ts";
import type { RemoteQueries } from "../engines/remote-queries.ts";
import type { Tails } from "../tail/tails.ts";

/** What queries, and reads of the catalog, work with. */
export type QueryDeps = {
  query: QueryProcesses;
  running: RunningQueries;
  checker: QueryChecker;
  nodes: OtherNodes;
  remote: RemoteQueries;
  catalog: Catalog;
  clock: Clock;
  schemaCacheTtlMs: number;
  log: Log;
  metrics: Metrics;
  newId: IdSource;
  tails: Pick<Tails, "open">;
};

/** What exports work with. */
export type ExportDeps = {
  fabric: Fabric;
  catalog: Catalog;
  store: ObjectStore;
  clock: Clock;
  engines: Pick<EngineRegistry, "find">;
  remoteJobs: Pick<RemoteJobs, "endAll">;
  log: Log;
};
