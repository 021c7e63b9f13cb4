import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { drawnSeed } from "../../../src/core/drawn-seed.test-kit.ts";
import { signalProcess } from "../../../src/core/signals.test-kit.ts";
import { abuseHarness, abuseRounds } from "./abuse-rounds.test-kit.ts";

const MIB = 1024 * 1024;

test("clients that leave, budgets that end and processes that die leave nothing behind", async () => {
  const seed = drawnSeed();
  const harness = await abuseHarness();
  try {
    const report = await abuseRounds(harness, { rounds: 100, seed });
    expect({ files: report.files, seed }).toEqual({ files: [], seed });
    expect(Object.keys(report.endings).filter((ending) => ending.startsWith("failed"))).toEqual([]);
    expect(report.processes).toBeLessThanOrEqual(report.pool);
    expect(report.rssBytes.late - report.rssBytes.early).toBeLessThan(100 * MIB);
    expect(Object.keys(report.endings).length).toBeGreaterThan(3);
    const unfinished = "SELECT count(*) AS n FROM system.queries WHERE outcome = 'running'";
    // Only itself.
    expect(await harness.rows(unfinished)).toEqual([{ n: 1 }]);
  } finally {
    await harness.close();
  }
}, 120_000);

test("a server that is killed in the middle of a query takes its processes with it", async () => {
  const child = new URL("./endless-query-child.test-kit.ts", import.meta.url).pathname;
  const server = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", child], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(createInterface(server.stdout), "line")) as [string];
  const { pids, folder } = JSON.parse(line) as { pids: number[]; folder: string };
  try {
    expect(pids.length).toBeGreaterThan(0);
    await delay(200);
    server.kill("SIGKILL");
    await expect.poll(() => pids.filter(isRunning)).toEqual([]);
  } finally {
    for (const pid of pids.filter(isRunning)) signalProcess(pid, "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
