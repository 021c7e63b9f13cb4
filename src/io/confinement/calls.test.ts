import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { architectureHere } from "../seccomp/filter.test-kit.ts";
import { syscallNumbers } from "../seccomp/numbers.ts";
import { silentLog } from "../../core/log.ts";
import { processEnv } from "./environment.ts";
import { openConfinement } from "./open-confinement.ts";

const PERL = "/usr/bin/perl";
const [EPERM, ENOSYS, EAFNOSUPPORT] = ["1", "38", "97"];
const SIGCHLD = 17;

const folder = mkdtempSync(join(tmpdir(), "engine-calls-test-"));
const confinement = await openConfinement({ log: silentLog, tempDir: folder });
afterAll(() => rmSync(folder, { recursive: true }));

/** What a Perl program prints that is confined as a query process is, but may be run. */
function confinedPerl(program: string): string {
  const words = confinement.wrap([PERL, "-e", program], { readable: [], writable: [folder] });
  const [file = "", ...args] = words.toSpliced(words.indexOf("--"), 0, "run", PERL);
  const { stdout, stderr, status } = spawnSync(file, args, { env: processEnv(), encoding: "utf8", timeout: 60_000 });
  if (status !== 0) throw new Error(`${status} ${stderr}`);
  return stdout;
}

/** The errors of system calls, all arguments 0 but the first; 0 for one that went well. */
function errorsOf(calls: readonly (readonly [name: string, argument: number])[]): string[] {
  const numbers = syscallNumbers(architectureHere());
  const known = calls.flatMap(([name, argument]) => {
    const number = numbers.get(name);
    return number === undefined ? [] : [{ name, call: `${number}, ${argument}` }];
  });
  const program = known.map(({ call }) => `$! = 0; syscall(${call}, 0, 0, 0, 0, 0); print $! + 0, "\\n";`).join("");
  const errors = confinedPerl(program).trim().split("\n");
  return known.map(({ name }, index) => `${name} ${errors[index]}`);
}

const NEVER = `
  ptrace process_vm_readv process_vm_writev kcmp pidfd_open pidfd_getfd pidfd_send_signal tkill rt_sigqueueinfo
  rt_tgsigqueueinfo bpf perf_event_open keyctl add_key request_key io_uring_setup io_uring_enter io_uring_register
  userfaultfd mount umount2 pivot_root chroot unshare setns open_tree move_mount fsopen name_to_handle_at
  open_by_handle_at fork vfork execveat setpriority sched_setscheduler shmget msgget semget mq_open memfd_create
  connect bind listen accept4 chmod fchmodat chown fchownat setxattr utimensat truncate link linkat symlink symlinkat
  mknod mknodat inotify_init1 setuid setgroups capset init_module kexec_load reboot swapon acct quotactl
`
  .trim()
  .split(/\s+/);

test.runIf(confinement.isOn)("what a query process has no need of, the kernel does not do for it", () => {
  const refused = errorsOf(NEVER.map((name) => [name, 0] as const));
  expect(refused.filter((outcome) => !outcome.endsWith(` ${EPERM}`))).toEqual([]);
  expect(refused.length).toBeGreaterThan(60);
  const others = [
    ["socket", 1],
    ["socket", 2],
    ["socketpair", 1],
    ["clone", SIGCHLD],
    ["clone3", 0],
    ["prlimit64", process.pid],
    ["getpid", 0],
  ] as const;
  expect(errorsOf(others)).toEqual([
    `socket ${EAFNOSUPPORT}`,
    `socket ${EAFNOSUPPORT}`,
    `socketpair ${EAFNOSUPPORT}`,
    `clone ${EPERM}`,
    `clone3 ${ENOSYS}`,
    `prlimit64 ${EPERM}`,
    "getpid 0",
  ]);
});

test.runIf(confinement.isOn)("it starts no program in its own place either, and signals itself alone", () => {
  const tries = [
    `exec { "${PERL}" } "perl", "-e", "print qq(started)"`,
    "kill 0, getppid()",
    "kill 0, 0",
    "kill 0, -1",
    "kill 0, $$",
  ];
  const program = tries.map((one) => `$! = 0; { no warnings; ${one} } print $! + 0, " ";`).join("");
  expect(confinedPerl(program).trim().split(" ")).toEqual([EPERM, EPERM, EPERM, EPERM, "0"]);
});
