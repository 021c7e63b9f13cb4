import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { endsWithThisProcess } from "../../src/core/child-processes.test-kit.ts";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { descendantsOf } from "../support/process-stats.ts";

const MAIN = fileURLToPath(new URL("../main.ts", import.meta.url));

async function isGenerator(pid: number): Promise<boolean> {
  return (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).includes("drive-child");
}

/** Gone, or dead and not yet noticed by its parent. */
async function hasEnded(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return status === "" || status.slice(status.lastIndexOf(")") + 2).startsWith("Z");
}

test.each(["SIGINT", "SIGTERM"] as const)(
  "%s ends a load with its server, its generators and its files",
  async (signal) => {
    const temporary = await mkdtemp(join(tmpdir(), "engine-bench-interrupt-"));
    const file = fileURLToPath(new URL("./profiles/ingest-ten-rows.toml", import.meta.url));
    const args = ["run", "load/profile", "--file", file, "--seconds", "60", "--processes", "2", "--out", temporary];
    const env = { ...process.env, TMPDIR: temporary };
    const child = endsWithThisProcess(spawn(process.execPath, [MAIN, ...args], { env, stdio: "ignore" }));
    const ended = once(child, "exit");
    const pid = child.pid ?? 0;
    await eventually(async () => {
      const generators = await Promise.all(descendantsOf(pid).map(isGenerator));
      return generators.filter(Boolean).length === 2;
    });
    const family = descendantsOf(pid);
    // The server is the fourth.
    expect(family.length).toBeGreaterThanOrEqual(4);
    child.kill(signal);
    expect(await ended).toEqual([130, null]);
    for (const one of family) await eventually(() => hasEnded(one));
    expect((await readdir(temporary)).filter((name) => name.startsWith("engine-bench"))).toEqual([]);
    await rm(temporary, { recursive: true });
  },
);
