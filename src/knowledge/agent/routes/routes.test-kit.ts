import { ADMIN } from "../../../auth/access.test-kit.ts";
import { AuditLog } from "../../../auth/audit.ts";
import { createAuthenticator } from "../../../auth/authenticator.ts";
import type { Caller } from "../../../auth/caller.ts";
import { FailureLimit } from "../../../auth/failure-limit.ts";
import { openMemoryCatalog } from "../../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock } from "../../../core/clock.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import { silentLog } from "../../../core/log.ts";
import { createMetrics } from "../../../core/metrics.ts";
import { systemRandom } from "../../../core/random.ts";
import { serveApp } from "../../../server/app.test-kit.ts";
import { routesOf, type RouteDefinition } from "../../../server/route.ts";

export const ANN: Caller = { ...ADMIN, kind: "session", subject: "ann", role: "read" };
const CALLERS: Readonly<Record<string, Caller>> = { ann: ANN, bob: { ...ANN, subject: "bob" }, root: ADMIN };

export type Answer = { status: number; body: Record<string, unknown>; code: string | undefined };

/** Routes over a catalog in memory; the token of a caller is the caller's name. */
export function agentRoutes() {
  const clock = new ManualClock();
  const { catalog } = openMemoryCatalog(clock);
  const newId = uuidV7Source(clock, systemRandom);
  const { records } = catalog;
  let server: Awaited<ReturnType<typeof serveApp>> | undefined;
  return {
    clock,
    records,
    newId,
    audit: new AuditLog(records, newId),
    async serve<Deps>(routes: readonly RouteDefinition<Deps>[], deps: Deps): Promise<void> {
      const backend = { recognizes: () => true, authenticate: async (token: string) => CALLERS[token] };
      const failures = new FailureLimit({ clock });
      const authenticator = createAuthenticator({ isOn: true, backends: [backend], failures });
      const common = { clock, newId, log: silentLog, metrics: createMetrics() };
      server = await serveApp({ ...common, authenticator, routes: routesOf(routes, { here: deps }) });
    },
    async call(who: string, method: string, path: string, json?: unknown): Promise<Answer> {
      const response = await fetch(`${server?.url ?? ""}${path}`, {
        method,
        headers: { authorization: `Bearer ${who}`, ...(json !== undefined && { "content-type": "application/json" }) },
        ...(json !== undefined && { body: JSON.stringify(json) }),
      });
      const body = (await response.json()) as Record<string, unknown>;
      return { status: response.status, body, code: (body["error"] as { code?: string } | undefined)?.code };
    },
    async close(): Promise<void> {
      await server?.close();
      await catalog.close();
    },
  };
}
