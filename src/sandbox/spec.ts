/** What a sandbox is made by: a create request of which every field has its value. */
export type SandboxSpec = {
  agentProvider: string;
  name: string | undefined;
  /** Undefined: the node's default image. */
  image: string | undefined;
  limits: ResourceLimits;
  persistence: Persistence;
  network: NetworkSpec;
  envVars: Readonly<Record<string, string>>;
  volumes: readonly VolumeMount[];
  ports: readonly PortSpec[];
  provisioningScripts: readonly ProvisioningScript[];
  labels: Readonly<Record<string, string>>;
  /** How long it may be up, from each start on; undefined: for ever. */
  timeoutSecs: number | undefined;
};

/** CPUs may be a fraction; MB are MiB. `maxProcesses` counts threads too, as the kernel does. */
export type ResourceLimits = { cpuCores: number; memoryMb: number; diskMb: number; maxProcesses: number };

/** MiB of the disk where the request does not say. Machines are prepared with such disks. */
export const DEFAULT_DISK_MB = 4_096;

export const PERSISTENCE = ["ephemeral", "persistent"] as const;
/** `ephemeral`: its disk goes when it stops. `persistent`: the disk stays on its node until it is deleted. */
export type Persistence = (typeof PERSISTENCE)[number];

export type NetworkSpec = {
  enabled: boolean;
  /** Exact names, and `*.example.com` for those below one. None: nothing is reached. */
  allowedHosts: readonly string[];
  /** Addresses of the name servers that the proxy asks; none: those of the node. */
  dnsServers: readonly string[];
};

/** Named storage of the tenant, on a disk of its own; made when first used. */
export type VolumeMount = { name: string; mountPath: string; readOnly: boolean; sizeMb: number };

/** A TCP port inside on which something speaks HTTP, answered at the sandbox's `endpoint_url`. */
export type PortSpec = { port: number; name: string | undefined };

/** Run once by `sh -c` when the sandbox is made, as root of the sandbox unless it says otherwise. */
export type ProvisioningScript = { name: string; script: string; user: "root" | "agent"; timeoutSecs: number };
