import { execFileSync, spawnSync } from "node:child_process";

/** File systems of a test's own, for disks that are full. */
export function mountTmpfs(folder: string, options: string): void {
  execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", folder], { stdio: "pipe" });
}

/** Repeatable. */
export function unmount(folder: string): void {
  spawnSync("umount", [folder]);
}
