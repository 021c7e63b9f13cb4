import { z } from "zod";
import type { SandboxNode } from "../scheduler/nodes.ts";
import type { NodeCap } from "../room.ts";
import { originOf } from "../../../server/origin.ts";
import { timeOf } from "../../../server/schemas.ts";
import { defineRoute, jsonResponse } from "../../../server/route.ts";
import type { SandboxDeps } from "./deps.ts";
import { nameSchemas } from "../../../server/schema-names.ts";

/** The machines that run sandboxes, as admins see them, and how much of each sandboxes may take. */

type NodeDeps = Pick<SandboxDeps, "sandboxes">;

const common = { role: "admin", unscoped: true, tag: "Sandbox nodes" } as const;
const MOST = 1_000_000_000;

const amounts = z.object({
  cpu_millis: z.number(),
  memory_mb: z.number(),
  disk_mb: z.number(),
  sandboxes: z.number(),
});

const nodeBody = z.object({
  id: z.string().describe("That of its worker."),
  name: z.string(),
  runtime: z.string(),
  labels: z.record(z.string(), z.string()),
  capacity: amounts.describe("What it says it has for sandboxes."),
  cap: z
    .object({
      cpu_millis: z.number().nullable(),
      memory_mb: z.number().nullable(),
      disk_mb: z.number().nullable(),
      sandboxes: z.number().nullable(),
    })
    .describe("The most that sandboxes may take of it; null where only its capacity counts."),
  drain: z.boolean().describe("Whether it takes no further sandboxes."),
  silent: z.boolean().describe("Whether it has not reported for so long that it gets no sandboxes."),
  sandboxes: z.number().describe("That it has, stopped ones included."),
  seen_at: z.string(),
});

nameSchemas({ SandboxNode: nodeBody, NodeAmounts: amounts });

export const listNodesRoute = defineRoute({
  ...common,
  method: "GET",
  path: "/v1/sandbox-nodes",
  summary: "The machines that run sandboxes",
  responses: [
    {
      status: 200,
      description: "All that are known.",
      type: "application/json",
      schema: z.object({ nodes: z.array(nodeBody) }),
    },
  ],
  errors: [],
  handler:
    ({ sandboxes }: NodeDeps) =>
    async () =>
      jsonResponse(200, { nodes: (await sandboxes.nodes()).map(bodyOf) }),
});

const most = z.int().min(0).max(MOST).nullish();

export const capNodeRoute = defineRoute({
  ...common,
  method: "PUT",
  path: "/v1/sandbox-nodes/{id}/cap",
  summary: "Say how much of a machine sandboxes may take",
  description:
    "In place of what was said before; a field that is absent or null has no cap. Sandboxes are placed by the less of " +
    "the cap and of what the machine reports. Those that it has stay.",
  params: z.object({ id: z.string() }),
  json: z.strictObject({ cpu_millis: most, memory_mb: most, disk_mb: most, sandboxes: most }),
  responses: [{ status: 200, description: "The machine.", type: "application/json", schema: nodeBody }],
  errors: ["not_found", "insufficient_storage"],
  handler:
    ({ sandboxes }: NodeDeps) =>
    async (call) => {
      const { cpu_millis: cpuMillis, memory_mb: memoryMb, disk_mb: diskMb, sandboxes: count } = call.json;
      const asked: [keyof NodeCap, number | null | undefined][] = [
        ["cpuMillis", cpuMillis],
        ["memoryMb", memoryMb],
        ["diskMb", diskMb],
        ["sandboxes", count],
      ];
      const cap: NodeCap = Object.fromEntries(asked.filter(([, value]) => typeof value === "number"));
      return jsonResponse(200, bodyOf(await sandboxes.capNode(call.params.id, { cap, origin: originOf(call) })));
    },
});

function bodyOf(node: SandboxNode): z.output<typeof nodeBody> {
  const { capacity, cap } = node;
  return {
    id: node.id,
    name: node.name,
    runtime: node.runtime,
    labels: { ...node.labels },
    capacity: {
      cpu_millis: capacity.cpuMillis,
      memory_mb: capacity.memoryMb,
      disk_mb: capacity.diskMb,
      sandboxes: capacity.sandboxes,
    },
    cap: {
      cpu_millis: cap.cpuMillis ?? null,
      memory_mb: cap.memoryMb ?? null,
      disk_mb: cap.diskMb ?? null,
      sandboxes: cap.sandboxes ?? null,
    },
    drain: node.drain,
    silent: node.isSilent,
    sandboxes: node.sandboxes,
    seen_at: timeOf(node.seenAtMs),
  };
}
