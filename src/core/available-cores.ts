import { availableParallelism } from "node:os";
import { join } from "node:path";
import { groupFolders, readText, type GroupFolders, type ReadFile } from "./control-groups.ts";

/**
 * The processor cores that this process may use: those that it may run on (`taskset`, cpusets), or fewer where a control
 * group gives it less time than they have. A part of a core counts as one.
 */
export function availableCores(read: ReadFile = readText, machineCores: number = availableParallelism()): number {
  const quotas = groupFolders("cpu", read).flatMap((group) => quotasOf(group, read));
  return Math.max(1, Math.ceil(Math.min(machineCores, ...quotas)));
}

/** In cores. */
function quotasOf({ version, folders }: GroupFolders, read: ReadFile): number[] {
  return folders.map((folder) => {
    if (version === 2) return coresOf(...(read(join(folder, "cpu.max")) ?? "").trim().split(" "));
    const [quota, period] = ["cpu.cfs_quota_us", "cpu.cfs_period_us"].map((name) => read(join(folder, name))?.trim());
    return coresOf(quota, period);
  });
}

/** `max` and -1 are no limit; so is what cannot be read. */
function coresOf(quotaUs = "", periodUs = ""): number {
  const cores = Number(quotaUs || "max") / Number(periodUs || "max");
  return cores > 0 && Number.isFinite(cores) ? cores : Infinity;
}
