import { apiDocsRoutes } from "../docs-routes.ts";
import { forwardedRoute, type ForwardCall } from "../edge/forwarded-route.ts";
import type { Route } from "../route.ts";
import type { SandboxDeps } from "../sandboxes/deps.ts";
import { sandboxRoutes } from "../sandboxes/routes.ts";
import * as tokens from "./api-tokens.ts";
import * as auth from "./auth.ts";
import * as credentials from "./credentials.ts";
import * as deletion from "./deletion.ts";
import type { AccessDeps, DeletionDeps, ExportDeps, FabricDeps, IngestDeps, QueryDeps, ServiceDeps } from "./deps.ts";
import { ingestRoute, ingestRow } from "./ingest.ts";
import * as exported from "./exports.ts";
import { jobEventsRoute, jobEventsRow } from "./job-events.ts";
import * as jobs from "./jobs.ts";
import * as claims from "./jobs-claim.ts";
import * as held from "./jobs-held.ts";
import { CONNECTION_ROWS, connectionRoutes } from "../oauth/connections.ts";
import * as oauth from "./oauth.ts";
import { transferOwnershipRoute, transferOwnershipRow } from "./ownership.ts";
import { queryByAddressRoute, queryByAddressRow, queryRoute, queryRow } from "./query.ts";
import * as schedules from "./schedules.ts";
import { schemaRoute, schemaRow } from "./schema.ts";
import { healthRoute, metricsRoute } from "./service.ts";
import {
  cleanupTableRoute,
  cleanupTableRow,
  describeTableRoute,
  describeTableRow,
  provisionTableRoute,
  provisionTableRow,
} from "./tables.ts";
import * as users from "./users.ts";
import * as workers from "./workers.ts";

/** Who answers a group of routes: this process, a peer, or (undefined) nobody, and then they are not there. */
type Answers<Deps> = { here: Deps } | { forward: ForwardCall } | undefined;

export type EngineRoutes = {
  service: ServiceDeps;
  query: Answers<QueryDeps>;
  ingest: Answers<IngestDeps>;
  access: Answers<AccessDeps>;
  fabric: Answers<FabricDeps>;
  exports: Answers<ExportDeps>;
  deletion: Answers<DeletionDeps>;
  sandboxes?: Answers<SandboxDeps>;
};

/** The routes of the context engine that a process has, in the order of the specification. */
export function engineRoutes(answers: EngineRoutes): Route[] {
  const { service, query, ingest, access, fabric, exports, deletion: deletions, sandboxes } = answers;
  const answered = [
    ...queryRoutes(query),
    ...deletionRoutes(deletions),
    ...exportRoutes(exports),
    ...ingestRoutes(ingest),
    ...accessRoutes(access),
    ...fabricRoutes(fabric),
    ...sandboxRoutes(sandboxes),
  ];
  const routes = [healthRoute(service), metricsRoute(service), ...answered];
  if (query === undefined && ingest === undefined) return routes;
  return [...routes, ...apiDocsRoutes(routes, { title: "engine", version: service.version })];
}

function queryRoutes(query: EngineRoutes["query"]): Route[] {
  if (query === undefined) return [];
  if ("here" in query) return [queryRoute(query.here), queryByAddressRoute(query.here), schemaRoute(query.here)];
  return [queryRow, queryByAddressRow, schemaRow].map((row) => forwardedRoute(row, query.forward));
}

function deletionRoutes(deletions: EngineRoutes["deletion"]): Route[] {
  if (deletions === undefined) return [];
  if ("forward" in deletions) return DELETION_ROWS.map((row) => forwardedRoute(row, deletions.forward));
  const deps = deletions.here;
  return [
    deletion.dropTableRoute(deps),
    deletion.dropDatabaseRoute(deps),
    deletion.deleteRowsRoute(deps),
    deletion.listDeletionsRoute(deps),
    deletion.getDeletionRoute(deps),
  ];
}

const DELETION_ROWS = [
  deletion.dropTableRow,
  deletion.dropDatabaseRow,
  deletion.deleteRowsRow,
  deletion.listDeletionsRow,
  deletion.getDeletionRow,
];

function exportRoutes(exports: EngineRoutes["exports"]): Route[] {
  if (exports === undefined) return [];
  if ("forward" in exports) return EXPORT_ROWS.map((row) => forwardedRoute(row, exports.forward));
  const deps = exports.here;
  return [
    exported.createExportRoute(deps),
    exported.getExportRoute(deps),
    exported.cancelExportRoute(deps),
    exported.downloadExportRoute(deps),
  ];
}

const EXPORT_ROWS = [
  exported.createExportRow,
  exported.getExportRow,
  exported.cancelExportRow,
  exported.downloadExportRow,
];

function ingestRoutes(ingest: EngineRoutes["ingest"]): Route[] {
  if (ingest === undefined) return [];
  if ("here" in ingest) {
    const deps = ingest.here;
    return [ingestRoute(deps), provisionTableRoute(deps), describeTableRoute(deps), cleanupTableRoute(deps)];
  }
  const rows = [ingestRow, provisionTableRow, describeTableRow, cleanupTableRow];
  return rows.map((row) => forwardedRoute(row, ingest.forward));
}

function accessRoutes(access: EngineRoutes["access"]): Route[] {
  if (access === undefined) return [];
  if ("forward" in access) return ACCESS_ROWS.map((row) => forwardedRoute(row, access.forward));
  const deps = access.here;
  return [
    auth.loginRoute(deps),
    auth.refreshRoute(deps),
    auth.logoutRoute(deps),
    auth.authConfigRoute(deps),
    auth.selfRoute(),
    tokens.createTokenRoute(deps),
    tokens.listTokensRoute(deps),
    tokens.revokeTokenRoute(deps),
    users.listUsersRoute(deps),
    users.createUserRoute(deps),
    users.changeRoleRoute(deps),
    users.resetPasswordRoute(deps),
    users.deleteUserRoute(deps),
    users.auditRoute(deps),
    transferOwnershipRoute(deps),
    credentials.createCredentialRoute(deps),
    credentials.listCredentialsRoute(deps),
    credentials.getCredentialRoute(deps),
    credentials.shareCredentialRoute(deps),
    credentials.deleteCredentialRoute(deps),
    oauth.startOAuthRoute(deps),
    oauth.oauthCallbackRoute(deps),
    oauth.confirmOAuthRoute(deps),
    oauth.oauthFlowRoute(deps),
    ...connectionRoutes(deps),
  ];
}

const ACCESS_ROWS = [
  auth.loginRow,
  auth.refreshRow,
  auth.logoutRow,
  auth.authConfigRow,
  auth.selfRow,
  tokens.createTokenRow,
  tokens.listTokensRow,
  tokens.revokeTokenRow,
  users.listUsersRow,
  users.createUserRow,
  users.changeRoleRow,
  users.resetPasswordRow,
  users.deleteUserRow,
  users.auditRow,
  transferOwnershipRow,
  credentials.createCredentialRow,
  credentials.listCredentialsRow,
  credentials.getCredentialRow,
  credentials.shareCredentialRow,
  credentials.deleteCredentialRow,
  oauth.startOAuthRow,
  oauth.oauthCallbackRow,
  oauth.confirmOAuthRow,
  oauth.oauthFlowRow,
  ...CONNECTION_ROWS,
];

function fabricRoutes(fabric: EngineRoutes["fabric"]): Route[] {
  if (fabric === undefined) return [];
  if ("forward" in fabric) return FABRIC_ROWS.map((row) => forwardedRoute(row, fabric.forward));
  const deps = fabric.here;
  return [
    workers.registerWorkerRoute(deps),
    workers.heartbeatRoute(deps),
    claims.claimJobsRoute(deps),
    jobs.enqueueOwnJobRoute(deps),
    held.progressRoute(deps),
    held.completeRoute(deps),
    held.failRoute(deps),
    held.leaseRoute(deps),
    held.releaseRoute(deps),
    held.jobLogsRoute(deps),
    held.jobCredentialRoute(deps),
    workers.createWorkerRoute(deps),
    workers.listWorkersRoute(deps),
    workers.revokeWorkerRoute(deps),
    workers.drainWorkerRoute(deps),
    workers.admitWorkerRoute(deps),
    jobs.enqueueJobRoute(deps),
    jobs.listJobsRoute(deps),
    jobs.getJobRoute(deps),
    jobs.cancelJobRoute(deps),
    jobs.retryJobRoute(deps),
    jobEventsRoute(deps),
    schedules.createScheduleRoute(deps),
    schedules.listSchedulesRoute(deps),
    schedules.getScheduleRoute(deps),
    schedules.changeScheduleRoute(deps),
    schedules.deleteScheduleRoute(deps),
    schedules.runScheduleRoute(deps),
  ];
}

const FABRIC_ROWS = [
  workers.registerWorkerRow,
  workers.heartbeatRow,
  claims.claimJobsRow,
  jobs.enqueueOwnJobRow,
  held.progressRow,
  held.completeRow,
  held.failRow,
  held.leaseRow,
  held.releaseRow,
  held.jobLogsRow,
  held.jobCredentialRow,
  workers.createWorkerRow,
  workers.listWorkersRow,
  workers.revokeWorkerRow,
  workers.drainWorkerRow,
  workers.admitWorkerRow,
  jobs.enqueueJobRow,
  jobs.listJobsRow,
  jobs.getJobRow,
  jobs.cancelJobRow,
  jobs.retryJobRow,
  jobEventsRow,
  schedules.createScheduleRow,
  schedules.listSchedulesRow,
  schedules.getScheduleRow,
  schedules.changeScheduleRow,
  schedules.deleteScheduleRow,
  schedules.runScheduleRow,
];
