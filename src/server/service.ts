import { roleIncludes } from "../auth/caller.ts";
import { EngineError } from "../core/errors.ts";
import { openMetricsOf } from "../core/open-metrics.ts";
import { defineRoute, jsonResponse, type Call } from "./route.ts";
import type { Authenticator } from "../auth/authenticator.ts";
import type { Metrics } from "../core/metrics.ts";
import { health } from "./schemas.ts";

/** Routes about the process itself, open to everybody. */

/** What the routes about the process itself work with. */
export type ServiceDeps = {
  metrics: Metrics;
  authenticator: Authenticator;
  version: string;
  /** How query processes are kept in, where there are any. */
  queryConfinement?: string | undefined;
  /** Whether `/health` says that the server is about to stop. */
  isDraining: () => boolean;
};

export const healthRoute = defineRoute({
  method: "GET",
  path: "/health",
  role: "none",
  anyOrigin: true,
  quiet: true,
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
  handler: (deps: ServiceDeps) => async () => {
    const draining = deps.isDraining();
    const { version, queryConfinement } = deps;
    const confinement = queryConfinement === undefined ? {} : { query_confinement: queryConfinement };
    return jsonResponse(draining ? 503 : 200, { status: draining ? "draining" : "ok", version, ...confinement });
  },
});

export const metricsRoute = defineRoute({
  method: "GET",
  path: "/metrics",
  role: "none",
  anyOrigin: true,
  quiet: true,
  tag: "Service",
  summary: "Metrics in the Prometheus text format",
  compress: true,
  description:
    "Open to everybody, without names that callers chose: databases, and kinds of jobs of their own, count under " +
    "`_other`. By name with a token of the role `read` that is not limited to databases, and while authentication is " +
    "off. A token that is not good gets what everybody gets.",
  responses: [{ status: 200, description: "The exposition.", type: "text/plain" }],
  errors: [],
  handler: (deps: ServiceDeps) => {
    const { registry } = deps.metrics;
    return async (call) => ({
      status: 200,
      headers: { "Content-Type": registry.contentType },
      body: (await maySeeNames(deps, call)) ? await registry.metrics() : await openMetricsOf(registry),
    });
  },
});

async function maySeeNames(
  { authenticator }: ServiceDeps,
  { request, clientAddress, requestId, webSession }: Call,
): Promise<boolean> {
  if (!authenticator.isOn) return true;
  const authorization = request.header("authorization");
  if (authorization === undefined && webSession === undefined) return false;
  try {
    const caller = await authenticator.authenticate({ authorization, webSession, address: clientAddress, requestId });
    return roleIncludes(caller.role, "read") && caller.databases === undefined;
  } catch (error) {
    // A token that has expired, or a catalog that is away and knows no token, must not take a whole cluster out of sight.
    if (error instanceof EngineError) return false;
    throw error;
  }
}

export const SERVICE_ROUTES = [healthRoute, metricsRoute];
