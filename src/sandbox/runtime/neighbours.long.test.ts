import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkCaged, describeInCage } from "./cage.test-kit.ts";
import { FIRST_HOST_ID, execRequest, firstHostIdOf, run, specOf, testRuntime } from "./machines.test-kit.ts";
import { type Resource, endOfTaking, ownerOfUsers, takeHere, takeIn, taking } from "./neighbours.test-kit.ts";
import { type Exec, ID_COUNT, type Machine } from "./runtime.ts";

/** Low, so that a machine that uses all of it takes little from this computer, should it be counted for somebody else. */
const LIMITS = { inotifyInstances: 24, inotifyWatches: 200, terminals: 8 } as const;
/** Of each resource: what a machine tries to take, and what another and the host need to have at that time. */
const ATTEMPTS: readonly [Resource, { most: number; has: number; needs: number }][] = [
  ["inotify instances", { most: 40, has: LIMITS.inotifyInstances, needs: 10 }],
  ["inotify watches", { most: 240, has: LIMITS.inotifyWatches, needs: 100 }],
  ["terminals", { most: 12, has: LIMITS.terminals, needs: 4 }],
  // Each has some 80 kB of the 800 that one user may have.
  ["bytes of message queues", { most: 20, has: 10, needs: 3 }],
  ["pages of pipes", { most: 1_100, has: 1_030, needs: 10 }],
  ["descriptors on their way", { most: 80, has: 66, needs: 10 }],
];

/**
 * Watches of epoll are counted for the machine's own user, as pages of pipes are. The kernel gives each user 4 % of the
 * memory of the computer for them (`fs.epoll.max_user_watches`: 5.5 million in 24 GiB), a limit that is the computer's
 * and is not lowered for a test. A watch takes some 200 bytes of the kernel's memory, which counts as the machine's: the
 * 256 MiB of these end at 1.2 million, before the limit of their user on a computer with 6 GiB or more. Here so many
 * are tried that one of the two ends it, and 400 MB are taken where neither did.
 */
const EPOLL = { most: 2_000_000, needs: 10_000 } as const;

describe.each(["bubblewrap", "runc"] as const)("what machines by %s do to each other", (name) => {
  describeInCage("and to the host", () => {
    const test = testRuntime(`neighbours-${name}`, { runtime: name, userLimits: LIMITS });
    let greedy: Machine;
    let healthy: Machine;

    beforeAll(async () => {
      [greedy, healthy] = await Promise.all([
        test.runtime.create(specOf({ hostname: "greedy" })),
        test.runtime.create(specOf({ hostname: "healthy" })),
      ]);
    });

    it("is counted for each by itself: they have users, and limits, of their own", async () => {
      const firsts = [greedy, healthy].map(firstHostIdOf);
      expect(new Set(firsts).size).toBe(2);
      for (const machine of [greedy, healthy]) {
        const first = firstHostIdOf(machine);
        expect((first - FIRST_HOST_ID) % ID_COUNT).toBe(0);
        expect(first).toBeGreaterThan(FIRST_HOST_ID);
        // Were it the host's root, all machines and the host would share what inotify has for one user.
        expect(await ownerOfUsers(machine.initPid)).toBe(first);
        const limits = "cat /proc/sys/user/max_inotify_instances /proc/sys/user/max_inotify_watches; ulimit -q";
        expect((await run(machine, ["bash", "-c", limits])).stdout).toBe("24\n200\n819200\n");
      }
      const raised = await run(greedy, "echo 9999 > /proc/sys/user/max_inotify_watches", { user: "root" });
      expect(raised.exitCode).not.toBe(0);
    });

    describe("exhausting", () => {
      let exec: Exec | undefined;
      beforeAll(async () => {
        // The cage: it is limited as a whole, nothing is counted for the host's root, and its own limits are the low ones.
        checkCaged(greedy.initPid, test.options.cgroupRoot);
        expect(await ownerOfUsers(greedy.initPid)).toBe(firstHostIdOf(greedy));
        const { stdout } = await run(greedy, "cat /proc/sys/user/max_inotify_instances");
        expect(Number(stdout)).toBe(LIMITS.inotifyInstances);
      });
      afterAll(() => exec?.kill("SIGKILL"));

      it.each(ATTEMPTS)("%s leaves all others theirs", async (resource, { most, has, needs }) => {
        const taken = await takeIn(greedy, taking(resource, most, true));
        exec = taken.exec;
        try {
          expect(taken.got).toBeLessThanOrEqual(has);
          expect(taken.got).toBeGreaterThan(has / 2);
          const again = await takeIn(greedy, taking(resource, needs, false));
          expect(again.got).toBe(0);
          const other = await takeIn(healthy, taking(resource, needs, false));
          expect(other.got).toBe(needs);
          expect(await takeHere(taking(resource, needs, false))).toBe(needs);
        } finally {
          await exec.kill("SIGKILL");
        }
      });
    });

    it("watches of epoll end with its own memory or user, and leave all others theirs", async () => {
      checkCaged(greedy.initPid, test.options.cgroupRoot);
      const wanted = { timeoutMs: 60_000 };
      const exec = await greedy.exec(execRequest(taking("watches of epoll", EPOLL.most, true), wanted));
      let end: Awaited<ReturnType<typeof endOfTaking>> | undefined;
      const ended = endOfTaking(exec).then((found) => (end = found));
      const others = taking("watches of epoll", EPOLL.needs, false);
      const got = new Set<number>();
      let mostUsed = 0;
      try {
        // The last round is after its end, when it holds what it got or was killed.
        for (let isLast = false; !isLast;) {
          isLast = end !== undefined;
          const stats = await greedy.stats();
          mostUsed = Math.max(mostUsed, stats.memoryUsedBytes / stats.memoryLimitBytes);
          got.add((await takeIn(healthy, others)).got).add(await takeHere(others));
        }
        const { got: taken = 0, said, signal } = await ended;
        const isRefused = taken > 0 && taken < EPOLL.most;
        const endedBy = signal === "SIGKILL" && mostUsed > 0.5 ? "its memory" : isRefused ? "its user's limit" : said;
        expect(["its memory", "its user's limit"]).toContain(endedBy);
      } finally {
        await exec.kill("SIGKILL");
      }
      expect([...got]).toEqual([EPOLL.needs]);
      // What was killed is that program, and nothing else of its machine.
      expect((await takeIn(greedy, others)).got).toBe(EPOLL.needs);
    });

    it("does not show who uses the programs of the host, and locks them for nobody", async () => {
      for (const path of ["/usr/bin/env", "/dev/null"]) {
        // 0x21: opened, or read.
        const watch = `
          my $notify = syscall(${process.arch === "arm64" ? "26, 04000" : "294, 04000"});
          my $path = "${path}";
          syscall(${process.arch === "arm64" ? 27 : 254}, $notify, $path, 0x21) >= 0 or die $!;
          open(my $events, "<&=", $notify) or die;
          sub seen { my $count = sysread($events, my $bytes, 4096); print $count ? "seen\\n" : "nothing\\n" }
          open(my $locked, "<", $path) or die; flock($locked, 2) or die; seen();
          $| = 1; print "watching\\n"; <STDIN>; seen();`;
        const exec = await greedy.exec(execRequest(["perl", "-e", watch]));
        let said = "";
        for await (const output of exec.output()) {
          if (output.type === "stdout" || output.type === "stderr") said += Buffer.from(output.bytes).toString();
          if (output.type === "exit") break;
          if (!said.endsWith("watching\n")) continue;
          const use = [
            "perl",
            "-e",
            `open(my $f, "<", "${path}") or die; sysread($f, my $b, 9); print flock($f, 6) ? 1 : 0`,
          ];
          expect({ path, ...(await run(healthy, use)) }).toMatchObject({ path, stdout: "1", exitCode: 0 });
          expect(await takeHere(use)).toBe(1);
          await exec.write(Buffer.from("\n"));
        }
        expect({ path, said }).toEqual({ path, said: "seen\nwatching\nnothing\n" });
      }
    });

    it("tells none of them where on the host they are, or how that was started", async () => {
      const { stdout } = await run(greedy, "cat /proc/self/mountinfo /proc/self/mounts");
      expect(stdout).not.toContain(test.home);
      expect(stdout).not.toMatch(/machines|images|bundle/);
      const hidden = await run(greedy, "cat /proc/cmdline /proc/partitions /proc/diskstats /proc/interrupts");
      expect(hidden).toMatchObject({ stdout: "", exitCode: 0, stderr: "" });
      expect(readFileSync("/proc/cmdline", "utf8")).not.toBe("");
    });
  });
});
