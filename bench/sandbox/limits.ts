/** Of the sandboxes that are measured, with the disk that they have by default: such machines are prepared. */
export const LIMITS = { cpuCores: 1, memoryMb: 512, diskMb: 4096, maxProcesses: 256 };

/** The same, as a request names them. */
export const RESOURCE_LIMITS = { cpu_cores: 1, memory_mb: 512, disk_mb: 4096, max_processes: 256 };
