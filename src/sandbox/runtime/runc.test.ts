import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { systemClock } from "../../core/clock.ts";
import { uuidV7Source } from "../../core/ids.ts";
import { silentLog } from "../../core/log.ts";
import { systemRandom } from "../../core/random.ts";
import { DISK_MB, FIRST_HOST_ID, firstHostIdOf, run, specOf } from "./machines.test-kit.ts";
import { sweepMounts } from "./mounts.ts";
import { openRuntime } from "./open-runtime.ts";
import { describeInCage } from "./cage.test-kit.ts";
import { rootFolder } from "./root.test-kit.ts";
import type { Runtime } from "./runtime.ts";

/** What is the same for all launchers is tested with bubblewrap. */
describeInCage("machines by runc", () => {
  const folder = rootFolder("runc");
  const home = join(folder, "home");
  let runtime: Runtime;

  beforeAll(async () => {
    mkdirSync(home);
    runtime = await openRuntime({
      home,
      clock: systemClock,
      ids: uuidV7Source(systemClock, systemRandom),
      log: silentLog,
      runtime: "runc",
      firstHostId: FIRST_HOST_ID,
      idRanges: 256,
      graceMs: 500,
      warm: { machines: 0, diskMb: DISK_MB },
      cgroupRoot: `engine-test-${randomUUID()}`,
    });
  });
  afterAll(async () => {
    await Promise.all((await runtime.list()).map((id) => runtime.remove(id)));
    await runtime.close();
    await sweepMounts(home);
  });

  it("run commands with the same rights and limits as the others", async () => {
    expect(runtime.name).toBe("runc");
    const machine = await runtime.create(specOf({ hostname: "by-runc" }));
    expect(await run(machine, "echo out; id -un; uname -n; exit 7")).toMatchObject({
      stdout: "out\nagent\nby-runc\n",
      exitCode: 7,
    });
    const status = await run(machine, "grep -E '^(Uid|Cap|NoNewPrivs|Seccomp:)' /proc/1/status");
    expect(status.stdout.replaceAll(/\s+/g, " ").trim()).toBe(
      `Uid: 1000 1000 1000 1000 ${["Inh", "Prm", "Eff", "Bnd", "Amb"].map((set) => `Cap${set}: ${"0".repeat(16)}`).join(" ")} NoNewPrivs: 1 Seccomp: 2`,
    );
    expect(statSync(`/proc/${machine.initPid}`).uid).toBe(firstHostIdOf(machine) + 1000);
    expect((await run(machine, "unshare --user true")).stderr).toContain("Operation not permitted");
    expect((await run(machine, "cat /proc/keys /proc/kcore | wc -c; ls -A /sys")).stdout).toBe("0\n");
    const stats = await machine.stats();
    expect(stats.memoryLimitBytes).toBe(256 * 1024 * 1024);
    // The first one; and soon one that waits for a command.
    expect([1, 2]).toContain(stats.processes);
    await runtime.remove(machine.id);
  });

  it("stand still and go on, and leave nothing in any hierarchy", async () => {
    const before = groups();
    const machine = await runtime.create(specOf());
    await machine.pause();
    await machine.resume();
    expect((await run(machine, "echo on")).stdout).toBe("on\n");
    await machine.stop();
    expect(await machine.ended).toEqual({ cause: "stopped" });
    await runtime.remove(machine.id);
    expect(readdirSync(join(home, "machines"))).toEqual([]);
    expect(groups().filter((group) => !before.includes(group))).toEqual([]);
  });

  it("keep a disk and share volumes", async () => {
    const path = await runtime.volumes.open("shared", 32);
    const volume = { name: "shared", mountPath: "/data/shared", sizeMb: 32, path };
    const spec = specOf({ keepsDisk: true, volumes: [{ ...volume, readOnly: false }] });
    const machine = await runtime.create(spec);
    expect(await run(machine, "echo kept > ~/file && echo shared > /data/shared/file")).toMatchObject({
      exitCode: 0,
      stderr: "",
    });
    await machine.stop();
    const again = await runtime.restart({ ...spec, volumes: [{ ...volume, readOnly: true }] });
    expect((await run(again, "cat ~/file /data/shared/file")).stdout).toBe("kept\nshared\n");
    expect((await run(again, "echo x > /data/shared/file")).stderr).toContain("Read-only file system");
    await runtime.remove(spec.id);
    await runtime.volumes.remove("shared");
  });

  it("say why one did not start", async () => {
    const volume = { name: "v", mountPath: "/proc/self", readOnly: false, sizeMb: 16, path: folder };
    await expect(runtime.create(specOf({ volumes: [volume] }))).rejects.toMatchObject({
      code: "failed",
      message: expect.stringContaining("/proc"),
    });
    expect(readdirSync(join(home, "machines"))).toEqual([]);
  });
});

/** Groups that the runtime makes: in the root of each hierarchy. */
function groups(): string[] {
  const hierarchies = readdirSync("/sys/fs/cgroup").map((name) => join("/sys/fs/cgroup", name));
  return hierarchies
    .filter((path) => statSync(path).isDirectory())
    .flatMap((path) => readdirSync(path).map((name) => join(path, name)))
    .filter((path) => /\/engine-m-/.test(path));
}
