import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { treeCpuSeconds } from "./tree-cpu.ts";

const BURN = "const end = process.cpuUsage().user + 300_000; while (process.cpuUsage().user < end);";

describe("CPU of a process and of what it started", () => {
  it("counts a child that has ended", () => {
    const before = treeCpuSeconds();
    spawnSync(process.execPath, ["-e", BURN]);
    expect(treeCpuSeconds() - before).toBeGreaterThan(0.25);
  });

  it("counts one that lives, and what that has started", async () => {
    const before = treeCpuSeconds();
    const script = `require("child_process").spawnSync(process.execPath, ["-e", ${JSON.stringify(BURN)}]); console.log("done"); setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      await once(child.stdout, "data");
      expect(treeCpuSeconds() - before).toBeGreaterThan(0.25);
    } finally {
      child.kill();
      await once(child, "exit");
    }
  });
});
