import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** File systems of a test's own, for disks that are full. */
export function mountTmpfs(folder: string, options: string): void {
  execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", folder], { stdio: "pipe" });
}

/** Repeatable. */
export function unmount(folder: string): void {
  spawnSync("umount", [folder]);
}

/** Mounting takes root, and in a container the right to it; a line says so where it cannot be done. */
export function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "engine-mount-"));
  try {
    mountTmpfs(folder, "size=64k");
    unmount(folder);
    return true;
  } catch {
    process.stderr.write("not run: tests on a tmpfs of their own (mounting is not allowed here)\n");
    return false;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
