import type { RouteDefinition } from "../../server/route.ts";
import type { FeatureDeps } from "../../feature/feature.ts";
import { configRoute, loadTableRoute, namespaceRoute, namespacesRoute, tablesRoute } from "./catalog.ts";
import { oauthTokenRoute, REFUSED_ROUTES } from "./refusals.ts";
import { reportRoute } from "./reports.ts";

/** Iceberg's catalog protocol. */
export const ICEBERG_ROUTES: readonly RouteDefinition<FeatureDeps>[] = [
  configRoute,
  namespacesRoute,
  namespaceRoute,
  tablesRoute,
  loadTableRoute,
  reportRoute,
  ...REFUSED_ROUTES,
  oauthTokenRoute,
];
