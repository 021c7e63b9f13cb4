import { readdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { beforeAll, expect, it } from "vitest";
import { signalProcess } from "../../core/signals.test-kit.ts";
import { execRequest, expectLeft, FIRST_HOST_ID, NOTHING, outputOf, readIfThere } from "./machines.test-kit.ts";
import { run, specOf, testRuntime } from "./machines.test-kit.ts";
import { checkCaged } from "./cage.test-kit.ts";
import { describeByRunsc } from "./runsc.test-kit.ts";
import type { Machine, Runtime } from "./runtime.ts";
import { PROXY_PORT } from "../contract/spec.ts";

/** What is the same for all launchers is tested with bubblewrap. */
/** Threads of the kernel inside, and of 100 processes, are tasks of the host (`runsc.ts`): a bound all the same. */
const MOST_TASKS = 2_000;

describeByRunsc("machines by runsc", () => {
  const test = testRuntime("runsc", { runtime: "runsc", warm: { machines: 1, diskMb: 256 } });
  let runtime: Runtime;
  let machine: Machine;

  beforeAll(async () => {
    ({ runtime } = test);
    // It prepares none: they could not become what is asked for.
    runtime.warm();
    machine = await runtime.create(specOf({ hostname: "by-runsc" }));
  });

  it("have a kernel of their own, which has no rights on the host", async () => {
    expect(runtime.name).toBe("runsc");
    expect(readdirSync(join(test.home, "machines"))).toEqual([machine.id]);
    const { stdout } = await run(machine, "uname -nr; cat /proc/1/comm; id -u");
    expect(stdout).toMatch(/^by-runsc 4\.4\.0\nfirst-process\n1000\n$/);
    expect(readFileSync("/proc/sys/kernel/osrelease", "utf8")).not.toMatch(/^4\.4\.0$/m);
    const status = readFileSync(`/proc/${kernelPid(machine)}/status`, "utf8");
    expect(status).toMatch(new RegExp(`^Uid:\\t${machine.rootOnHost?.firstHostId}\\t`, "m"));
    expect(status).toMatch(/^Seccomp:\t2$/m);
  });

  it("give agents no capability, and root what package managers need", async () => {
    const capabilities = async (user: "agent" | "root") =>
      (await run(machine, "grep -E '^Cap(Prm|Eff|Bnd)' /proc/self/status | cut -f 2 | sort -u; id -u", { user }))
        .stdout;
    expect(await capabilities("agent")).toBe("0000000000000000\n1000\n");
    expect(await capabilities("root")).toBe("00000000000000db\n0\n");
    await run(machine, "touch /etc/mine && chown agent /etc/mine", { user: "root" });
    expect((await run(machine, "echo x > /etc/mine && stat -c %u:%g /etc/mine; echo x > /etc/passwd")).stdout).toBe(
      "1000:0\n",
    );
    const { path = "", firstHostId = 0 } = machine.rootOnHost ?? {};
    expect(firstHostId).toBeGreaterThan(FIRST_HOST_ID);
    expect(statSync(join(path, "etc/mine")).uid).toBe(firstHostId + 1000);
  });

  it("tell how a command ended, by a code or a signal", async () => {
    expect(await run(machine, "echo out; echo err >&2; exit 137")).toEqual({
      stdout: "out\n",
      stderr: "err\n",
      skipped: 0,
      exitCode: 137,
      signal: undefined,
      timedOut: false,
    });
    expect(await run(machine, "kill -9 $$")).toMatchObject({ exitCode: undefined, signal: "SIGKILL" });
    expect(await run(machine, "kill -USR1 $$")).toMatchObject({ exitCode: undefined, signal: "SIGUSR1" });
    const exec = await machine.exec(execRequest("sleep 1000 & sleep 1000"));
    await exec.kill("SIGTERM");
    expect(await outputOf(exec)).toMatchObject({ signal: "SIGTERM", timedOut: false });
    expect(await run(machine, "sleep 1000 & sleep 1000", { timeoutMs: 100 })).toMatchObject({
      signal: "SIGKILL",
      timedOut: true,
    });
    await expect.poll(async () => (await run(machine, "ps -C sleep")).exitCode).toBe(1);
  });

  it("say which command they cannot run, and where", async () => {
    const refusals = [["no-such-program"], ["/etc/passwd"], ["true", "/no/such/folder"]];
    for (const [program = "", cwd] of refusals) {
      await expect(machine.exec(execRequest([program], { cwd }))).rejects.toMatchObject({ code: "not_runnable" });
    }
    await expect(machine.exec(execRequest(["no-such-program"]))).rejects.toThrow("no such file or directory");
  });

  it("hand on input and exactly the environment, byte for byte", async () => {
    const exec = await machine.exec(
      execRequest(["sh", "-c", 'cat; printf %s "$EMPTY$VALUE"; pwd'], {
        env: { EMPTY: "", VALUE: "ü\n'\"\\$x, y=z\t " },
        cwd: "/usr",
      }),
    );
    const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, index) => 32 + (index % 90)));
    await exec.write(bytes);
    await exec.endInput();
    expect((await outputOf(exec)).stdout).toBe(`${bytes.toString()}ü\n'"\\$x, y=z\t /usr\n`);
  });

  it("give a command a terminal, which can be resized and interrupts", async () => {
    const tty = { columns: 80, rows: 24 };
    const exec = await machine.exec(execRequest(["bash", "--norc", "-i"], { tty }));
    const output = outputOf(exec);
    const say = async (line: string) => {
      await exec.write(Buffer.from(line));
      await delay(400);
    };
    await say("stty size; sleep 1000\n");
    await say("\u0003");
    await exec.resize({ columns: 100, rows: 50 });
    await say("echo code $?; stty size; sleep 2000\n");
    await exec.kill("SIGKILL");
    const { stdout, signal } = await output;
    expect(stdout).toMatch(/24 80\r\n[^]*code 130\r\n[^]*50 100\r\n/);
    expect(signal).toBe("SIGKILL");
    await expect.poll(async () => (await run(machine, "ps -C bash,sleep")).exitCode).toBe(1);
  });

  it("stand still and go on, and nothing runs meanwhile", async () => {
    const exec = await machine.exec(execRequest("for i in $(seq 30); do echo $i; sleep 0.02; done"));
    await delay(100);
    await machine.pause();
    const before = cpuTimeOf(kernelPid(machine));
    const waiting = run(machine, "echo begun after the pause");
    await delay(500);
    expect(cpuTimeOf(kernelPid(machine))).toBe(before);
    await machine.resume();
    expect((await waiting).stdout).toBe("begun after the pause\n");
    expect((await outputOf(exec)).stdout.trim().split("\n")).toHaveLength(30);
  });

  it("have as many processes as their limit says, and their memory", async () => {
    checkCaged(kernelPid(machine), test.options.cgroupRoot, MOST_TASKS);
    const many = await run(machine, "for i in $(seq 150); do sleep 1 & done; wait");
    expect(many.stderr).toMatch(/fork/i);
    const stats = await machine.stats();
    expect(stats.memoryLimitBytes).toBe(256 * 1024 * 1024);
    expect(stats.memoryUsedBytes).toBeGreaterThan(8 * 1024 * 1024);
    const hog = await runtime.create(specOf({ limits: { cpuCores: 1, memoryMb: 128, diskMb: 256, maxProcesses: 50 } }));
    checkCaged(kernelPid(hog), test.options.cgroupRoot, MOST_TASKS);
    const ran = await run(hog, `perl -e '$x = "x" x (1 << 20); push @y, "$x$_" for 1 .. 1000; print "all"'`);
    expect(ran.stdout).toBe("");
    await runtime.remove(hog.id);
    expect((await run(machine, "echo alive")).stdout).toBe("alive\n");
  });

  it("are reached at their ports, and reach their proxy alone", async () => {
    const server = await machine.exec(
      execRequest(
        "perl -MIO::Socket -e '$s = IO::Socket::INET->new(Listen => 1, LocalPort => 8080); print {$s->accept} qq(hello\\n)'",
      ),
    );
    await expect.poll(async () => machine.connect(8080).then(text, (error: unknown) => String(error))).toBe("hello\n");
    expect((await outputOf(server)).exitCode).toBe(0);
    await expect(machine.connect(8081)).rejects.toMatchObject({ code: "refused" });
    machine.onEgress((connection) => connection.end("from outside\n"));
    const asks = (address: string) =>
      `perl -MIO::Socket -e '$s = IO::Socket::INET->new(shift) or die "$!\\n"; print <$s>' ${address}`;
    await expect.poll(async () => (await run(machine, asks(`127.0.0.1:${PROXY_PORT}`))).stdout).toBe("from outside\n");
    expect((await run(machine, asks("192.0.2.1:80"))).stderr).toContain("unreachable");
    expect((await run(machine, "cat /proc/net/dev")).stdout).not.toMatch(/eth|ens|veth/);
  });

  it("tell the lines of their console", async () => {
    const lines: unknown[] = [];
    machine.onLine((line) => lines.push(line));
    await run(machine, "echo a line > /proc/1/fd/1; echo another > /proc/1/fd/2");
    await expect.poll(() => lines).toHaveLength(2);
    expect(lines).toEqual(
      expect.arrayContaining([
        { stream: "stdout", line: "a line" },
        { stream: "stderr", line: "another" },
      ]),
    );
  });

  it("keep a disk and share volumes, and follow no link that is left there", async () => {
    const path = await runtime.volumes.open("shared", 32);
    const volume = { name: "shared", mountPath: "/data/shared", sizeMb: 32, path };
    const spec = specOf({ keepsDisk: true, volumes: [{ ...volume, readOnly: false }] });
    const first = await runtime.create(spec);
    const kept =
      "echo kept > ~/file && echo tmp > /tmp/file && echo shared > /data/shared/file && echo run > /run/file";
    expect(await run(first, kept, { user: "root" })).toMatchObject({ exitCode: 0, stderr: "" });
    await first.stop();
    const again = await runtime.restart({ ...spec, volumes: [{ ...volume, readOnly: true }] });
    const found = await run(again, "cat ~/file /tmp/file /data/shared/file; ls /run", { user: "root" });
    expect(found.stdout).toBe("kept\ntmp\nshared\n");
    const refused = await run(again, "echo x > /data/shared/file", { user: "root" });
    expect(refused.stderr).toContain("Read-only file system");
    await again.stop();
    const stopped = await runtime.openStopped(spec.id);
    rmSync(join(stopped?.path ?? "", "tmp"), { recursive: true });
    symlinkSync("/etc", join(stopped?.path ?? "", "tmp"));
    await stopped?.release();
    await expect(runtime.restart(spec)).rejects.toThrow("/tmp in the machine is not a folder");
    await runtime.remove(spec.id);
    await runtime.volumes.remove("shared");
  });

  it("end with their kernel or their supervisor, and leave nothing", async () => {
    const [first, second] = await Promise.all([runtime.create(specOf()), runtime.create(specOf())]);
    const command = outputOf(await first.exec(execRequest("sleep 1000")));
    signalProcess(kernelPid(first), "SIGKILL");
    expect(await first.ended).toMatchObject({ cause: "died" });
    expect(await command).toMatchObject({ signal: "SIGKILL", exitCode: undefined });
    const kernel = kernelPid(second);
    signalProcess(Number(readIfThere(join(second.folder, "supervisor.pid"))), "SIGKILL");
    expect(await second.ended).toMatchObject({ cause: "died" });
    await expect.poll(() => readIfThere(`/proc/${kernel}/status`)).toBe("");
    await machine.stop();
    expect(await machine.ended).toEqual({ cause: "stopped" });
    await Promise.all([first, second, machine].map(({ id }) => runtime.remove(id)));
    await expectLeft(test, NOTHING);
  });
});

/** On the host. */
function kernelPid(machine: Machine): number {
  return Number(readFileSync(join(machine.folder, "runsc/pid"), "utf8"));
}

function cpuTimeOf(pid: number): string | undefined {
  return /^\d+ \(.*\) (?:\S+ ){11}(\d+ \d+)/.exec(readIfThere(`/proc/${pid}/stat`))?.[1];
}
