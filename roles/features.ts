import { ACCESS } from "../src/access/feature.ts";
import { BACKUPS } from "../src/backup/feature.ts";
import { CAPACITY } from "../src/capacity/feature.ts";
import { COMPACTION } from "../src/compaction/feature.ts";
import { CREDENTIALS } from "../src/credentials/feature.ts";
import { DEPLOY } from "../src/deploy/feature.ts";
import type { Feature, FeatureParts } from "../src/feature/feature.ts";
import { INSTALL } from "../src/install/feature.ts";
import { INGEST } from "../src/ingest/feature.ts";
import { KAFKA } from "../src/ingest/inputs/kafka/feature.ts";
import { FILE_DROP } from "../src/ingest/inputs/filedrop/feature.ts";
import { QUERY } from "../src/query/feature.ts";
import { SERVERS } from "../src/servers/feature.ts";
import { FILE_SYNC } from "../src/knowledge/filesync/feature.ts";
import { GRAPH } from "../src/knowledge/graph/feature.ts";
import { DASHBOARDS } from "../src/knowledge/dashboards/feature.ts";
import { AGENT } from "../src/knowledge/agent/feature.ts";
import { DREAMING } from "../src/knowledge/dreaming/feature.ts";
import { PIPELINES } from "../src/knowledge/pipelines/feature.ts";
import { MCP } from "../src/knowledge/mcp/feature.ts";
import { OPEN_TABLES } from "../src/open-tables/feature.ts";
import { MEMORY } from "../src/knowledge/memory/feature.ts";
import { SANDBOX } from "../src/sandbox/feature.ts";
import { WORKBENCH } from "../src/workbench/feature.ts";
import { WEB } from "../src/web/feature.ts";
import type { FabricDeps } from "../src/fabric/routes/deps.ts";
import type { ServiceDeps } from "../src/server/service.ts";
import type { AnsweredDeps } from "./answerers.ts";

/** A feature of this program, whatever its routes work with. */
export type EngineFeature = Feature<AnsweredDeps>;

/** What the folders below the features contribute: they know nothing of `Feature`. */
const SERVICE: Feature<{ service: ServiceDeps }> = {
  name: "service",
  title: "Every node",
  routes: async () => {
    const { SERVICE_ROUTES } = await import("../src/server/service.ts");
    return [{ name: "service", answeredBy: "service", routes: SERVICE_ROUTES }];
  },
};

const CATALOG: FeatureParts = {
  name: "catalog",
  title: "Catalog",
  migrations: async () => (await import("../src/catalog/migrations/migrations.ts")).CATALOG_MIGRATIONS,
};

const AUTH: FeatureParts = {
  name: "auth",
  title: "Authentication",
  options: async () => (await import("../src/auth/options.ts")).AUTH_OPTIONS,
  migrations: async () => (await import("../src/auth/tables.ts")).AUTH_MIGRATIONS,
};

const JOBS: Feature<{ fabric: FabricDeps }> = {
  name: "jobs",
  title: "Jobs",
  options: async () => (await import("../src/fabric/options.ts")).FABRIC_OPTIONS,
  migrations: async () => (await import("../src/fabric/tables.ts")).FABRIC_MIGRATIONS,
  commands: {
    jobs: () => import("../src/fabric/commands/jobs.ts"),
  },
  routes: async () => {
    const { FABRIC_ROUTES, WORKER_ROUTES } = await import("../src/fabric/routes/fabric-routes.ts");
    return [
      { name: "workers", answeredBy: "fabric", routes: WORKER_ROUTES },
      { name: "jobs", answeredBy: "fabric", routes: FABRIC_ROUTES },
    ];
  },
  metrics: async () => (await import("../src/fabric/metrics.ts")).JOB_METRICS,
  jobKinds: async () => (await import("../src/fabric/kinds.ts")).PLANNED_KINDS,
  duties: { worker: async (deps) => (await import("../src/fabric/duties.ts")).jobDuties(deps) },
};

/** Every feature of the program: THE list. A new one is its folder and a line here. */
export const FEATURES: readonly EngineFeature[] = [
  SERVICE,
  CATALOG,
  AUTH,
  COMPACTION,
  QUERY,
  INGEST,
  KAFKA,
  FILE_DROP,
  ACCESS,
  CREDENTIALS,
  JOBS,
  MEMORY,
  GRAPH,
  DASHBOARDS,
  MCP,
  AGENT,
  DREAMING,
  PIPELINES,
  FILE_SYNC,
  SANDBOX,
  WORKBENCH,
  INSTALL,
  BACKUPS,
  OPEN_TABLES,
  SERVERS,
  DEPLOY,
  CAPACITY,
  WEB,
];
