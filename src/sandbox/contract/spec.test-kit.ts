import type { SandboxSpec } from "./spec.ts";

/** The spec of a small sandbox without a network, but for what a test says. */
export function specOf(more: Partial<SandboxSpec> = {}): SandboxSpec {
  return {
    agentProvider: "claude-code",
    name: undefined,
    image: undefined,
    limits: { cpuCores: 1, memoryMb: 1_024, diskMb: 4_096, maxProcesses: 256 },
    persistence: "ephemeral",
    network: { enabled: false, allowedHosts: [], dnsServers: [] },
    envVars: {},
    volumes: [],
    ports: [],
    provisioningScripts: [],
    labels: {},
    timeoutSecs: undefined,
    ...more,
  };
}
