import type { AuditLog } from "../auth/audit.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { OptionRows } from "../config/option.ts";
import type { Config } from "../config/options.ts";
import type { Clock } from "../core/clock.ts";
import type { IdSource } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import type { MetricSet } from "../core/metric-set.ts";
import type { Metrics } from "../core/metrics.ts";
import type { Random } from "../core/random.ts";
import type { Migration } from "../db/migration.ts";
import type { RecordStore } from "../db/records.ts";
import type { Signals } from "../db/signals.ts";
import type { Fabric } from "../fabric/fabric.ts";
import type { JobHandler } from "../fabric/handler.ts";
import type { JobKind } from "../fabric/kinds.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import type { RouteDefinition } from "../server/route.ts";
import type { CommandLoader } from "../client/command.ts";
import type { Capability } from "./capability.ts";
import type { LeaseLoopOptions } from "./lease-loop.ts";
import type { SystemTable } from "./system-table.ts";

/**
 * A feature is a folder that exports one of these, and `roles/features.ts` lists them all. The registries of the program
 * (options, metrics, tables, routes, job kinds, commands, duties, the generated documents) take theirs from that list.
 *
 * Everything here is optional, and a function that imports what it returns, so that a process loads only what it uses.
 */
export type Feature<Deps extends object = RouteDeps> = FeatureParts & {
  /** Answered by the process that has what they work with, and forwarded to it by an edge. */
  routes?: () => Promise<readonly RouteGroup<Deps>[]>;
};

/** What a feature contributes besides its routes. */
export type FeatureParts = {
  /** Lower-case: how the names of its metrics begin (`engine_<name>_…`). */
  name: string;
  /** The heading of its options and metrics in the documents. */
  title: string;
  /** Values by `valuesOf` (`src/config/option.ts`). A default may depend on the options of `src/config/options.ts`. */
  options?: () => Promise<OptionRows>;
  /** Registered when a server starts, so that every process knows all names. */
  metrics?: () => Promise<MetricSet>;
  /** Tables: see `Migration` for their numbers. */
  migrations?: () => Promise<readonly Migration[]>;
  /** Every process with jobs knows all kinds, whichever node runs them. */
  jobKinds?: (config: Config) => Promise<readonly JobKind[]>;
  /** Run by processes with the role `worker`. */
  jobHandlers?: (deps: FeatureDeps) => Promise<readonly JobHandler[]>;
  /** By the first word of the command line. */
  commands?: Readonly<Record<string, CommandLoader>>;
  /** Tables of the schema `system`, which every query can read. */
  systemTables?: () => Promise<readonly SystemTable[]>;
  /** What has to be set up before it works: `GET /v1/capabilities` says what is missing. */
  capabilities?: () => Promise<readonly Capability[]>;
  /** What one node of a cluster does at a time, by the role of the processes that do it. */
  duties?: {
    compaction?: (deps: CompactionDeps) => Promise<readonly FeatureDuty[]>;
    worker?: (deps: FeatureDeps) => Promise<readonly FeatureDuty[]>;
  };
};

/** What works in the background on the catalog and the store. */
export type StorageDeps = {
  config: Config;
  log: Log;
  metrics: Metrics;
  clock: Clock;
  random: Random;
  newId: IdSource;
  catalog: Catalog;
  /** Where a feature keeps rows in tables of its own. */
  records: RecordStore;
  signals: Signals;
  store: ObjectStore;
};

/** The same, with what the process does besides: clients are served first. */
export type CompactionDeps = StorageDeps & {
  /** Whether it has requests of clients in hand now. */
  isBusy: () => boolean;
  /** Whether clients may come at all. */
  hasClients: boolean;
};

/** What the routes and jobs of any feature may work with. */
export type FeatureDeps = StorageDeps & { fabric: Fabric; audit: AuditLog };

/** Who answers the routes of a feature that needs no more than `FeatureDeps`: processes with the role `query`. */
export type RouteDeps = { feature: FeatureDeps };

/** Routes with the same dependencies; `answeredBy` is their name in `roles/answerers.ts`. */
export type RouteGroup<Deps extends object = RouteDeps> = {
  [K in keyof Deps]: {
    /** Tells groups apart. */
    name: string;
    answeredBy: K;
    routes: readonly RouteDefinition<Deps[K]>[];
  };
}[keyof Deps];

/** A duty by a lease: see `LeaseLoopOptions`. */
export type FeatureDuty = Pick<LeaseLoopOptions, "name" | "pollMs" | "idlePollMs" | "ttlMs" | "wakes" | "duty">;
