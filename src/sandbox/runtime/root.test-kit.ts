import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, vi } from "vitest";
import { loopFiles } from "./loop-files.test-kit.ts";
import { listMounts, sweepMounts } from "./mounts.ts";

const isRoot = process.platform === "linux" && process.getuid?.() === 0;

/** Tests of what only root on Linux may do; elsewhere they are skipped, with a line that says so. */
export const describeAsRoot = isRoot ? describe : describe.skip;
if (!isRoot) process.stdout.write("tests of sandboxes are skipped: they need root on Linux\n");

/** A folder for a suite. At its end nothing may be mounted there, and no loop device have a file there. */
export function rootFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `engine-${name}-`));
  // Others than root come in as well.
  chmodSync(folder, 0o755);
  afterAll(async () => {
    try {
      expect((await listMounts(folder)).map((mount) => mount.at)).toEqual([]);
      await vi.waitFor(() => expect(loopFiles(folder)).toEqual([]));
    } finally {
      await sweepMounts(folder);
      rmSync(folder, { recursive: true, force: true });
    }
  });
  return folder;
}

/** Starts a shell command that has joined all these groups before it does anything. */
export function spawnIn(procsFiles: readonly string[], command: string): ChildProcess {
  const join = 'for file in "$@"; do echo 0 > "$file"; done';
  return spawn("sh", ["-c", `${join}; ${command}`, "sh", ...procsFiles], { stdio: "ignore" });
}

/** Runs a program as an ordinary user of the host; returns what it wrote. */
export function runAs(hostId: number, program: string, ...args: readonly string[]): string {
  return execFileSync(program, args, { uid: hostId, gid: hostId, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}
