import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { nodeCapacity } from "./capacity.ts";

const UNSET = { cpus: undefined, memoryBytes: undefined, diskBytes: undefined, sandboxes: 7 };

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "engine-capacity-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

it("is what the operator says", async () => {
  const options = { cpus: 3, memoryBytes: 5 * 2 ** 30, diskBytes: 9 * 2 ** 30, sandboxes: 7 };
  expect(await nodeCapacity(folder(), options)).toEqual({
    cpuMillis: 3_000,
    memoryMb: 5_120,
    diskMb: 9_216,
    sandboxes: 7,
  });
});

it("is that of the machine otherwise, whatever sandboxes have taken of the disk already", async () => {
  const path = folder();
  const before = await nodeCapacity(path, UNSET);
  expect(before.cpuMillis).toBeGreaterThanOrEqual(4_000);
  expect(before.memoryMb).toBeGreaterThan(100);
  // A disk of a sandbox that is larger than what was written to it counts as that.
  writeFileSync(join(path, "disk"), Buffer.alloc(64 * 2 ** 20, 1));
  truncateSync(join(path, "disk"), 2 ** 40);
  const { diskMb } = await nodeCapacity(path, UNSET);
  // Others use the disk meanwhile.
  expect(Math.abs(diskMb - before.diskMb)).toBeLessThan(0.02 * before.diskMb);
});
