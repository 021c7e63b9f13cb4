import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { signalProcess } from "../../../core/signals.test-kit.ts";
import { systemClock } from "../../../core/clock.ts";
import { silentLog } from "../../../core/log.ts";
import { createSandboxFiles } from "./files.ts";
import {
  bodyOf,
  bytesOf,
  codeOf,
  HOME,
  namesIn,
  NEVER,
  openLab,
  put,
  textOf,
  type FilesLab,
} from "./files.test-kit.ts";
import { whyNoMachine } from "./machine.test-kit.ts";

const reason = whyNoMachine();
const SECRET = "of the host alone";

/** What a sandbox may try, with the files API as its tool. */
describe.skipIf(reason !== "")(`a malicious sandbox${reason === "" ? "" : `: skipped, ${reason}`}`, () => {
  let lab: FilesLab;
  let hostFolder: string;
  beforeAll(async () => {
    lab = await openLab({ isDurable: false });
    // Of a path that the agent can't make inside.
    hostFolder = mkdtempSync("/var/tmp/files-attacks-");
    chmodSync(hostFolder, 0o777);
    writeFileSync(join(hostFolder, "secret"), SECRET, { mode: 0o666 });
  });
  afterAll(async () => {
    await lab.remove();
    rmSync(hostFolder, { recursive: true });
  });

  /** The host's folder is as it was, and so is what a stray path would hit. */
  function expectHostUntouched(): void {
    expect(readdirSync(hostFolder)).toEqual(["secret"]);
    expect(readFileSync(join(hostFolder, "secret"), "utf8")).toBe(SECRET);
  }

  test("reaches nothing of the host by dots and absolute links", async () => {
    const { files, machine } = lab;
    const up = "/..".repeat(40);
    const secret = join(hostFolder, "secret");
    expect(await codeOf(files.get({ path: secret }, NEVER))).toBe("file_not_found");
    expect(await codeOf(files.get({ path: `${HOME}${up}${secret}` }, NEVER))).toBe("file_not_found");
    await machine.sh(`ln -s ${secret} ${HOME}/absolute; ln -s ../../../../../../../..${secret} ${HOME}/relative`);
    await machine.sh(`ln -s / ${HOME}/top; ln -s ${hostFolder} ${HOME}/folder`);
    for (const link of ["absolute", "relative", `top${secret}`, "folder/secret"]) {
      expect(await codeOf(files.get({ path: `${HOME}/${link}` }, NEVER))).toBe("file_not_found");
    }
    // Written to, they lead into the machine's own root, where the agent may not make that folder.
    for (const link of ["absolute", "relative", "folder/new", `top${hostFolder}/new`]) {
      expect(await codeOf(files.put({ path: `${HOME}/${link}` }, bodyOf("!"), NEVER))).toMatch(
        /^(forbidden|conflict)$/,
      );
    }
    expect(await codeOf(files.delete({ path: `${HOME}${up}${secret}`, recursive: true }, NEVER))).toBe(
      "file_not_found",
    );
    expect(await namesIn(files, `${HOME}${up}`)).toContain("home");
    expectHostUntouched();
  });

  test("reaches nothing by /proc: its links are not followed, its files not read", async () => {
    const { files, machine } = lab;
    await machine.sh("sleep 30 > /dev/null 2>&1 &");
    for (const path of [
      "/proc/1/root/etc/passwd",
      "/proc/self/root/etc/passwd",
      "/proc/1/cwd/x",
      "/proc/thread-self/fd/0",
    ]) {
      expect(await codeOf(files.get({ path }, NEVER))).toMatch(/^(file_not_found|conflict|forbidden)$/);
      expect(await codeOf(files.put({ path }, bodyOf("x"), NEVER))).toMatch(/^(file_not_found|conflict|forbidden)$/);
    }
    const own = (await namesIn(files, "/proc")).filter((name) => /^\d+$/.test(name));
    const agents = (await machine.sh("ps -u 1000 -o pid= | head -1")).trim();
    expect(own).toContain(agents);
    // Links of a process that is the agent's own, which it could follow by itself.
    for (const link of ["root", "cwd", "exe"]) {
      expect(await codeOf(files.get({ path: `/proc/${agents}/${link}/etc/passwd` }, NEVER))).toBe("conflict");
    }
    for (const file of ["/proc/cpuinfo", "/proc/sys/kernel/hostname", `/proc/${agents}/environ`]) {
      expect(await codeOf(files.get({ path: file }, NEVER))).toBe("conflict");
    }
    expect(await codeOf(files.put({ path: "/proc/sys/kernel/core_pattern" }, bodyOf("|/x"), NEVER))).toBe("conflict");
    expect(await codeOf(files.list({ path: `/proc/${agents}/fd/` }, NEVER))).toBe("nothing");
  });

  test("does not make it wait on a fifo, a socket or a device, or wake who waits there", async () => {
    const { files, machine } = lab;
    await machine.sh(`mkdir ${HOME}/odd; cd ${HOME}/odd; mkfifo fifo;
      perl -MSocket -e 'socket S, AF_UNIX, SOCK_STREAM, 0; bind S, sockaddr_un("socket")';
      ln -s /dev/null null; (echo hello > fifo; echo woken > woken) > /dev/null 2>&1 &`);
    for (const name of ["fifo", "socket", "null"]) {
      expect(await codeOf(files.get({ path: `${HOME}/odd/${name}` }, NEVER))).toBe("conflict");
      const code = await codeOf(files.put({ path: `${HOME}/odd/${name}` }, bodyOf("x"), NEVER));
      expect(code).toMatch(/^(conflict|forbidden)$/);
    }
    expect(await codeOf(files.get({ path: "/dev/zero" }, NEVER))).toBe("conflict");
    expect((await namesIn(files, `${HOME}/odd`)).toSorted()).toEqual(["fifo", "null", "socket"]);
    expect((await files.stat(`${HOME}/odd/fifo`, NEVER)).is_dir).toBe(false);
    await files.delete({ path: `${HOME}/odd`, recursive: true }, NEVER);
  });

  test("gets nothing by swapping folders and links under its hands", async () => {
    const { files, machine } = lab;
    await machine.sh(`mkdir -p ${HOME}/race/real/x ${HOME}/race/other; printf mine > ${HOME}/race/real/secret;
      ln -s ${hostFolder} ${HOME}/race/out; ln -s /etc ${HOME}/race/etc`);
    await machine.sh(`cd ${HOME}/race; cat > swap.pl <<'END'
      my $exchange = \`uname -m\` =~ /x86_64/ ? 316 : 276;
      my $until = time + 6;
      while (time < $until) {
        for my $other ('out', 'etc') { for (1, 2) {
          my ($a, $b) = ("real\\0", "$other\\0");
          syscall $exchange, -100, $a, -100, $b, 2;
          select undef, undef, undef, 0.0002 * rand 5;
        } }
      }
END
      perl swap.pl > /dev/null 2>&1 &`);
    const seen = new Set<string>();
    const until = Date.now() + 4_000;
    for (let i = 0; Date.now() < until; i++) {
      const path = `${HOME}/race/real`;
      seen.add(await textOf(files, `${path}/secret`).catch((error: { code: string }) => error.code));
      await codeOf(files.put({ path: `${path}/put-${i % 7}` }, bodyOf("mine"), NEVER));
      await codeOf(files.list({ path }, NEVER));
      await codeOf(files.delete({ path: `${path}/x`, recursive: true }, NEVER));
    }
    expect(seen.has("mine")).toBe(true);
    expect([...seen].filter((text) => !["mine", "file_not_found", "conflict", "forbidden"].includes(text))).toEqual([]);
    expectHostUntouched();
    expect(await machine.sh("ls -A /etc")).toBe("");
  });

  test("cannot change what an upload becomes by changing its folder", async () => {
    const { files, machine } = lab;
    await machine.sh(`mkdir ${HOME}/spy; cd ${HOME}/spy; cat > /tmp/spy.pl <<'END'
      my $until = time + 5;
      while (time < $until) { for (glob '.put-*') { open my $f, '>>', $_; print $f 'tampered'; rename $_, 'caught'; symlink '/etc/x', $_ } }
END
      perl /tmp/spy.pl > /dev/null 2>&1 &`);
    const until = Date.now() + 3_000;
    const text = "what was sent".repeat(1_000);
    for (let i = 0; Date.now() < until; i++) {
      const path = `${HOME}/spy/file-${i % 5}`;
      const code = await codeOf(files.put({ path }, bodyOf(text), NEVER));
      expect(code).toMatch(/^(nothing|conflict|file_not_found|forbidden)$/);
    }
    expectHostUntouched();
  });

  test("cannot keep it busy with endless folders, or hide them from delete", async () => {
    const { files, machine } = lab;
    await machine.sh(`mkdir ${HOME}/deep; cd ${HOME}/deep; cat > /tmp/deep.pl <<'END'
      for (1 .. 3000) { mkdir 'd' or die; chdir 'd' or die; open my $f, '>', 'f' }
END
      perl /tmp/deep.pl`);
    await files.delete({ path: `${HOME}/deep`, recursive: true }, NEVER);
    expect(await codeOf(files.stat(`${HOME}/deep`, NEVER))).toBe("file_not_found");
    await machine.sh(`mkdir ${HOME}/busy; cat > /tmp/busy.pl <<'END'
      my $until = time + 2;
      my $i = 0;
      while (time < $until) { mkdir "${HOME}/busy/d$i"; open my $f, '>', "${HOME}/busy/d$i/f"; $i++ }
END
      perl /tmp/busy.pl > /dev/null 2>&1 &`);
    await files.delete({ path: `${HOME}/busy`, recursive: true }, NEVER);
    expect(await codeOf(files.stat(`${HOME}/busy`, NEVER))).toBe("file_not_found");
  });

  test("does not lead a recursive delete outside by links", async () => {
    const { files, machine } = lab;
    await machine.sh(`mkdir -p ${HOME}/outside/a ${HOME}/tree/b; printf kept > ${HOME}/outside/a/kept;
      ln -s ${HOME}/outside ${HOME}/tree/link; ln -s ../../outside/a ${HOME}/tree/b/link`);
    await files.delete({ path: `${HOME}/tree`, recursive: true }, NEVER);
    expect(await machine.sh(`cat ${HOME}/outside/a/kept`)).toBe("kept");
  });

  test("gets names and times through that are no text and no dates", async () => {
    const { files, machine } = lab;
    const long = "n".repeat(255);
    await machine.sh(`mkdir ${HOME}/names; cd ${HOME}/names; touch ${long} ./-rf "$(printf 'a\\nb')" "$(printf '\\360\\237x')" 12 '"'
      touch -d '2446-05-10' far; touch -d '1901-12-14' old`);
    const listed = await namesIn(files, `${HOME}/names`);
    expect(listed.toSorted()).toEqual(['"', "-rf", "12", "a\nb", "far", long, "old", "\udcf0\udc9fx"].toSorted());
    for (const name of listed) await put(files, `${HOME}/names/${name}`, `of ${name.length}`);
    expect(await machine.sh(`cd ${HOME}/names; cat 12 ./-rf`)).toBe("of 2of 3");
    await machine.sh("perl -e 'open F, q(>), q(/tmp/time); utime 9e18, -9e18, q(/tmp/time)'");
    expect((await files.stat("/tmp/time", NEVER)).modified_at).toMatch(/Z$/);
  });

  test("is not served once its machine has ended, and holds nothing of it", async () => {
    const own = await openLab();
    try {
      const { files, machine } = own;
      await machine.sh(`head -c 1000 /dev/zero > ${HOME}/file`);
      expect((await bytesOf((await files.get({ path: `${HOME}/file` }, NEVER)).body)).length).toBe(1_000);
      signalProcess(machine.pid, "SIGKILL");
      await expect.poll(() => codeOf(files.stat(`${HOME}/file`, NEVER))).toBe("unavailable");
    } finally {
      await own.remove();
    }
  });

  test("is not entered where the pid is no machine's", async () => {
    for (const pid of [process.pid, 2 ** 22 - 1]) {
      const target = async () => ({ kind: "live", pid }) as const;
      const host = createSandboxFiles({ target, clock: systemClock, log: silentLog, isDurable: false });
      expect(await codeOf(host.put({ path: join(hostFolder, "new") }, bodyOf("x"), NEVER))).toBe("unavailable");
      await host.end();
    }
    expectHostUntouched();
  });
});
