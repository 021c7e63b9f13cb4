import { apiDocsRoutes } from "../docs-routes.ts";
import { forwardedRoute, type ForwardCall } from "../edge/forwarded-route.ts";
import type { Route } from "../route.ts";
import type { IngestDeps, QueryDeps, ServiceDeps } from "./deps.ts";
import { ingestRoute, ingestRow } from "./ingest.ts";
import { queryRoute, queryRow } from "./query.ts";
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

/** Who answers a group of routes: this process, a peer, or (undefined) nobody, and then they are not there. */
type Answers<Deps> = { here: Deps } | { forward: ForwardCall } | undefined;

export type EngineRoutes = {
  service: ServiceDeps;
  query: Answers<QueryDeps>;
  ingest: Answers<IngestDeps>;
};

/** The routes of the context engine that a process has, in the order of the specification. */
export function engineRoutes({ service, query, ingest }: EngineRoutes): Route[] {
  const routes = [healthRoute(service), metricsRoute(service), ...queryRoutes(query), ...ingestRoutes(ingest)];
  if (query === undefined && ingest === undefined) return routes;
  return [...routes, ...apiDocsRoutes(routes, { title: "engine", version: service.version })];
}

function queryRoutes(query: EngineRoutes["query"]): Route[] {
  if (query === undefined) return [];
  if ("here" in query) return [queryRoute(query.here), schemaRoute(query.here)];
  return [queryRow, schemaRow].map((row) => forwardedRoute(row, query.forward));
}

function ingestRoutes(ingest: EngineRoutes["ingest"]): Route[] {
  if (ingest === undefined) return [];
  if ("here" in ingest) {
    const deps = ingest.here;
    return [ingestRoute(deps), provisionTableRoute(deps), describeTableRoute(deps), cleanupTableRoute(deps)];
  }
  const rows = [ingestRow, provisionTableRow, describeTableRow, cleanupTableRow];
  return rows.map((row) => forwardedRoute(row, ingest.forward));
}
