import { z } from "zod";
import { EngineError, publicText } from "../../../core/errors.ts";
import { defineRoute, jsonResponse } from "../../../server/route.ts";
import type { SandboxDeps } from "./deps.ts";
import { nameSchemas } from "../../../server/schema-names.ts";

const body = z.object({
  status: z.enum(["ready", "not_ready"]),
  database: z.string().describe("`ok`, or what is wrong."),
  runtime: z.string().describe("`ok`, `off` where this server is to run no sandboxes, or why no node runs any."),
});

nameSchemas({ Readiness: body });
type Readiness = z.output<typeof body>;

type ReadyDeps = Pick<SandboxDeps, "sandboxes" | "runtime" | "isDraining">;

export const readyRoute = defineRoute({
  method: "GET",
  path: "/ready",
  role: "none",
  anyOrigin: true,
  tag: "Service",
  summary: "Whether the server takes requests about sandboxes",
  description: "200 while its database answers and a node that runs sandboxes is connected.",
  responses: [
    { status: 200, description: "It does.", type: "application/json", schema: body },
    { status: 503, description: "It does not, and why.", type: "application/json", schema: body },
  ],
  errors: [],
  handler: (deps: ReadyDeps) => async () => {
    const readiness = await readinessOf(deps);
    return jsonResponse(readiness.status === "ready" ? 200 : 503, readiness);
  },
});

async function readinessOf({ sandboxes, runtime, isDraining }: ReadyDeps): Promise<Readiness> {
  const own = runtime();
  const none = typeof own === "object" ? own.why : "no node is connected";
  try {
    const hasNode = await sandboxes.hasLiveNode();
    const shown = hasNode ? "ok" : own === "off" ? "off" : publicText(none);
    const isReady = (shown === "ok" || shown === "off") && !isDraining();
    return { status: isReady ? "ready" : "not_ready", database: "ok", runtime: shown };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { status: "not_ready", database: error.message, runtime: "unknown" };
  }
}
