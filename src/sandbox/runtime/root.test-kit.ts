import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, vi } from "vitest";
import { lacking } from "../../core/capabilities.test-kit.ts";
import { loopFiles } from "./loop-files.test-kit.ts";
import { listMounts } from "./mounts.ts";
import { removeSwept } from "./removal.test-kit.ts";

/** Why this process cannot mount disks of its own; undefined where it can. */
export const whyNotRoot = lacking("root", "mounts", "loop devices", "mount", "mkfs.ext4", "bwrap", "prlimit", "perl");

/**
 * Tests of what only root on Linux may do; elsewhere they are skipped, with a line that says why. Those that run machines
 * or something hostile need more: `describeInCage`.
 */
export const describeAsRoot = whyNotRoot === undefined ? describe : describe.skip;
if (whyNotRoot !== undefined) process.stdout.write(`tests of sandboxes are skipped: ${whyNotRoot}\n`);

/** A folder for a suite. At its end nothing may be mounted there, and no loop device have a file there. */
export function rootFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `engine-${name}-`));
  // Others than root come in as well.
  chmodSync(folder, 0o755);
  afterAll(async () => {
    try {
      expect((await listMounts(folder)).map((mount) => mount.at)).toEqual([]);
      await vi.waitFor(() => expect(loopFiles(folder)).toEqual([]), 60_000);
    } finally {
      await removeSwept(folder);
    }
  });
  return folder;
}

/** Runs a program as an ordinary user of the host; returns what it wrote. */
export function runAs(hostId: number, program: string, ...args: readonly string[]): string {
  return execFileSync(program, args, { uid: hostId, gid: hostId, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}
