import { z } from "zod";
import { toRequest } from "../requests/create-request.ts";
import type { Sandbox } from "../scheduler/sandbox.ts";
import type { OpenedEnv } from "../scheduler/sealed-env.ts";
import { PERSISTENCE } from "../../contract/spec.ts";
import { SANDBOX_STATES, type SandboxState } from "../../contract/states.ts";
import { timeOf, timeOrNull } from "../../../server/schemas.ts";
import { nameSchemas } from "../../../server/schema-names.ts";

/** Sandboxes as JSON. */

export const sandboxPath = z.object({ id: z.string() });

export const createdSandbox = z.object({
  id: z.string(),
  state: z.enum(SANDBOX_STATES),
  name: z.string().nullable(),
  agent_provider: z.string(),
});

export const sandboxItem = z.object({
  id: z.string(),
  name: z.string().nullable(),
  state: z.enum(SANDBOX_STATES),
  persistence: z.enum(PERSISTENCE),
  agent_provider: z.string(),
  created_at: z.string(),
  updated_at: z.string().describe("Of the newest change of state or wish."),
});

export const sandboxStats = z.object({
  cpu_usage_percent: z.number().describe("Of one processor: 200 is two of them."),
  memory_used_mb: z.number(),
  memory_limit_mb: z.number(),
  disk_used_mb: z.number(),
  disk_limit_mb: z.number(),
  network_rx_bytes: z.number().describe("Through the proxy; there is no other way."),
  network_tx_bytes: z.number(),
});

export const sandboxInfo = sandboxItem.extend({
  spec: z.record(z.string(), z.unknown()).describe("The create request, with every value."),
  resource_stats: sandboxStats.describe("As the node reported last."),
  endpoint_url: z
    .string()
    .nullable()
    .describe("Path below which its ports answer, each under its number; null where it has none."),
  reason: z.string().nullable().describe("Why it is in that state."),
  expires_at: z.string().nullable().describe("When it will be stopped, for `timeout_secs` will have passed."),
});

nameSchemas({
  CreatedSandbox: createdSandbox,
  Sandbox: sandboxItem,
  SandboxStats: sandboxStats,
  SandboxInfo: sandboxInfo,
});

export function createdOf({ id, state, spec }: Sandbox): z.output<typeof createdSandbox> {
  return { id, state, name: spec.name ?? null, agent_provider: spec.agentProvider };
}

export function itemOf({ id, state, spec, createdAtMs, updatedAtMs }: Sandbox): z.output<typeof sandboxItem> {
  return {
    id,
    name: spec.name ?? null,
    state,
    persistence: spec.persistence,
    agent_provider: spec.agentProvider,
    created_at: timeOf(createdAtMs),
    updated_at: timeOf(updatedAtMs),
  };
}

/** Variables that cannot be opened are null. */
export function infoOf(sandbox: Sandbox, env: OpenedEnv): z.output<typeof sandboxInfo> {
  const { id, spec, reason = null, expiresAtMs } = sandbox;
  return {
    ...itemOf(sandbox),
    spec: { ...toRequest(spec), env_vars: "closed" in env ? null : env.envVars },
    resource_stats: recordedStats(sandbox),
    endpoint_url: spec.ports.length === 0 ? null : `/api/v1/sandboxes/${id}/ports/`,
    reason,
    expires_at: timeOrNull(expiresAtMs),
  };
}

/** In these something of it runs, or is in memory. */
const UP: ReadonlySet<SandboxState> = new Set(["creating", "running", "pausing", "paused", "stopping"]);

export function isUp({ state }: Pick<Sandbox, "state">): boolean {
  return UP.has(state);
}

/** What the node reported last; what is not up uses neither processor nor memory. */
export function recordedStats(sandbox: Sandbox): z.output<typeof sandboxStats> {
  const { stats = {}, spec } = sandbox;
  const up = isUp(sandbox);
  const hasDisk = up || spec.persistence === "persistent";
  return {
    cpu_usage_percent: up ? (stats["cpu_usage_percent"] ?? 0) : 0,
    memory_used_mb: up ? (stats["memory_used_mb"] ?? 0) : 0,
    memory_limit_mb: spec.limits.memoryMb,
    disk_used_mb: hasDisk ? (stats["disk_used_mb"] ?? 0) : 0,
    disk_limit_mb: spec.limits.diskMb,
    network_rx_bytes: stats["network_rx_bytes"] ?? 0,
    network_tx_bytes: stats["network_tx_bytes"] ?? 0,
  };
}
