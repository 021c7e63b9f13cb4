import type { Route } from "../route.ts";
import { apiDocsRoutes } from "../docs-routes.ts";
import type { EngineDeps } from "./deps.ts";
import { ingestRoute } from "./ingest.ts";
import { queryRoute } from "./query.ts";
import { schemaRoute } from "./schema.ts";
import { healthRoute, metricsRoute } from "./service.ts";
import { cleanupTableRoute, describeTableRoute, provisionTableRoute } from "./tables.ts";

/** Every route of the context engine, in the order of the specification. */
export function engineRoutes(deps: EngineDeps): Route[] {
  const routes = [
    healthRoute(deps),
    metricsRoute(deps),
    queryRoute(deps),
    schemaRoute(deps),
    ingestRoute(deps),
    provisionTableRoute(deps),
    describeTableRoute(deps),
    cleanupTableRoute(deps),
  ];
  return [...routes, ...apiDocsRoutes(routes, { title: "engine", version: deps.version })];
}
