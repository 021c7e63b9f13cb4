import type { AccessDeps } from "../src/access/deps.ts";
import { ACCESS_ROUTES } from "../src/access/access-routes.ts";
import { cleanupTableRoute, type CleanupDeps } from "../src/compaction/routes/cleanup.ts";
import { DELETION_ROUTES, type DeletionDeps } from "../src/compaction/routes/deletion.ts";
import { CREDENTIAL_ROUTES } from "../src/credentials/routes/credential-routes.ts";
import type { ConnectionDeps } from "../src/credentials/routes/deps.ts";
import { jobCredentialRoute, type JobCredentialDeps } from "../src/credentials/routes/job-credential.ts";
import type { FabricDeps } from "../src/fabric/routes/deps.ts";
import { FABRIC_ROUTES, WORKER_ROUTES } from "../src/fabric/routes/fabric-routes.ts";
import type { IngestDeps } from "../src/ingest/routes/deps.ts";
import { INGEST_ROUTES } from "../src/ingest/routes/ingest-routes.ts";
import type { ExportDeps, QueryDeps } from "../src/query/routes/deps.ts";
import { EXPORT_ROUTES, QUERY_ROUTES } from "../src/query/routes/query-routes.ts";
import type { SandboxDeps } from "../src/sandbox/control/routes/deps.ts";
import { SANDBOX_ROUTES } from "../src/sandbox/control/routes/sandbox-routes.ts";
import { apiDocsRoutes } from "../src/server/docs-routes.ts";
import { routesOf, type Answerer, type Route } from "../src/server/route.ts";
import { SERVICE_ROUTES, type ServiceDeps } from "../src/server/service.ts";

/** Who answers each group of routes. */
export type Answerers = {
  service: ServiceDeps;
  query: Answerer<QueryDeps>;
  ingest: Answerer<IngestDeps & CleanupDeps>;
  access: Answerer<AccessDeps & ConnectionDeps>;
  fabric: Answerer<FabricDeps & JobCredentialDeps>;
  exports: Answerer<ExportDeps>;
  deletion: Answerer<DeletionDeps>;
  sandboxes?: Answerer<SandboxDeps>;
};

/** The routes that a process has, in the order of the specification. */
export function engineRoutes(answerers: Answerers): Route[] {
  const { service, query, ingest, access, fabric, exports, deletion, sandboxes } = answerers;
  const routes = [
    ...routesOf(SERVICE_ROUTES, { here: service }),
    ...routesOf(QUERY_ROUTES, query),
    ...routesOf(DELETION_ROUTES, deletion),
    ...routesOf(EXPORT_ROUTES, exports),
    ...routesOf(INGEST_ROUTES, ingest),
    ...routesOf([cleanupTableRoute], ingest),
    ...routesOf(ACCESS_ROUTES, access),
    ...routesOf(CREDENTIAL_ROUTES, access),
    ...routesOf(WORKER_ROUTES, fabric),
    ...routesOf([jobCredentialRoute], fabric),
    ...routesOf(FABRIC_ROUTES, fabric),
    ...routesOf(SANDBOX_ROUTES, sandboxes),
  ];
  if (query === undefined && ingest === undefined) return routes;
  return [...routes, ...apiDocsRoutes(routes, { title: "engine", version: service.version })];
}
