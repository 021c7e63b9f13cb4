import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtempSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sleep, systemClock as clock } from "../../core/clock.ts";
import { type Cgroup, type Cgroups, openCgroups } from "./cgroups.ts";
import { readMounts } from "./mounts.ts";
import { describeAsRoot, spawnIn } from "./root.test-kit.ts";

const LIMITS = { cpuCores: 1, memoryMb: 64, maxProcesses: 64 };

/** With version 2 where it is, and without it, as on an older computer. */
describeAsRoot("cgroups", () => {
  const root = `engine-test-${process.pid}`;
  const folder = mkdtempSync(join(tmpdir(), "engine-cgroups-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  describe.each(["all hierarchies", "version 1 alone"])("%s", (which) => {
    let groups: Cgroups;
    let made = 0;
    const create = (limits = LIMITS): Promise<Cgroup> => groups.create(`group-${made++}`, limits);
    /** The number of processes in `stats` goes on counting those whose parents have not asked how they ended. */
    const end = async (group: Cgroup): Promise<void> => {
      await group.kill();
      expect(group.procsFiles.map((file) => readFileSync(file, "utf8")).join("")).toBe("");
      await group.remove();
    };

    beforeAll(async () => {
      const mounts = (await readMounts()).filter((m) => which !== "version 1 alone" || m.fsType !== "cgroup2");
      groups = await openCgroups({ root, clock, mounts });
    });
    afterAll(async () => {
      const left = await groups.list();
      for (const name of left) {
        const group = await groups.open(name);
        await group?.kill();
        await group?.remove();
      }
      await groups.close();
      expect(left).toEqual([]);
    });

    it("can do all of it here", () => {
      expect(groups.abilities).toEqual({ cpu: true, memory: true, processes: true, pause: true });
    });

    it("finds a group that another process has made, and lists it", async () => {
      const group = await create();
      const mounts = (await readMounts()).filter((m) => which !== "version 1 alone" || m.fsType !== "cgroup2");
      const later = await openCgroups({ root, clock, mounts });
      expect(await later.list()).toEqual([group.name]);
      const found = await later.open(group.name);
      expect(found?.procsFiles).toEqual(group.procsFiles);
      expect((await found?.stats())?.memoryLimitBytes).toBe(LIMITS.memoryMb * 1024 * 1024);
      expect(await later.open("another")).toBeUndefined();
      await end(group);
      expect(await groups.open(group.name)).toBeUndefined();
      await group.remove();
      await group.kill();
    });

    it("refuses names that lead elsewhere", async () => {
      await expect(groups.create("../other", LIMITS)).rejects.toThrow("cannot be the name");
    });

    it("stops what runs, and lets it go on where it was", async () => {
      const group = await create();
      const file = join(folder, `${group.name}-count`);
      writeFileSync(file, "");
      spawnIn(group.procsFiles, `n=0; while :; do n=$((n+1)); echo $n >> ${file}; done`);
      const lines = (): number => readFileSync(file, "utf8").split("\n").length;
      while (lines() < 10) await sleep(clock, 5);
      await group.freeze();
      const frozen = lines();
      await sleep(clock, 200);
      expect(lines()).toBe(frozen);
      await group.thaw();
      while (lines() < frozen + 10) await sleep(clock, 5);
      await end(group);
      const numbers = readFileSync(file, "utf8").split("\n").slice(0, -1).map(Number);
      expect(numbers.slice(0, -1)).toEqual(numbers.slice(0, -1).map((_n, index) => index + 1));
    });

    it("kills what stands still", async () => {
      const group = await create();
      const child = spawnIn(group.procsFiles, "sleep 1000 & sleep 1000 & wait");
      while ((await group.stats()).processes < 3) await sleep(clock, 5);
      await group.freeze();
      const ended = once(child, "exit");
      await end(group);
      expect(await ended).toEqual([null, "SIGKILL"]);
    });

    it("holds a fork bomb at its limit, and ends it", async () => {
      const group = await create();
      const bomb = join(folder, "bomb.sh");
      writeFileSync(bomb, `sh ${bomb} & sh ${bomb} & sleep 0.01; exec sh ${bomb}`);
      spawnIn(group.procsFiles, `exec sh ${bomb} 2>/dev/null`);
      while ((await group.stats()).processes < LIMITS.maxProcesses - 8) await sleep(clock, 5);
      expect((await group.stats()).processes).toBeLessThanOrEqual(LIMITS.maxProcesses);
      await end(group);
    });

    it("kills the process that takes too much memory, and no other", async () => {
      const group = await create();
      const kept = spawnIn(group.procsFiles, "exec sleep 1000");
      const hog = spawnIn(group.procsFiles, "exec perl -e '$x = \"a\" x (1 << 28); sleep 1000'");
      expect(await once(hog, "exit")).toEqual([null, "SIGKILL"]);
      expect(kept.exitCode).toBeNull();
      const stats = await group.stats();
      expect(stats.oomKills).toBeGreaterThan(0);
      expect(stats.memoryBytes).toBeLessThan(stats.memoryLimitBytes);
      await end(group);
    });

    it("gives no more CPU time than it may have, and measures it", async () => {
      const group = await create({ ...LIMITS, cpuCores: 0.2 });
      spawnIn(group.procsFiles, "while :; do :; done");
      while ((await group.stats()).cpuUsageUs === 0) await sleep(clock, 5);
      const [before, startedMs] = [await group.stats(), clock.monotonicMs()];
      await sleep(clock, 1000);
      const cores = ((await group.stats()).cpuUsageUs - before.cpuUsageUs) / 1000 / (clock.monotonicMs() - startedMs);
      expect(cores).toBeGreaterThan(0.02);
      expect(cores).toBeLessThan(0.35);
      await end(group);
    });

    it("changes limits, up and down", async () => {
      const group = await create();
      for (const memoryMb of [256, 32]) {
        await group.setLimits({ ...LIMITS, memoryMb });
        expect((await group.stats()).memoryLimitBytes).toBe(memoryMb * 1024 * 1024);
      }
      await end(group);
    });

    it("leaves nothing of a group whose limits the kernel refuses", async () => {
      await expect(create({ ...LIMITS, maxProcesses: -5 })).rejects.toMatchObject({ code: "failed" });
      expect(await groups.list()).toEqual([]);
    });
  });

  it("says what it cannot do where there are no hierarchies", async () => {
    const groups = await openCgroups({ root, clock, mounts: [] });
    expect(groups.abilities).toEqual({
      cpu: "cgroup version 2 is not mounted",
      memory: "cgroup version 2 is not mounted",
      processes: "cgroup version 2 is not mounted",
      pause: "the freezer controller of cgroups is not mounted",
    });
    const group = await groups.create("one", LIMITS);
    expect(group).toMatchObject({ procsFiles: [], freezer: undefined, killFile: undefined });
    await expect(group.freeze()).rejects.toMatchObject({ code: "unable" });
    await group.kill();
    await group.remove();
  });
});
