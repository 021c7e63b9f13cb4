import type { MachineStats } from "../runtime/runtime.ts";

/** The figures of a machine by the names of the specification. */
export type Figures = {
  cpu_usage_percent: number;
  memory_used_mb: number;
  memory_limit_mb: number;
  disk_used_mb: number;
  disk_limit_mb: number;
  network_rx_bytes: number;
  network_tx_bytes: number;
};

const MIB = 2 ** 20;

/** Received and sent as the sandbox sees it. */
export type Traffic = { rxBytes: number; txBytes: number };
export type TrafficOf = (sandboxId: string) => Traffic;

export function figuresOf(stats: MachineStats, { rxBytes, txBytes }: Traffic): Figures {
  return {
    cpu_usage_percent: rounded(stats.cpuUsagePercent),
    memory_used_mb: rounded(stats.memoryUsedBytes / MIB),
    memory_limit_mb: rounded(stats.memoryLimitBytes / MIB),
    disk_used_mb: rounded(stats.diskUsedBytes / MIB),
    disk_limit_mb: rounded(stats.diskLimitBytes / MIB),
    network_rx_bytes: rxBytes,
    network_tx_bytes: txBytes,
  };
}

/** Whether somebody who looks at the figures would see a difference; an idle machine's flicker. */
export function differ(a: Figures, b: Figures): boolean {
  const by = (name: keyof Figures, amount: number) => Math.abs(a[name] - b[name]) >= amount;
  return (
    by("cpu_usage_percent", 5) ||
    by("memory_used_mb", Math.max(4, 0.02 * a.memory_limit_mb)) ||
    by("disk_used_mb", Math.max(4, 0.02 * a.disk_limit_mb)) ||
    by("network_rx_bytes", 64 * 1024) ||
    by("network_tx_bytes", 64 * 1024)
  );
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
