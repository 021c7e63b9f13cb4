import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { beforeAll, expect, it, vi } from "vitest";
import { signalProcess } from "../../core/signals.test-kit.ts";
import { eventually } from "../../core/waiting.test-kit.ts";
import {
  FIRST_HOST_ID,
  execRequest,
  firstHostIdOf,
  outputOf,
  readIfThere,
  run,
  specOf,
  testRuntime,
} from "./machines.test-kit.ts";
import { checkCaged, describeInCage } from "./cage.test-kit.ts";
import { EXEC_KEPT_BYTES, type ExecOutput, type Machine, RuntimeError } from "./runtime.ts";
import { PROXY_PORT } from "../contract/spec.ts";

const USERS = [
  { user: "one of several", wanted: {} },
  { user: "the only one", wanted: { isSoleUser: true } },
] as const;
const ENDED_WELL = { exitCode: 0, signal: undefined, timedOut: false };

describeInCage("a machine", () => {
  const test = testRuntime("machine");
  let machine: Machine;

  beforeAll(async () => {
    machine = await test.runtime.create(specOf({ env: { FROM_MACHINE: "m", SHADOWED: "machine" } }));
  });

  it("runs a command and tells exactly what it wrote and how it ended", async () => {
    expect(await run(machine, "echo out; echo err >&2; exit 7")).toEqual({
      stdout: "out\n",
      stderr: "err\n",
      skipped: 0,
      exitCode: 7,
      signal: undefined,
      timedOut: false,
    });
    expect(await run(machine, ["true"])).toMatchObject(ENDED_WELL);
  });

  it("tells the signal that ended a command, its own or one that was sent to the group", async () => {
    expect(await run(machine, "kill -SEGV $$")).toMatchObject({ exitCode: undefined, signal: "SIGSEGV" });
    const exec = await machine.exec(execRequest("sleep 100 & echo $!; wait"));
    const ended = outputOf(exec);
    await delay(50);
    await exec.kill("SIGKILL");
    const { signal, stdout } = await ended;
    expect(signal).toBe("SIGKILL");
    expect(await run(machine, `kill -0 ${stdout.trim()}`)).toMatchObject({ exitCode: 1 });
  });

  it("has a spare process for the next command, which keeps nothing of those before it open", async () => {
    const reader = await machine.exec(execRequest(["cat"]));
    const ended = outputOf(reader);
    await expect.poll(() => spareOf(machine)).toBeDefined();
    await reader.write(Buffer.from("all of it"));
    await reader.endInput();
    expect(await ended).toMatchObject({ stdout: "all of it", exitCode: 0 });
    expect(await run(machine, "ls /proc/self/fd | wc -l")).toMatchObject({ stdout: "4\n" });
  });

  it("does without the spare process where that is gone, or the command is too large for it", async () => {
    await expect.poll(() => spareOf(machine)).toBeDefined();
    const spare = Number(spareOf(machine));
    signalProcess(spare, "SIGKILL");
    await expect.poll(() => readIfThere(`/proc/${spare}/stat`)).toBe("");
    expect(await run(machine, "echo one")).toMatchObject({ stdout: "one\n", exitCode: 0 });
    const long = "x".repeat(100_000);
    expect(await run(machine, ["echo", long])).toMatchObject({ stdout: `${long}\n`, exitCode: 0 });
    expect(await run(machine, ["echo", "ü", "", "a b"], { env: { E: "é" } })).toMatchObject({ stdout: "ü  a b\n" });
  });

  it("says which command it cannot run, and where", async () => {
    const refusals = [
      execRequest(["no-such-program"]),
      execRequest(["/etc/passwd"]),
      execRequest(["true"], { cwd: "/no/such/folder" }),
      execRequest(["true"], { cwd: "/root" }),
      execRequest(["echo", "a\0b"]),
    ];
    for (const request of refusals) {
      await expect(machine.exec(request)).rejects.toMatchObject({ code: "not_runnable" });
    }
    await expect(machine.exec(execRequest(["no-such-program"]))).rejects.toThrow("No such file or directory");
  });

  it("gives a command its folder and exactly its environment", async () => {
    const { stdout } = await run(machine, ["env"], {
      cwd: "/usr",
      env: { SHADOWED: "command", EMPTY: "", UTF8: "ü\n" },
    });
    const lines = stdout.split("\n");
    expect(lines).toEqual(expect.arrayContaining(["FROM_MACHINE=m", "SHADOWED=command", "EMPTY=", "UTF8=ü"]));
    expect(stdout).not.toContain("SHADOWED=machine");
    expect(lines.filter((line) => /^(LC_ALL|PERL|ENGINE_|OLDPWD)/.test(line))).toEqual([]);
    expect(await run(machine, ["pwd"], { cwd: "/usr" })).toMatchObject({ stdout: "/usr\n" });
    expect(await run(machine, ["pwd"])).toMatchObject({ stdout: "/home/agent\n" });
    expect(await run(machine, ["hostname"])).toMatchObject({ stdout: "test-machine\n" });
  });

  it.each(USERS)("hands input to the command, and its end ($user)", async ({ wanted }) => {
    const before = pipesHere();
    const exec = await machine.exec(execRequest(["sha256sum"], wanted));
    const output = outputOf(exec);
    const pieces = ["the first", "and the next", Buffer.alloc(3_000_000, "input "), "the end"].map((piece) =>
      Buffer.from(piece),
    );
    for (const piece of pieces) await exec.write(piece);
    await exec.endInput();
    const digest = await crypto.subtle.digest("SHA-256", Buffer.concat(pieces));
    expect((await output).stdout).toContain(Buffer.from(digest).toString("hex"));
    expect(pipesHere()).toEqual(before);
  });

  it("speaks with the command itself where nobody else does, also when its supervisor stands still", async () => {
    const before = pipesHere();
    const exec = await machine.exec(
      execRequest("while read -r line; do echo $line >> said; echo $line; done", { isSoleUser: true }),
    );
    let heard = "";
    const output = (async () => {
      for await (const piece of exec.output()) {
        if (piece.type !== "stdout") return piece;
        heard += Buffer.from(piece.bytes).toString();
      }
      return undefined;
    })();
    await exec.write(Buffer.from("one\n"));
    await vi.waitFor(() => expect(heard).toBe("one\n"), 60_000);
    const supervisor = Number(readIfThere(join(machine.folder, "supervisor.pid")));
    signalProcess(supervisor, "SIGSTOP");
    try {
      await exec.write(Buffer.from("two\n"));
      const said = `/proc/${machine.initPid}/root/home/agent/said`;
      await vi.waitFor(() => expect(readFileSync(said, "utf8")).toBe("one\ntwo\n"), 60_000);
      await vi.waitFor(() => expect(heard).toBe("one\ntwo\n"), 60_000);
    } finally {
      signalProcess(supervisor, "SIGCONT");
    }
    await exec.kill("SIGKILL");
    expect(await output).toMatchObject({ signal: "SIGKILL" });
    await vi.waitFor(() => expect(pipesHere()).toEqual(before), 60_000);
    await exec.write(Buffer.from("three\n"));
  });

  it.each(USERS)("takes input that comes too late, or is not wanted ($user)", async ({ wanted }) => {
    const exec = await machine.exec(execRequest("exec 0<&-; sleep 0.2", wanted));
    await exec.write(Buffer.alloc(2_000_000));
    expect(await outputOf(exec)).toMatchObject(ENDED_WELL);
    await exec.write(Buffer.alloc(2_000_000));
    await exec.endInput();
  });

  it.each(USERS)(
    "brings 10 MB of output through intact, to a slow reader who comes late ($user)",
    async ({ wanted }) => {
      const exec = await machine.exec(execRequest("seq 1 1450000", wanted));
      await delay(300);
      const pieces: Uint8Array[] = [];
      const others: ExecOutput[] = [];
      for await (const output of exec.output()) {
        if (output.type === "stdout") pieces.push(output.bytes);
        else others.push(output);
        if (pieces.length % 40 === 0) await delay(1);
      }
      expect(others).toEqual([{ type: "exit", ...ENDED_WELL }]);
      const lines = Buffer.concat(pieces).toString().trimEnd().split("\n");
      expect(lines).toHaveLength(1_450_000);
      expect(lines.every((line, index) => Number(line) === index + 1)).toBe(true);
    },
  );

  it("brings the last of the output through to a reader who is behind, and nothing of others", async () => {
    // 1031 makes the pipe larger.
    const script =
      '$| = 1; print "begun\\n"; fcntl(STDOUT, 1031, 1048576); select undef, undef, undef, 0.2; ' +
      'print map { "$_\\n" } 1 .. 100000; if (!fork) { exec "yes" }';
    const exec = await machine.exec(execRequest(["perl", "-e", script], { isSoleUser: true }));
    const pieces: Uint8Array[] = [];
    for await (const output of exec.output()) {
      if (output.type !== "stdout") continue;
      pieces.push(output.bytes);
      await delay(pieces.length === 1 ? 500 : 1);
    }
    const lines = Buffer.concat(pieces).toString().split("\n");
    const last = lines.indexOf("100000");
    expect(lines.slice(0, last + 1)).toEqual(["begun", ...Array.from({ length: 100_000 }, (_, i) => `${i + 1}`)]);
    expect(lines.length - last).toBeLessThan(1_048_576);
    expect(await run(machine, "pkill yes")).toMatchObject({ exitCode: 0 });
  });

  it.each(USERS)("tells a reader who is behind that the supervisor has gone ($user)", async ({ wanted }) => {
    const own = await test.runtime.create(specOf());
    const exec = await own.exec(execRequest("echo one; sleep 0.2; echo two; sleep 100", wanted));
    const reading = (async () => {
      let heard = "";
      for await (const output of exec.output()) {
        if (output.type !== "stdout") continue;
        heard += Buffer.from(output.bytes).toString();
        if (heard !== "one\n") continue;
        await delay(400);
        signalProcess(Number(readIfThere(join(own.folder, "supervisor.pid"))), "SIGKILL");
        await delay(200);
      }
    })();
    await expect(reading).rejects.toMatchObject({ code: "not_running" });
  });

  it("takes over what its only reader leaves", async () => {
    const before = pipesHere();
    const exec = await machine.exec(execRequest("seq 1 400000; sleep 30 & echo end >&2", { isSoleUser: true }));
    const leaving = new AbortController();
    await expect(
      (async () => {
        for await (const _ of exec.output(undefined, leaving.signal)) leaving.abort(new Error("it leaves"));
      })(),
    ).rejects.toThrow("it leaves");
    const { stdout, stderr, exitCode } = await outputOf(exec);
    expect([stdout.endsWith("\n400000\n"), stderr, exitCode]).toEqual([true, "end\n", 0]);
    expect(await run(machine, "pkill sleep")).toMatchObject({ exitCode: 0 });
    expect(pipesHere()).toEqual(before);
  });

  it("keeps the newest output of a command that nobody reads, and lets it go on", async () => {
    const exec = await machine.exec(execRequest("seq 1 400000; echo end"));
    const first = exec.output()[Symbol.asyncIterator]();
    await first.next();
    await first.return?.();
    await expect.poll(async () => (await run(machine, "pgrep -c seq")).stdout).toBe("0\n");
    await delay(100);
    const { stdout, skipped, exitCode } = await outputOf(exec);
    expect(exitCode).toBe(0);
    expect(stdout.endsWith("400000\nend\n")).toBe(true);
    expect(stdout.length).toBeLessThanOrEqual(EXEC_KEPT_BYTES);
    expect(skipped + stdout.length).toBe(Array.from({ length: 400_000 }, (_, i) => `${i + 1}\n`).join("").length + 4);
  });

  it("goes on where a reader left off, and finds a command that has ended", async () => {
    const request = execRequest("printf 0123456789; printf abc >&2");
    await outputOf(await machine.exec(request));
    const again = await machine.attach(request.id);
    expect(again && (await outputOf(again, { stdout: 4, stderr: 1 }))).toMatchObject({
      stdout: "456789",
      stderr: "bc",
    });
    expect(await machine.attach(randomUUID())).toBeUndefined();
  });

  it("runs a repeated request once", async () => {
    const request = execRequest("echo x >> /tmp/once; cat /tmp/once");
    await Promise.all([machine.exec(request), machine.exec(request)]);
    expect(await outputOf(await machine.exec(request))).toMatchObject({ stdout: "x\n" });
  });

  it("kills the whole group of a command that takes too long", async () => {
    const ran = await run(machine, "sleep 1000 & echo begun; wait", { timeoutMs: 300 });
    expect(ran).toMatchObject({ stdout: "begun\n", signal: "SIGKILL", exitCode: undefined, timedOut: true });
    expect(await run(machine, "pgrep sleep")).toMatchObject({ stdout: "", exitCode: 1 });
    // One that is in time is not touched afterwards.
    expect(await run(machine, "true", { timeoutMs: 10_000 })).toMatchObject(ENDED_WELL);
  });

  it.each(USERS)("does not wait for what a command leaves behind ($user)", async ({ wanted }) => {
    const ran = await run(machine, "sleep 30 & echo done", wanted);
    expect(ran).toMatchObject({ ...ENDED_WELL, stdout: "done\n" });
    // On a busy machine it may not have become `sleep` yet.
    await eventually(async () => (await run(machine, "pkill sleep")).exitCode === 0);
  });

  it("gives a command a terminal, which can be resized, and ends", async () => {
    const exec = await machine.exec(execRequest(["sh"], { tty: { columns: 81, rows: 25 }, env: { PS1: "" } }));
    const output = outputOf(exec);
    await exec.write(Buffer.from("stty -echo; stty size; tty\n"));
    await delay(200);
    await exec.resize({ columns: 132, rows: 50 });
    await exec.write(Buffer.from("stty size; echo to-err >&2; exit 3\n"));
    const { stdout, stderr, exitCode } = await output;
    expect(stdout).toContain("25 81\r\n/dev/pts/");
    expect(stdout).toContain("50 132\r\nto-err\r\n");
    expect([stderr, exitCode]).toEqual(["", 3]);
  });

  it("takes the terminal of a command that a hang-up did not end", async () => {
    const deaf = "trap '' HUP; echo ready; cat; echo gone > /tmp/gone; exit 5";
    const exec = await machine.exec(execRequest(deaf, { tty: { columns: 80, rows: 24 } }));
    const ready = Promise.withResolvers<void>();
    const output = (async () => {
      let last: unknown;
      for await (const piece of exec.output()) {
        if (piece.type === "stdout") ready.resolve();
        last = piece;
      }
      return last;
    })();
    await ready.promise;
    await exec.kill("SIGHUP");
    expect(await output).toMatchObject({ type: "exit", exitCode: 5 });
    expect(await run(machine, "cat /tmp/gone")).toMatchObject({ stdout: "gone\n" });
  });

  it("lets the agent do nothing that needs a right, and root what package managers need", async () => {
    const status = "id -u; grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status | cut -f2";
    const none = "0000000000000000";
    const six = "00000000000000db";
    expect((await run(machine, status)).stdout.split("\n")).toEqual([
      "1000",
      none,
      none,
      none,
      none,
      none,
      "1",
      "2",
      "",
    ]);
    const root = await run(machine, status, { user: "root" });
    expect(root.stdout.split("\n")).toEqual(["0", none, six, six, six, none, "1", "2", ""]);
    const work = "touch /etc/made && chown 1000:1000 /etc/made && chmod 4755 /etc/made && stat -c %u:%a /etc/made";
    expect((await run(machine, work, { user: "root" })).stdout).toBe("1000:4755\n");
    expect(await run(machine, "touch /etc/mine")).toMatchObject({ exitCode: 1 });
    for (const refused of ["mount -t tmpfs none /mnt", "mknod /tmp/disk b 8 0", "unshare -U true", "hostname other"]) {
      const { exitCode } = await run(machine, refused, { user: "root" });
      expect({ refused, isDone: exitCode === 0 }).toEqual({ refused, isDone: false });
    }
  });

  it("has ids of the host that are nobody's", async () => {
    const exec = await machine.exec(execRequest("touch /tmp/file; sleep 100"));
    const ended = outputOf(exec);
    await expect.poll(() => pidsOf(machine).length).toBeGreaterThan(2);
    await delay(100);
    const hostIds = pidsOf(machine).map((pid) => /^Uid:\t(\d+)/m.exec(readIfThere(`/proc/${pid}/status`))?.[1]);
    const first = firstHostIdOf(machine);
    expect(first).toBeGreaterThan(FIRST_HOST_ID);
    expect(new Set(hostIds)).toEqual(new Set([String(first), String(first + 1000)]));
    expect(statSync(`/proc/${machine.initPid}/root/tmp/file`).uid).toBe(first + 1000);
    await exec.kill("SIGTERM");
    expect((await ended).signal).toBe("SIGTERM");
  });

  it("shows its processes nothing of the host", async () => {
    const processes = await run(machine, "ls -d /proc/[0-9]*");
    expect(processes.stdout.trim().split("\n").length).toBeLessThanOrEqual(4);
    expect((await run(machine, "ls /sys /mnt")).stdout).toBe("/mnt:\n\n/sys:\n");
    expect((await run(machine, "ls -1 /sys/class/net 2>/dev/null; cat /proc/net/dev")).stdout).not.toMatch(
      /eth|ens|veth/,
    );
    for (const path of ["/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/net/ipv4/ip_forward"]) {
      const { exitCode } = await run(machine, `echo 1 > ${path}`, { user: "root" });
      expect({ path, isDone: exitCode === 0 }).toEqual({ path, isDone: false });
    }
    expect((await run(machine, "ls -l /proc/self/fd | wc -l")).stdout).toBe("5\n");
  });

  it("stands still while it is paused, and goes on where it was", async () => {
    const exec = await machine.exec(execRequest("i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo $i; sleep 0.02; done"));
    const output = outputOf(exec);
    const counted = async () => (await test.runtime.adopt(machine.id))?.isPaused;
    await delay(200);
    await machine.pause();
    expect([machine.isPaused, await counted()]).toEqual([true, true]);
    const before = cpuTimeOf(machine);
    const waiting = run(machine, "echo begun after the pause");
    await delay(300);
    expect(cpuTimeOf(machine)).toBe(before);
    await machine.resume();
    expect(machine.isPaused).toBe(false);
    const { stdout, exitCode } = await output;
    expect(stdout.trim().split("\n").map(Number)).toEqual(Array.from({ length: 60 }, (_, index) => index + 1));
    expect(exitCode).toBe(0);
    expect((await waiting).stdout).toBe("begun after the pause\n");
  });

  it("tells what it uses", async () => {
    const exec = await machine.exec(
      execRequest("dd if=/dev/zero of=/tmp/big bs=1M count=20 2>/dev/null; while :; do :; done"),
    );
    const ended = outputOf(exec);
    await machine.stats();
    await delay(700);
    const stats = await machine.stats();
    await exec.kill("SIGKILL");
    await ended;
    expect(stats.cpuUsagePercent).toBeGreaterThan(5);
    expect(stats.diskUsedBytes).toBeGreaterThan(20 * 1024 * 1024);
    expect(stats.diskLimitBytes).toBeGreaterThan(200 * 1024 * 1024);
    expect(stats.memoryLimitBytes).toBe(256 * 1024 * 1024);
    expect(stats.memoryUsedBytes).toBeGreaterThan(0);
    expect(stats.processes).toBe(3);
  });

  it("tells the lines that are written to its console, also those from before anybody listened", async () => {
    await run(machine, "echo early > /proc/1/fd/1");
    await delay(100);
    await run(machine, "echo late > /proc/1/fd/2");
    await delay(100);
    const lines: { stream: string; line: string }[] = [];
    machine.onLine((line) => lines.push(line));
    await run(
      machine,
      "head -c 20000 /dev/zero | tr '\\0' x > /proc/1/fd/1; echo > /proc/1/fd/1; printf 'a\\nb\\n' > /proc/1/fd/1",
    );
    await expect.poll(() => lines.length).toBe(6);
    expect(lines.slice(0, 2)).toEqual([
      { stream: "stdout", line: "early" },
      { stream: "stderr", line: "late" },
    ]);
    expect(lines.slice(2).map(({ line }) => line.length)).toEqual([16_384, 20_000 - 16_384, 1, 1]);
  });

  it("makes a program that floods its console wait, and tells what was not kept while nobody listened", async () => {
    const flooded = await test.runtime.create(specOf());
    // Nobody listens: it goes on all the same.
    const early = "i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done > /proc/1/fd/1";
    expect(await run(flooded, early)).toMatchObject(ENDED_WELL);
    await delay(200);
    const lines: string[] = [];
    let lost = 0;
    flooded.onLine(
      ({ line }) => lines.push(line),
      (count) => (lost += count),
    );
    await expect.poll(() => lines.at(-1)).toBe("2999");
    expect([lost, lines.length, lines[0]]).toEqual([2_000, 1_000, "2000"]);
    const before = lines.length;
    const began = performance.now();
    // For three seconds, as fast as it can.
    await run(flooded, "timeout -s KILL 3 yes > /proc/1/fd/1; timeout -s KILL 1 cat /dev/zero > /proc/1/fd/2; true");
    await delay(200);
    const seconds = (performance.now() - began) / 1_000;
    const bytes = lines.slice(before).reduce((sum, line) => sum + 500 + line.length, 0);
    expect(lines.length - before).toBeGreaterThan(1_000);
    expect(bytes).toBeLessThan((seconds + 2) * 2 * 1024 * 1024);
    // No line is lost or torn meanwhile.
    expect(lost).toBe(2_000);
    expect(new Set(lines.slice(before).map((line) => line.slice(0, 1)))).toEqual(new Set(["y", "\0"]));
    // It does what it is told at once.
    expect(await run(flooded, "yes > /proc/1/fd/1 & sleep 0.5; kill $!; echo done")).toMatchObject({
      stdout: "done\n",
    });
    await flooded.stop();
    await test.runtime.remove(flooded.id);
  });

  it("reaches a port inside, with each half ended by itself", async () => {
    const serve = `perl -MIO::Socket::INET -e '
      my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 8080, Listen => 50) or die; print "up\\n"; close STDOUT;
      while (my $c = $s->accept) { local $/; my $all = <$c>; print $c scalar reverse $all; close $c }'`;
    const exec = await machine.exec(execRequest(serve));
    for await (const output of exec.output()) if (output.type === "stdout") break;
    const names = Array.from({ length: 20 }, (_, index) => String.fromCodePoint(65 + index));
    const connections = await Promise.all(names.map(() => machine.connect(8080)));
    const answers = await Promise.all(
      connections.map(async (connection, index) => {
        connection.end(`${"x".repeat(200_000)}${names[index] ?? ""}`);
        return (await buffer(connection)).toString().replace(/x+$/, "");
      }),
    );
    expect(answers).toEqual(names);
    await exec.kill("SIGKILL");
    await expect(machine.connect(8081)).rejects.toMatchObject({ code: "refused" });
  });

  it("passes what is opened to its proxy to the listener, and refuses it when there is none", async () => {
    const ask = `perl -MIO::Socket::INET -e '
      my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:${PROXY_PORT}") or die "no\\n"; print $s "ask"; shutdown($s, 1); local $/; print <$s>'`;
    expect(await run(machine, ask)).toMatchObject({ stdout: "" });
    machine.onEgress((connection) => {
      let asked = "";
      connection.on("data", (piece: Buffer) => (asked += piece.toString()));
      connection.on("end", () => connection.end(`answer to ${asked}`));
    });
    await expect.poll(async () => (await run(machine, ask)).stdout).toBe("answer to ask");
    expect((await run(machine, "cat /proc/net/route | wc -l")).stdout).toBe("1\n");
  });

  it("gives it all that the listener said before its end, also when it speaks on", async () => {
    const saidBytes = 4 * 1024 * 1024;
    const listening = await test.runtime.create(specOf());
    listening.onEgress((connection) => {
      connection.resume();
      connection.end(Buffer.alloc(saidBytes), () => connection.destroy());
    });
    const hear = `perl -MSocket -e '
      $SIG{PIPE} = "IGNORE"; socket(my $s, PF_INET, SOCK_STREAM, 0); setsockopt($s, SOL_SOCKET, SO_RCVBUF, 65536);
      connect($s, sockaddr_in(${PROXY_PORT}, inet_aton("127.0.0.1"))) or die; my $n = 0;
      while (sysread $s, my $b, 65536) { $n += length $b; select undef, undef, undef, 0.001; syswrite $s, "x" } print $n'`;
    await expect.poll(async () => (await run(listening, hear)).stdout).toBe(String(saidBytes));
    await test.runtime.remove(listening.id);
  });

  it("has no listener without a network", async () => {
    const lonely = await test.runtime.create(specOf({ network: { enabled: false } }));
    expect(() => lonely.onEgress(() => undefined)).toThrow(RuntimeError);
    await expect(lonely.connect(PROXY_PORT)).rejects.toMatchObject({ code: "refused" });
    await test.runtime.remove(lonely.id);
  });

  it("contains a fork bomb and a memory hog, and serves others meanwhile", async () => {
    const hungry = await test.runtime.create(
      specOf({ limits: { cpuCores: 1, memoryMb: 64, diskMb: 256, maxProcesses: 30 } }),
    );
    checkCaged(hungry.initPid, test.options.cgroupRoot);
    const bomb = await run(hungry, "for i in $(seq 100); do sleep 5 & done; wait", { timeoutMs: 3000 });
    expect(bomb.stderr).toMatch(/fork/i);
    const hog = await run(hungry, ["perl", "-e", '$x = "x" x (300 * 1024 * 1024); print "survived"']);
    expect(hog.stdout).toBe("");
    expect(hog.signal).toBe("SIGKILL");
    expect(await run(machine, "echo fine")).toMatchObject({ stdout: "fine\n" });
    await test.runtime.remove(hungry.id);
  });

  it("ends with its first process, and says so", async () => {
    const victim = await test.runtime.create(specOf());
    const sleeping = outputOf(await victim.exec(execRequest("sleep 1000")));
    signalProcess(victim.initPid, "SIGKILL");
    expect(await victim.ended).toEqual({ cause: "died", reason: "its first process ended by signal 9" });
    expect(await sleeping).toMatchObject({ signal: "SIGKILL" });
    await expect(victim.exec(execRequest("true"))).rejects.toMatchObject({ code: "not_running" });
    await test.runtime.remove(victim.id);
  });

  it("ends with its supervisor", async () => {
    const victim = await test.runtime.create(specOf());
    const pid = Number(readIfThere(`${victim.folder}/supervisor.pid`));
    signalProcess(pid, "SIGKILL");
    expect(await victim.ended).toEqual({ cause: "died", reason: "its supervisor was killed" });
    // It waits for its processes; whether it is reaped at once is up to the host's first process.
    await expect.poll(() => readIfThere(`/proc/${victim.initPid}/status`)).toMatch(/^$|State:\tZ/);
    await test.runtime.remove(victim.id);
  });
});

/** Processes of the machine, on the host. */
function pidsOf(machine: Machine): string[] {
  const group = readIfThere(`/proc/${machine.initPid}/cgroup`);
  const path = /^\d+:[^:]*pids[^:]*:(.*)$/m.exec(group)?.[1];
  const file =
    path === undefined ? `/sys/fs/cgroup${/^0::(.*)$/m.exec(group)?.[1] ?? ""}` : `/sys/fs/cgroup/pids${path}`;
  return readIfThere(`${file}/cgroup.procs`).split("\n").filter(Boolean);
}

/** Of all its processes, in ticks. */
function cpuTimeOf(machine: Machine): number {
  const times = pidsOf(machine).map((pid) => readIfThere(`/proc/${pid}/stat`).split(" ").slice(13, 15).map(Number));
  return times.flat().reduce((sum, ticks) => sum + ticks, 0);
}

function spareOf(machine: Machine): string | undefined {
  return pidsOf(machine).find((pid) => readIfThere(`/proc/${pid}/cmdline`).startsWith("waiting for a command"));
}

/** How many descriptors of this process are pipes. */
function pipesHere(): number {
  const folder = "/proc/self/fd";
  const targets = readdirSync(folder).map((name) => {
    try {
      return readlinkSync(join(folder, name));
    } catch {
      // That of the folder itself.
      return "";
    }
  });
  return targets.filter((target) => target.startsWith("pipe:")).length;
}
