import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import type { CapabilityName } from "../../core/capabilities.test-kit.ts";
import { lacks } from "../../core/gates.test-kit.ts";
import { seccompFilter } from "./filter.ts";
import { architectureHere, underFilter } from "./filter.test-kit.ts";
import { FIRST_UNKNOWN, SECCOMP_ARCHITECTURES, syscallNumbers } from "./numbers.ts";
import { ALLOWED, RULES } from "./rules.ts";

const numbers = syscallNumbers(architectureHere());
const run = underFilter();
const PERL = "/usr/bin/perl";
const X32 = 0x4000_0000;

/** Result and errno of a system call under the filter: `ok`, or the name of the error. */
function call(name: string | number, ...args: readonly (number | string)[]): string {
  const number = typeof name === "number" ? name : numbers.get(name);
  if (number === undefined) throw new Error(`no call ${name}`);
  const words = args.map((arg) => (typeof arg === "number" ? String(arg) : `$buffer`));
  const script = `my $buffer = "\\0" x 4096; $! = 0; my $r = syscall(${[number, ...words].join(", ")});
    my ($e) = $r == -1 ? grep { $!{$_} } grep { !/WOULDBLOCK|DEADLOCK|NOTSUP$/ } keys %! : "ok"; print $e;`;
  const { stdout, stderr, signal } = run(PERL, "-MErrno", "-e", script);
  return stdout.toString() || `${signal ?? ""} ${stderr.toString()}`;
}

const CLONE_FLAGS = {
  newns: 0x2_0000,
  newcgroup: 0x200_0000,
  newuts: 0x400_0000,
  newipc: 0x800_0000,
  newuser: 0x1000_0000,
  newpid: 0x2000_0000,
  newnet: 0x4000_0000,
};

it.each([
  ["bpf", 0, "b", 64],
  ["userfaultfd", 0],
  ["io_uring_setup", 1, "b"],
  ["io_uring_enter", 0, 0, 0, 0],
  ["io_uring_register", 0, 0, 0, 0],
  ["keyctl", 0, 0, 0],
  ["add_key", "b", "b", "b", 1, 0],
  ["request_key", "b", "b", "b", 0],
  ["kexec_load", 0, 0, 0, 0],
  ["kexec_file_load", 0, 0, 0, 0, 0],
  ["init_module", "b", 1, "b"],
  ["finit_module", 0, "b", 0],
  ["delete_module", "b", 0],
  ["mount", "b", "b", "b", 0, 0],
  ["umount2", "b", 0],
  ["pivot_root", "b", "b"],
  ["open_tree", -100, "b", 0],
  ["move_mount", 0, "b", 0, "b", 0],
  ["mount_setattr", 0, "b", 0, "b", 32],
  ["fsopen", "b", 0],
  ["fsmount", 0, 0, 0],
  ["open_by_handle_at", 0, "b", 0],
  ["perf_event_open", "b", 0, 0, 0, 0],
  ["setns", 0, 0],
  ["chroot", "b"],
  ["pidfd_getfd", 0, 0, 0],
  ["kcmp", 1, 1, 0, 0, 0],
  ["process_madvise", 0, 0, 0, 0, 0],
  ["swapon", "b", 0],
  ["reboot", 0, 0, 0, 0],
  ["acct", 0],
  ["settimeofday", "b", 0],
  ["syslog", 3, "b", 10],
  ["quotactl", 0, "b", 0, 0],
  ["fanotify_init", 0, 0],
  ["statmount", 0, 0, 0, 0],
] as const)("refuses %s", (name, ...args) => {
  expect(call(name, ...args)).toBe("EPERM");
});

it.each(Object.entries(CLONE_FLAGS))("refuses new namespaces: %s", (_name, flag) => {
  expect(call("unshare", flag)).toBe("EPERM");
  // With flags beside it, and the signal at the end.
  expect(call("clone", flag | 0x100 | 17, 0, 0, 0, 0)).toBe("EPERM");
});

it("lets processes be made, with clone and fork, and says that there is no clone3", () => {
  expect(call("clone3", "b", 88)).toBe("ENOSYS");
  expect(call("unshare", 0x80)).toBe("EPERM");
  expect(call("unshare", 0x400)).toBe("ok");
  const script = `my $pid = syscall(${numbers.get("clone")}, 17, 0, 0, 0, 0); if ($pid == 0) { kill 9, $$ } waitpid $pid, 0; print $pid > 0 ? "made" : "not: $!"`;
  expect(run(PERL, "-e", script).stdout).toBe("made");
});

it.each([
  ["unix", 1, 1, 0, "ok"],
  ["inet", 2, 1, 0, "ok"],
  ["inet6", 10, 2, 0, "ok"],
  ["netlink, for routes", 16, 3, 0, "ok"],
  ["netlink, for audit", 16, 3, 9, "EAFNOSUPPORT"],
  ["netlink, for netfilter", 16, 3, 12, "EAFNOSUPPORT"],
  ["packet", 17, 3, 0, "EAFNOSUPPORT"],
  ["alg", 38, 5, 0, "EAFNOSUPPORT"],
  ["vsock", 40, 1, 0, "EAFNOSUPPORT"],
  ["xdp", 44, 3, 0, "EAFNOSUPPORT"],
  // The kernel looks at the low 32 bits alone, and so does the filter.
  ["vsock, with bits above", 40 + 2 ** 32, 1, 0, "EAFNOSUPPORT"],
])("sockets of the family %s", (_name, family, type, protocol, result) => {
  expect(call("socket", family, type, protocol)).toBe(result);
});

it("types into nobody's terminal", () => {
  expect(call("ioctl", 0, 0x5412, "b")).toBe("EPERM");
  expect(call("ioctl", 0, 0x541c, "b")).toBe("EPERM");
  expect(call("ioctl", 0, 0x5412 + 2 ** 32, "b")).toBe("EPERM");
  // TIOCGWINSZ, of what is no terminal.
  expect(call("ioctl", 0, 0x5413, "b")).toMatch(/ENOTTY|EINVAL|ENODEV/);
  expect(call("socketpair", 17, 1, 0, "b")).toBe("EAFNOSUPPORT");
});

it("leaves the layout of memory random", () => {
  expect(call("personality", 0xffff_ffff)).toBe("ok");
  expect(call("personality", 0x4_0000)).toBe("EPERM");
});

it("says of calls that it cannot know that there is none, so that libraries use older ones", () => {
  expect(call(FIRST_UNKNOWN)).toBe("ENOSYS");
  expect(call(1000)).toBe("ENOSYS");
});

it.runIf(architectureHere() === "x64")("refuses the x32 convention", () => {
  for (const name of ["getpid", "write", "open", "execve"]) expect(call(X32 + (numbers.get(name) ?? 0))).toBe("EPERM");
});

it.each(["getpid", "gettid", "sched_yield", "sync", "getuid", "umask"] as const)("lets %s be", (name) => {
  expect(call(name, 0)).toBe("ok");
});

/** Programs as they are used in machines, and the capability of this computer that each is. */
const PROGRAMS: readonly {
  name: string;
  needs?: CapabilityName;
  program: string;
  args: readonly string[];
  output: RegExp;
}[] = [
  {
    name: "bash",
    program: "/bin/bash",
    args: ["-c", "echo $((1 + 1)) | cat; (exit 3); echo $?"],
    output: /^2\n3\n$/,
  },
  {
    name: "git",
    needs: "git",
    program: "/usr/bin/git",
    args: ["-c", "init.defaultBranch=main", "init", "-q", "repo"],
    output: /^$/,
  },
  {
    name: "node",
    program: process.execPath,
    args: ["-e", "fetch('http://127.0.0.1:9').catch((e) => console.log(e.cause.code))"],
    output: /ECONNREFUSED|UND_ERR|bad port|undefined/,
  },
  {
    name: "node threads",
    program: process.execPath,
    args: ["-e", "new (require('worker_threads').Worker)('console.log(7)', { eval: true })"],
    output: /^7\n$/,
  },
  {
    name: "python",
    needs: "python3",
    program: "/usr/bin/python3",
    args: ["-c", "import subprocess, threading, socket; print(subprocess.check_output(['echo', 'x']))"],
    output: /^b'x\\n'\n$/,
  },
  { name: "perl", program: PERL, args: ["-e", "print `echo x`"], output: /^x\n$/ },
  { name: "ps", needs: "ps", program: "/bin/ps", args: ["-o", "comm=", "-p", "1"], output: /\w/ },
  { name: "tar", program: "/bin/tar", args: ["-cf", "x.tar", "-C", "/etc", "passwd"], output: /^$/ },
];
for (const { name, needs, program, args, output } of PROGRAMS) {
  it.skipIf(needs !== undefined && lacks(needs))(`runs ${name}`, () => {
    const { stdout, stderr, status } = run(program, ...args);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(output);
  });
}

it.skipIf(lacks("gcc"))("compiles, and refuses the i386 convention", () => {
  const source = `
    #include <stdio.h>
    int main(void) {
    #ifdef __x86_64__
      long result;
      /* getpid of i386 */
      __asm__ volatile("int $0x80" : "=a"(result) : "a"(20));
      printf("%ld", result);
    #else
      printf("-1");
    #endif
    }`;
  const { stdout, stderr } = run("/bin/bash", "-c", `gcc -x c -o program - <<'END' && ./program\n${source}\nEND`);
  expect({ stdout, stderr }).toEqual({ stdout: "-1", stderr: "" });
});

it("lets a debugger into what it has started", () => {
  // bounded: one child, and 20 s by spawnSync.
  // PTRACE_TRACEME, then a stop that the parent sees.
  const script = `my $pid = fork // die; if (!$pid) { syscall(${numbers.get("ptrace")}, 0, 0, 0, 0) == 0 or exit 1; kill 19, $$; exit 0 }
    waitpid $pid, 0; open(my $status, "<", "/proc/$pid/stat"); print((split / /, <$status>)[2]); kill 9, $pid;`;
  expect(run(PERL, "-e", script).stdout).toBe("t");
});

it.each(SECCOMP_ARCHITECTURES)("fits into what the kernel takes: %s", (architecture) => {
  const filter = seccompFilter(architecture);
  expect(filter.length % 8).toBe(0);
  expect(filter.length / 8).toBeLessThan(1000);
});

it("names only calls that there are, each once", () => {
  const known = new Set(SECCOMP_ARCHITECTURES.flatMap((architecture) => [...syscallNumbers(architecture).keys()]));
  const named = [...ALLOWED, ...RULES.map((rule) => rule.call)];
  expect(named.filter((name) => !known.has(name))).toEqual([]);
  expect(new Set(named).size).toBe(named.length);
  for (const architecture of SECCOMP_ARCHITECTURES) {
    const values = [...syscallNumbers(architecture).values()];
    expect(new Set(values).size).toBe(values.length);
    expect(Math.max(...values)).toBeLessThan(FIRST_UNKNOWN);
  }
});

describe.runIf(architectureHere() === "x64")("on x64", () => {
  it.skipIf(lacks("gcc"))("has the numbers of the kernel's headers", () => {
    const headers = spawnSync("gcc", ["-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"], {
      encoding: "utf8",
    });
    const theirs = [...headers.stdout.matchAll(/^#define __NR_(\w+) (\d+)$/gm)];
    expect(theirs.length).toBeGreaterThan(300);
    expect(theirs.filter(([, name = "", number]) => numbers.get(name) !== Number(number))).toEqual([]);
  });
});
