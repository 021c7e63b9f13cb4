import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { main } from "../main.ts";
import { readFiles } from "../report/files.ts";
import { keepPrinted } from "../support/printed.test-kit.ts";
import { CURVE_NAMES } from "./registry.ts";

// The machine is measured once for all: that takes two seconds.
vi.mock(import("../suite/probe.ts"), async (original) => {
  const { probeMachine } = await original();
  let machine: ReturnType<typeof probeMachine> | undefined;
  return { probeMachine: (folder) => (machine ??= probeMachine(folder)) };
});

/** Every curve with its few sizes: that it runs and what it writes, not how it grows. */
keepPrinted();
let out: string;
beforeAll(async () => {
  out = await mkdtemp(join(tmpdir(), "engine-bench-curves-"));
});
afterAll(() => rm(out, { recursive: true }));

const WITHOUT_SANDBOXES = CURVE_NAMES.filter((name) => name !== "sandboxes");

test.each(WITHOUT_SANDBOXES)("the curve of %s is measured", { timeout: 240_000 }, async (name) => {
  expect(await measured(name)).toEqual([name]);
});

test.skipIf(lacks("root", "mounts", "loop devices", "bwrap", "runc", "mkfs.ext4", "perl"))(
  "the curve of sandboxes is measured",
  { timeout: 240_000 },
  async () => {
    expect(await measured("sandboxes")).toEqual(["sandboxes"]);
  },
);

/** Names in the files that come of it. */
async function measured(name: string): Promise<string[]> {
  await main(["growth", name, "--brief", "--seed", "3", "--out", out]);
  const files = (await readdir(out)).filter((file) => file.startsWith(`growth-${name}-`));
  const { growth } = await readFiles(files.map((file) => join(out, file)));
  return growth.map((one) => one.name);
}
