import { contributed } from "../src/feature/collect.ts";
import type { RouteGroup } from "../src/feature/feature.ts";
import { apiDocsRoutes } from "../src/server/docs-routes.ts";
import { routesOf, type Answerer, type Route, type RouteDefinition } from "../src/server/route.ts";
import type { AnsweredDeps, Answerers } from "./answerers.ts";
import { FEATURES, type EngineFeature } from "./features.ts";

/** Groups in the order of the specification; others follow in the order of the features. */
const SPECIFIED = [
  "service",
  "query",
  "deletion",
  "exports",
  "query engines",
  "ingest",
  "cleanup",
  "access",
  "credentials",
  "workers",
  "job credentials",
  "jobs",
  "sandboxes",
];

/** The routes that a process has, in the order in which they are documented. */
export async function engineRoutes(
  answerers: Answerers,
  features: readonly EngineFeature[] = FEATURES,
): Promise<Route[]> {
  const groups = await contributed(features, ({ routes }) => routes?.());
  const ordered = groups.toSorted((a, b) => placeOf(a.name) - placeOf(b.name));
  const { service, query, ingest } = answerers;
  const routes = ordered.flatMap((group) => routesOfGroup(group, { ...answerers, service: { here: service } }));
  if (query === undefined && ingest === undefined) return routes;
  return [...routes, ...apiDocsRoutes(routes, { title: "engine", version: service.version })];
}

type OneAnswerer = { [K in keyof AnsweredDeps]?: Answerer<AnsweredDeps[K]> };

/** The types of a group say that its routes and its answerer have the same dependencies. */
function routesOfGroup({ answeredBy, routes }: RouteGroup<AnsweredDeps>, answerers: OneAnswerer): Route[] {
  return routesOf(routes as readonly RouteDefinition<never>[], answerers[answeredBy] as Answerer<never>);
}

function placeOf(name: string): number {
  const place = SPECIFIED.indexOf(name);
  return place === -1 ? SPECIFIED.length : place;
}
