import type { ResourceLimits } from "../../contract/spec.ts";

/** What is limited by cgroups. */
export type CgroupLimits = Pick<ResourceLimits, "cpuCores" | "memoryMb" | "maxProcesses">;

/** `true`, or why it cannot be done here. */
export type CgroupAbilities = {
  cpu: true | string;
  memory: true | string;
  processes: true | string;
  /** Pausing, and killing whatever is in a group. */
  pause: true | string;
};

/** Where something is not measured here it is 0, and so is a limit that is not enforced. */
export type CgroupStats = {
  cpuUsageUs: number;
  /** Without the page cache that the kernel would give up first. */
  memoryBytes: number;
  memoryLimitBytes: number;
  /** Processes and their threads. */
  processes: number;
  oomKills: number;
};

/** The controllers of one version: where the groups lie, their limits and their numbers. */
export type Controllers = {
  abilities: Pick<CgroupAbilities, "cpu" | "memory" | "processes">;
  /** The folders that hold the groups, each once. */
  parents: readonly string[];
  setLimits(name: string, limits: CgroupLimits): Promise<void>;
  stats(name: string): Promise<CgroupStats>;
};

/** CPU time is handed out by this period: short enough that a limited group does not stall for long. */
export const CPU_PERIOD_US = 100_000;
/** What the kernel takes at least. */
const MIN_CPU_QUOTA_US = 1000;

/** CPU time that a group may use in a period. */
export function cpuQuotaUs(cores: number): number {
  return Math.max(MIN_CPU_QUOTA_US, Math.round(cores * CPU_PERIOD_US));
}
