import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sleep, systemClock as clock } from "../../../core/clock.ts";
import { type Cgroup, type Cgroups, openCgroups } from "./cgroups.ts";
import { readMounts } from "../mounts.ts";
import { CAGED_ID, cagedProcesses, describeInCage, spawnCaged } from "../cage.test-kit.ts";

/**
 * A fork bomb that has an end: every process of it forks until a moment that all of them know, and there are no more of
 * them than one user may have, by `spawnCaged`. One that cannot fork makes room for others, but for the first.
 */
const BOMB = `exec perl -e '
  my ($end, $is_first) = (time + 20, 1);
  $SIG{CHLD} = "IGNORE";
  while (time < $end) {
    my $pid = fork;
    if (defined $pid) { $is_first = 0 if $pid == 0 }
    elsif ($is_first) { select undef, undef, undef, 0.01 }
    else { exit }
  }'`;

const LIMITS = { cpuCores: 1, memoryMb: 64, maxProcesses: 64 };

/** With version 2 where it is, and without it, as on an older computer. */
describeInCage("cgroups", () => {
  const root = `engine-test-${process.pid}`;
  const folder = mkdtempSync(join(tmpdir(), "engine-cgroups-"));
  // The caged come in as well.
  chmodSync(folder, 0o755);
  afterAll(() => rmSync(folder, { recursive: true }));
  const SOON = { timeout: 60_000, interval: 5 };

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
      chownSync(file, CAGED_ID, CAGED_ID);
      await spawnCaged(group, `n=0; while [ $n -lt 10000000 ]; do n=$((n+1)); echo $n >> ${file}; done`);
      const lines = (): number => readFileSync(file, "utf8").split("\n").length;
      await expect.poll(lines, SOON).toBeGreaterThan(10);
      await group.freeze();
      const frozen = lines();
      await sleep(clock, 200);
      expect(lines()).toBe(frozen);
      await group.thaw();
      await expect.poll(lines, SOON).toBeGreaterThan(frozen + 10);
      await end(group);
      const numbers = readFileSync(file, "utf8").split("\n").slice(0, -1).map(Number);
      expect(numbers.slice(0, -1)).toEqual(numbers.slice(0, -1).map((_n, index) => index + 1));
    });

    it("kills what stands still", async () => {
      const group = await create();
      const child = await spawnCaged(group, "sleep 60 & sleep 60 & wait");
      await expect.poll(async () => (await group.stats()).processes, SOON).toBe(4);
      await group.freeze();
      const ended = once(child, "exit");
      await end(group);
      expect(await ended).toEqual([null, "SIGKILL"]);
    });

    it("holds a fork bomb at its limit, and ends it", async () => {
      const group = await create();
      await spawnCaged(group, BOMB);
      const processes = async () => (await group.stats()).processes;
      await expect.poll(processes, SOON).toBeGreaterThanOrEqual(LIMITS.maxProcesses - 8);
      expect(await processes()).toBeLessThanOrEqual(LIMITS.maxProcesses);
      await end(group);
      // They count against the user's limit until they are collected.
      await expect.poll(cagedProcesses, SOON).toBe(0);
    });

    it("kills the process that takes too much memory, and no other", async () => {
      const group = await create();
      const kept = await spawnCaged(group, "exec sleep 60");
      const hog = await spawnCaged(group, "exec perl -e '$x = \"a\" x (1 << 28); sleep 60'");
      expect(await once(hog, "exit")).toEqual([null, "SIGKILL"]);
      expect(kept.exitCode).toBeNull();
      const stats = await group.stats();
      expect(stats.oomKills).toBeGreaterThan(0);
      expect(stats.memoryBytes).toBeLessThan(stats.memoryLimitBytes);
      await end(group);
    });

    it("gives no more CPU time than it may have, and measures it", async () => {
      const group = await create({ ...LIMITS, cpuCores: 0.2 });
      await spawnCaged(group, "n=0; while [ $n -lt 100000000 ]; do n=$((n+1)); done");
      await expect.poll(async () => (await group.stats()).cpuUsageUs, SOON).toBeGreaterThan(0);
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

  /** The cage itself: the limits that are tried above must not be all that holds. */
  describe("a caged process", () => {
    const marks = join(folder, "marks");
    const mark = join(marks, "begun");
    let groups: Cgroups;
    beforeAll(async () => {
      groups = await openCgroups({ root: `${root}-cage`, clock });
      mkdirSync(marks);
      chownSync(marks, CAGED_ID, CAGED_ID);
    });
    afterAll(() => groups.close());

    it("has as many processes as its user may have, where its group lets it have more", async () => {
      const group = await groups.create("wide", { cpuCores: 1, memoryMb: 256, maxProcesses: 256 });
      await spawnCaged(group, BOMB);
      const processes = async () => (await group.stats()).processes;
      await expect.poll(processes, SOON).toBeGreaterThan(LIMITS.maxProcesses + 32);
      let most = 0;
      for (let looks = 0; looks < 200; looks++) {
        most = Math.max(most, await processes());
        await sleep(clock, 5);
      }
      expect(most).toBeLessThanOrEqual(128);
      await group.kill();
      await group.remove();
      await expect.poll(cagedProcesses, SOON).toBe(0);
    });

    it("begins once it is in all of its groups, as a user of its own", async () => {
      const group = await groups.create("whole", LIMITS);
      await spawnCaged(group, `id -u > ${mark}.new && mv ${mark}.new ${mark} && sleep 60`);
      await expect.poll(() => existsSync(mark), SOON).toBe(true);
      expect(readFileSync(mark, "utf8")).toBe(`${CAGED_ID}\n`);
      await group.kill();
      await group.remove();
      rmSync(mark);
    });

    it("does not begin in a group without limits, or where there is no group", async () => {
      const wide = await groups.create("no-limit", { cpuCores: 1, memoryMb: 64, maxProcesses: 4096 });
      await expect(spawnCaged(wide, `touch ${mark}`)).rejects.toThrow("no more than 256 processes");
      await wide.remove();
      const large = await groups.create("large", { cpuCores: 1, memoryMb: 512, maxProcesses: 64 });
      await expect(spawnCaged(large, `touch ${mark}`)).rejects.toThrow("no more than 268435456 bytes");
      await large.remove();
      await expect(spawnCaged({ procsFiles: [] }, `touch ${mark}`)).rejects.toThrow("no more than 256 processes");
      for (const at of [folder, "/sys/fs/cgroup/no-such"]) {
        const procsFiles = [join(at, "cgroup.procs")];
        await expect(spawnCaged({ procsFiles }, `touch ${mark}`)).rejects.toThrow(`there is no cgroup at ${at}`);
      }
      expect(existsSync(mark)).toBe(false);
    });

    it("does not begin when it cannot join one of its groups", async () => {
      const group = await groups.create("half", LIMITS);
      // A file of a group that takes nothing.
      const procsFiles = [...group.procsFiles, join(dirname(group.procsFiles[0] ?? ""), "cgroup.events")];
      await expect(spawnCaged({ procsFiles }, `touch ${mark}`)).rejects.toThrow("is not in");
      await group.remove();
      expect(existsSync(mark)).toBe(false);
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
