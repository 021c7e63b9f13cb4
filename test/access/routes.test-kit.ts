import { engineRoutes } from "../../roles/routes.ts";
import type { Route } from "../../src/server/route.ts";
import { openToAll } from "../../src/auth/access.test-kit.ts";
import { createMetrics } from "../../src/core/metrics.ts";

/** Every route of the program, none of which is answered here. */
const elsewhere = { forward: () => Promise.reject(new Error("nothing is forwarded here")) };

export const ROUTES: readonly Route[] = await engineRoutes({
  service: { metrics: createMetrics(), authenticator: openToAll(), version: "0", isDraining: () => false },
  query: elsewhere,
  ingest: elsewhere,
  access: elsewhere,
  fabric: elsewhere,
  exports: elsewhere,
  queryEngines: elsewhere,
  deletion: elsewhere,
  memory: elsewhere,
  graph: elsewhere,
  mcp: elsewhere,
  agent: elsewhere,
  dreaming: elsewhere,
  sandboxes: elsewhere,
  capabilities: elsewhere,
  feature: elsewhere,
  web: elsewhere,
});

export function nameOf({ method, path }: Pick<Route, "method" | "path">): string {
  return `${method} ${path}`;
}
