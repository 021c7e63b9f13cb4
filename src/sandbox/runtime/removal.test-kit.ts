import { existsSync, rmSync } from "node:fs";
import { listMounts, sweepMounts } from "./mounts.ts";

/** Removes a folder below which something may be mounted, and unmounts that first. */
export async function removeSwept(folder: string): Promise<void> {
  if (existsSync(folder)) await sweepMounts(folder);
  await removeUnmounted(folder);
}

/**
 * Removes a folder with all that is in it. Throws, and removes nothing, while something is mounted there: that may be a
 * folder of this computer.
 */
export async function removeUnmounted(folder: string): Promise<void> {
  const left = process.platform === "linux" ? (await listMounts(folder)).map(({ at }) => at) : [];
  if (left.length > 0) throw new Error(`${folder} is not removed: ${left.join(", ")} is mounted there`);
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
