/**
 * What of `/proc` tells of the host, or would change it if it could be written. Those that the host lacks are left out.
 * What programs ask for to find out how large the machine is (`cpuinfo`, `meminfo`, `stat`, `uptime`) is the host's, too,
 * and stays: many do not work without. `/proc/fs` has the disks of all machines.
 */
export const HIDDEN_FILES =
  "bootconfig cmdline config.gz diskstats interrupts kallsyms kcore key-users keys kmsg latency_stats mdstat modules partitions sched_debug softirqs swaps timer_list timer_stats"
    .split(" ")
    .map((name) => `/proc/${name}`);
export const HIDDEN_FOLDERS = ["acpi", "asound", "bus", "driver", "fs", "irq", "scsi"].map((name) => `/proc/${name}`);
export const READ_ONLY = ["sys", "sysrq-trigger"].map((name) => `/proc/${name}`);
