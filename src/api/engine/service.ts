import { defineRoute, jsonResponse, type Route } from "../route.ts";
import type { ServiceDeps } from "./deps.ts";
import { health } from "./schemas.ts";

/** Routes about the process itself, open to everybody. */

export function healthRoute(deps: ServiceDeps): Route {
  return defineRoute({
    method: "GET",
    path: "/health",
    role: "none",
    anyOrigin: true,
    tag: "Service",
    summary: "Whether the server runs",
    description:
      "200 while it takes requests; 503 with status `draining` while it is about to stop. `query_confinement` says how " +
      "the operating system keeps query processes in, where the server has any.",
    responses: [
      { status: 200, description: "It runs.", type: "application/json", schema: health },
      { status: 503, description: "It is about to stop.", type: "application/json", schema: health },
    ],
    errors: [],
    handle: async () => {
      const draining = deps.isDraining();
      const { version, queryConfinement } = deps;
      const confinement = queryConfinement === undefined ? {} : { query_confinement: queryConfinement };
      return jsonResponse(draining ? 503 : 200, { status: draining ? "draining" : "ok", version, ...confinement });
    },
  });
}

export function metricsRoute(deps: ServiceDeps): Route {
  return defineRoute({
    method: "GET",
    path: "/metrics",
    role: "none",
    anyOrigin: true,
    tag: "Service",
    summary: "Metrics in the Prometheus text format",
    responses: [{ status: 200, description: "The exposition.", type: "text/plain" }],
    errors: [],
    handle: async () => ({
      status: 200,
      headers: { "Content-Type": deps.metrics.registry.contentType },
      body: await deps.metrics.registry.metrics(),
    }),
  });
}
