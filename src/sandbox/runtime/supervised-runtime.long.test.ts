import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { signalProcess } from "../../core/signals.test-kit.ts";
import { mountDisk, unmountDisk } from "./disks.ts";
import { MachineFolder } from "./folder.ts";
import {
  NOTHING,
  execRequest,
  expectLeft,
  outputOf,
  readIfThere,
  run,
  specOf,
  testRuntime,
} from "./machines.test-kit.ts";
import { openRuntime } from "./open-runtime.ts";
import { describeInCage } from "./cage.test-kit.ts";
import type { MachineSpec, Runtime } from "./runtime.ts";

const NODE_PROCESS = fileURLToPath(new URL("./node-process.test-kit.ts", import.meta.url));
/** How programs find out what the machine is called. */
const ASKS_NAME = "cat /etc/hostname; getent hosts $(hostname) | tr -s ' '; hostname -f";

describeInCage("a runtime", () => {
  const test = testRuntime("runtime");
  let runtime: Runtime;

  beforeAll(() => {
    ({ runtime } = test);
  });

  it("leaves nothing of machines that it has removed, also when asked again", async () => {
    const spec = specOf();
    const machine = await runtime.create(spec);
    await machine.exec(execRequest("sleep 1000 & sleep 1000"));
    expect(await runtime.list()).toEqual([spec.id]);
    await expect(runtime.create(spec)).rejects.toThrow("is there already");
    await runtime.remove(spec.id);
    await runtime.remove(spec.id);
    expect(await runtime.list()).toEqual([]);
    await expectLeft(test, NOTHING);
  });

  it("leaves nothing of a machine that cannot be made, at whichever step", async () => {
    const failing: [Partial<MachineSpec>, string][] = [
      [{ image: "no-such-image" }, "unknown_image"],
      [{ limits: { cpuCores: 1, memoryMb: 64, diskMb: 0, maxProcesses: 10 } }, "failed"],
      [{ volumes: [{ name: "v", mountPath: "/v", readOnly: false, sizeMb: 16, path: "/no/such" }] }, "failed"],
      [{ volumes: [{ name: "v", mountPath: "/etc/passwd", readOnly: false, sizeMb: 16, path: test.home }] }, "failed"],
      [{ hostname: "x".repeat(100) }, "failed"],
    ];
    for (const [wanted, code] of failing) {
      await expect(runtime.create(specOf(wanted))).rejects.toMatchObject({ code });
      await expectLeft(test, NOTHING);
    }
  });

  it("freezes a machine when its lease ends, kills it after the grace, and says why", async () => {
    const spec = specOf({ leaseMs: 400 });
    const machine = await runtime.create(spec);
    const counting = outputOf(await machine.exec(execRequest("while :; do date +%s%N; sleep 0.02; done")));
    await delay(200);
    await machine.renew(400);
    await delay(300);
    expect(isFrozen(machine.initPid)).toBe(false);
    await expect.poll(() => isFrozen(machine.initPid), { interval: 10 }).toBe(true);
    const frozenAtMs = performance.now();
    expect(await machine.ended).toEqual({ cause: "lease" });
    expect(performance.now() - frozenAtMs).toBeGreaterThan(300);
    expect(await counting).toMatchObject({ signal: "SIGKILL", timedOut: false });
    await runtime.remove(spec.id);
  });

  it("thaws a machine whose lease is renewed in time, but not one that was paused", async () => {
    const machine = await runtime.create(specOf({ leaseMs: 200 }));
    await expect.poll(() => isFrozen(machine.initPid), { interval: 10 }).toBe(true);
    await machine.renew(60_000);
    expect(isFrozen(machine.initPid)).toBe(false);
    expect((await run(machine, "echo alive")).stdout).toBe("alive\n");
    await machine.pause();
    await machine.renew(50);
    await delay(150);
    await machine.renew(60_000);
    expect(isFrozen(machine.initPid)).toBe(true);
    await machine.resume();
    expect(isFrozen(machine.initPid)).toBe(false);
    await runtime.remove(machine.id);
  });

  it("kills a machine at its deadline, paused or not", async () => {
    const machines = await Promise.all([0, 1].map(() => runtime.create(specOf({ deadlineMs: 1500 }))));
    await machines[0]?.pause();
    expect(await Promise.all(machines.map((machine) => machine.ended))).toEqual([
      { cause: "deadline" },
      { cause: "deadline" },
    ]);
    await Promise.all(machines.map((machine) => runtime.remove(machine.id)));
  });

  it("keeps the disk of a machine that is to be started again, and nothing else", async () => {
    const spec = specOf({ keepsDisk: true });
    const machine = await runtime.create(spec);
    await run(machine, "echo kept > /home/agent/file; echo gone > /run/file; echo root > /etc/by-root", {
      user: "root",
    });
    await machine.pause();
    await machine.stop();
    expect(await machine.ended).toEqual({ cause: "stopped" });
    await expectLeft(test, { mounts: [], loops: [], cgroups: [] });
    const again = await runtime.restart({ ...spec, hostname: "another" });
    const { stdout } = await run(again, "cat /home/agent/file /etc/by-root; ls /run; hostname");
    expect(stdout).toBe("kept\nroot\nanother\n");
    await runtime.remove(spec.id);
    await expectLeft(test, NOTHING);
  });

  it("tells a machine its name in /etc, once", async () => {
    const spec = specOf({ keepsDisk: true, hostname: "by-name" });
    const machine = await runtime.create(spec);
    expect((await run(machine, ASKS_NAME)).stdout).toBe("by-name\n127.0.0.1 by-name\nby-name\n");
    expect((await run(machine, "getent hosts localhost; stat -c '%u %a' /etc/hosts /etc/hostname")).stdout).toBe(
      "::1             localhost ip6-localhost ip6-loopback\n0 644\n0 644\n",
    );
    // What its owner makes of it stays; a link that leads out of the machine leads nowhere.
    await run(machine, "ln -sf /etc/engine-test-outside /etc/hosts; echo own > /etc/hostname", { user: "root" });
    await machine.stop();
    const again = await runtime.restart(spec);
    expect((await run(again, "cat /etc/hostname; readlink /etc/hosts")).stdout).toBe("own\n/etc/engine-test-outside\n");
    expect(existsSync("/etc/engine-test-outside")).toBe(false);
    await runtime.remove(spec.id);
  });

  it("does not follow what a tenant has left on its disk", async () => {
    const spec = specOf({ keepsDisk: true });
    await (await runtime.create(spec)).stop();
    const folder = join(test.home, "machines", spec.id);
    await mountDisk(join(folder, "disk.ext4"), join(folder, "disk"));
    rmSync(join(folder, "disk/upper/dev"), { recursive: true, force: true });
    symlinkSync("/etc", join(folder, "disk/upper/dev"));
    await unmountDisk(join(folder, "disk"));
    await expect(runtime.restart(spec)).rejects.toThrow("/dev in the machine is not a folder");
    await expectLeft(test, { mounts: [], loops: [], cgroups: [], processes: [] });
    expect(existsSync(join(folder, "disk.ext4"))).toBe(true);
    await runtime.remove(spec.id);
  });

  it("mounts volumes, which outlive the machine", async () => {
    const path = await runtime.volumes.open("tenant/data", 32);
    const volume = { name: "data", mountPath: "/data/of/mine", readOnly: false, sizeMb: 32, path };
    const writer = await runtime.create(specOf({ volumes: [volume] }));
    expect(await run(writer, "echo hello > /data/of/mine/file")).toMatchObject({ exitCode: 0, stderr: "" });
    await runtime.remove(writer.id);
    const reader = await runtime.create(specOf({ volumes: [{ ...volume, readOnly: true }] }));
    expect((await run(reader, "cat /data/of/mine/file; touch /data/of/mine/x")).stderr).toContain("Read-only");
    expect((await run(reader, "cat /data/of/mine/file")).stdout).toBe("hello\n");
    await runtime.remove(reader.id);
    await runtime.volumes.remove("tenant/data");
  });

  it("makes and removes machines without leaving anything behind", async () => {
    for (let round = 0; round < 10; round++) {
      const machines = await Promise.all(Array.from({ length: 5 }, () => runtime.create(specOf())));
      await Promise.all(machines.map(async (machine) => expect((await run(machine, "echo ok")).stdout).toBe("ok\n")));
      await Promise.all(machines.map((machine) => runtime.remove(machine.id)));
    }
    await expectLeft(test, NOTHING);
  });
});

describeInCage("a node process that is killed", () => {
  const test = testRuntime("killed");
  const children: ChildProcess[] = [];

  afterAll(() => children.forEach((child) => child.kill("SIGKILL")));

  /** Resolves when the process has written so many lines. */
  async function start(spec: MachineSpec, command: string, lineCount: number): Promise<[ChildProcess, string[]]> {
    const args = ["--disable-warning=ExperimentalWarning", NODE_PROCESS, test.home, test.options.cgroupRoot, command];
    const child = spawn(process.execPath, [...args, JSON.stringify(spec)], { stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    const lines: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      if (lines.push(line) === lineCount) break;
    }
    return [child, lines];
  }

  async function kill(child: ChildProcess): Promise<void> {
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  it("leaves its machine and its command to the next, which finds all output", async () => {
    const spec = specOf();
    const [child, lines] = await start(spec, "echo begin; seq 1 100000; sleep 1; echo end; exit 9", 3);
    await kill(child);
    const machine = await test.runtime.adopt(spec.id);
    const exec = await machine?.attach(lines[1] ?? "");
    const expected = `begin\n${Array.from({ length: 100_000 }, (_, index) => `${index + 1}\n`).join("")}end\n`;
    expect(exec && (await outputOf(exec))).toEqual({
      stdout: expected,
      stderr: "",
      skipped: 0,
      exitCode: 9,
      signal: undefined,
      timedOut: false,
    });
    expect(machine && (await run(machine, "echo still here"))).toMatchObject({ stdout: "still here\n" });
    expect(await test.runtime.adopt(spec.id)).toBe(machine);
    await test.runtime.remove(spec.id);
    await expectLeft(test, NOTHING);
  });

  it("has its machine made what was asked for by the next, where it did not come to that", async () => {
    const spec = specOf();
    const [child] = await start(spec, "echo begin; sleep 1000", 3);
    await kill(child);
    const folder = new MachineFolder(join(test.home, "machines", spec.id));
    const record = await folder.read();
    if (record === undefined) throw new Error("there is no machine");
    await folder.write({ ...record, hostname: "not-yet-said" });
    const machine = await test.runtime.adopt(spec.id);
    expect(machine && (await run(machine, "hostname"))).toMatchObject({ stdout: "not-yet-said\n" });
    await test.runtime.remove(spec.id);
    await expectLeft(test, NOTHING);
  });

  it("has its machine frozen and killed without it, and the next learns why", async () => {
    const spec = specOf({ leaseMs: 700 });
    const [child] = await start(spec, "echo begin; sleep 1000", 3);
    await kill(child);
    const folder = join(test.home, "machines", spec.id);
    await expect.poll(() => readIfThere(join(folder, "ended"))).toBe("lease\n");
    expect(await test.runtime.adopt(spec.id)).toBeUndefined();
    await expectLeft(test, { mounts: [], loops: [], cgroups: [], processes: [] });
    await test.runtime.remove(spec.id);
  });

  it("leaves nothing that cannot be removed, wherever it was when it was killed", async () => {
    for (let delayMs = 0; delayMs <= 240; delayMs += 20) {
      const spec = specOf();
      const [child] = await start(spec, "sleep 1000", 1);
      await delay(delayMs);
      await kill(child);
      // What it had asked the kernel for at that moment is done.
      await delay(50);
      for (const id of await test.runtime.list()) await test.runtime.remove(id);
      await expectLeft(test, NOTHING);
    }
  });
});

describeInCage("prepared machines", () => {
  const test = testRuntime("warm", { warm: { machines: 2, diskMb: 256 } });

  beforeAll(() => test.runtime.warm());

  const prepared = () => warmFolders(test).length;

  it("become what is asked for", async () => {
    await expect.poll(prepared).toBe(2);
    const limits = { cpuCores: 0.5, memoryMb: 123, diskMb: 256, maxProcesses: 50 };
    const spec = specOf({ limits, hostname: "mine", env: { MINE: "1" } });
    const before = warmFolders(test);
    const machine = await test.runtime.create(spec);
    expect(before.filter((name) => !warmFolders(test).includes(name))).toHaveLength(1);
    expect((await run(machine, 'hostname; echo "$MINE"')).stdout).toBe("mine\n1\n");
    expect((await run(machine, ASKS_NAME)).stdout).toBe("mine\n127.0.0.1 mine\nmine\n");
    expect((await machine.stats()).memoryLimitBytes).toBe(123 * 1024 * 1024);
    expect(await test.runtime.list()).toEqual([spec.id]);
    const exec = await machine.exec(execRequest("sleep 0.3; echo later"));
    await machine.pause();
    await machine.resume();
    expect((await outputOf(exec)).stdout).toBe("later\n");
    await machine.stop();
    await test.runtime.remove(spec.id);
    await expect.poll(prepared).toBe(2);
  });

  it("are what is asked for before they have its name, so that nobody finds another one there", async () => {
    await expect.poll(prepared).toBe(2);
    const seen: unknown[] = [];
    vi.spyOn(MachineFolder.prototype, "moveTo").mockImplementationOnce(async function (this: MachineFolder) {
      const record = await this.read();
      const group = `${test.options.cgroupRoot}/${record?.cgroup}`;
      const files = [`memory/${group}/memory.limit_in_bytes`, `${group}/memory.max`];
      const limits = files.map((file) => readIfThere(join("/sys/fs/cgroup", file)).trim());
      const host = readIfThere(join(this.root, "etc/hostname"));
      seen.push(
        this.path.includes("/warm-"),
        record?.hostname,
        limits.find((limit) => limit !== ""),
        host,
      );
      throw new Error("it died here");
    });
    const limits = { cpuCores: 0.5, memoryMb: 123, diskMb: 256, maxProcesses: 50 };
    const machine = await test.runtime.create(specOf({ limits, hostname: "mine" }));
    expect(seen).toEqual([true, "mine", String(123 * 1024 * 1024), "mine\n"]);
    await test.runtime.remove(machine.id);
  });

  it("are made anew when they end while they wait", async () => {
    await expect.poll(prepared).toBe(2);
    await delay(300);
    const [victim = ""] = warmFolders(test);
    signalProcess(Number(readIfThere(join(test.home, "machines", victim, "supervisor.pid"))), "SIGKILL");
    await expect.poll(() => warmFolders(test).includes(victim)).toBe(false);
    const machine = await test.runtime.create(specOf());
    expect((await run(machine, "echo ok")).stdout).toBe("ok\n");
    await test.runtime.remove(machine.id);
  });

  it("are taken away by the next process when theirs was killed", async () => {
    const home = join(test.home, "other");
    mkdirSync(home);
    const options = { ...test.options, home, cgroupRoot: `engine-test-${randomUUID()}` };
    const first = await openRuntime(options);
    first.warm();
    const other = { ...test, home, options };
    await expect.poll(() => warmFolders(other).length).toBe(2);
    await delay(300);
    // As it is for a process that finds them: nobody takes them apart.
    const second = await openRuntime({ ...options, warm: { machines: 0, diskMb: 256 } });
    await expectLeft(other, { processes: [] });
    await first.close();
    await second.close();
    await expectLeft(other, NOTHING);
  });
});

function warmFolders({ home }: { home: string }): string[] {
  return readdirSync(join(home, "machines")).filter((name) => name.startsWith("warm-"));
}

/** Whether the kernel says so, by the version of the freezer that is here. */
function isFrozen(pid: number): boolean {
  const group = /^0::(.*)$/m.exec(readIfThere(`/proc/${pid}/cgroup`))?.[1] ?? "";
  return ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].some((root) =>
    readIfThere(join(root, group, "cgroup.events")).includes("frozen 1"),
  );
}
