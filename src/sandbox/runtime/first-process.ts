import { AGENT_GID, AGENT_UID, RuntimeError } from "./runtime.ts";

/**
 * The first process of a machine, as an ELF file of less than 1 KiB without libraries: images need not have a program
 * that can do this, and a machine that idles needs one page of memory.
 *
 * Processes whose parents have ended become its children; it ignores their ends, so that the kernel reaps them. It
 * becomes the agent with no capability (it is started with the right to change its ids, and may be looked into by the
 * agent: `/proc/1/fd/1` is the console), and then:
 *
 *     write(3, "r")   it is in place
 *     read(3)         its launcher has gone, the supervisor is its parent
 *     prctl(PR_SET_PDEATHSIG, SIGKILL)
 *     write(3, "d")   the machine dies with its supervisor
 *     close(3), and sleep for ever
 *
 * When one of these fails it exits with code 1.
 */
export function firstProcess(system: NodeJS.Architecture): Uint8Array {
  if (system === "x64") return link(62, assembleX64);
  if (system === "arm64") return link(183, assembleArm64);
  throw new RuntimeError("unable", `there are no sandboxes on processors of the kind ${system}`);
}

/** `expect`: the only result that is not a failure. */
type Step = { call: keyof typeof CALLS; arguments: readonly Argument[]; expect: 0 | 1 };
type Argument = number | keyof typeof DATA | "stack";

/** Numbers of system calls: x86_64, aarch64. */
const CALLS = {
  rtSigaction: [13, 134],
  setresgid: [119, 149],
  setresuid: [117, 147],
  capset: [126, 91],
  prctl: [157, 167],
  write: [1, 64],
  read: [0, 63],
  close: [3, 57],
  ppoll: [271, 73],
  exitGroup: [231, 94],
} as const;

const SIGKILL = 9;
const SIGCHLD = 17;
const PR_SET_PDEATHSIG = 1;
const PR_SET_DUMPABLE = 4;

/** `struct sigaction` with SIG_IGN; header (version 3, itself) and data of `capset`. */
const DATA = {
  ignore: words(1, 0, 0, 0, 0, 0, 0, 0),
  capabilityHeader: words(0x2008_0522, 0),
  noCapabilities: words(0, 0, 0, 0, 0, 0),
  ready: new TextEncoder().encode("r"),
  done: new TextEncoder().encode("d"),
};

const STEPS: readonly Step[] = [
  { call: "rtSigaction", arguments: [SIGCHLD, "ignore", 0, 8], expect: 0 },
  { call: "setresgid", arguments: [AGENT_GID, AGENT_GID, AGENT_GID], expect: 0 },
  { call: "setresuid", arguments: [AGENT_UID, AGENT_UID, AGENT_UID], expect: 0 },
  { call: "capset", arguments: ["capabilityHeader", "noCapabilities"], expect: 0 },
  { call: "prctl", arguments: [PR_SET_DUMPABLE, 1], expect: 0 },
  { call: "write", arguments: [3, "ready", 1], expect: 1 },
  { call: "read", arguments: [3, "stack", 1], expect: 1 },
  { call: "prctl", arguments: [PR_SET_PDEATHSIG, SIGKILL], expect: 0 },
  { call: "write", arguments: [3, "done", 1], expect: 1 },
  { call: "close", arguments: [3], expect: 0 },
];
const SLEEP: Step = { call: "ppoll", arguments: [0, 0, 0, 0], expect: 0 };
const FAIL: Step = { call: "exitGroup", arguments: [1], expect: 0 };

const LOADED_AT = 0x40_0000;
/** The file's header and its two program headers. */
const HEADERS_BYTES = 64 + 2 * 56;

type Assembler = (addressOf: (name: keyof typeof DATA) => number) => Uint8Array;

/** Headers, data, code. */
function link(machine: number, assemble: Assembler): Uint8Array {
  const addresses = new Map<string, number>();
  let end = HEADERS_BYTES;
  for (const [name, bytes] of Object.entries(DATA)) {
    addresses.set(name, LOADED_AT + end);
    end += Math.ceil(bytes.length / 8) * 8;
  }
  const code = assemble((name) => addresses.get(name) ?? 0);
  const file = new Uint8Array(end + code.length);
  file.set(headers(machine, LOADED_AT + end, file.length));
  for (const [name, bytes] of Object.entries(DATA)) file.set(bytes, (addresses.get(name) ?? 0) - LOADED_AT);
  file.set(code, end);
  return file;
}

/** Of a static program: all of it is loaded readable and executable; its stack is not executable. */
function headers(machine: number, entry: number, sizeBytes: number): Uint8Array {
  const bytes = new Uint8Array(HEADERS_BYTES);
  const view = new DataView(bytes.buffer);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  view.setUint16(16, 2, true);
  view.setUint16(18, machine, true);
  view.setUint32(20, 1, true);
  view.setBigUint64(24, BigInt(entry), true);
  view.setBigUint64(32, 64n, true);
  view.setUint16(52, 64, true);
  view.setUint16(54, 56, true);
  view.setUint16(56, 2, true);
  const load = [1, 5, 0, LOADED_AT, LOADED_AT, sizeBytes, sizeBytes, 0x1_0000];
  const stack = [0x6474_e551, 6, 0, 0, 0, 0, 0, 16];
  [load, stack].forEach(([type = 0, flags = 0, ...rest], index) => {
    const at = 64 + index * 56;
    view.setUint32(at, type, true);
    view.setUint32(at + 4, flags, true);
    rest.forEach((value, place) => view.setBigUint64(at + 8 + place * 8, BigInt(value), true));
  });
  return bytes;
}

/** `mov eax, N`, and the same for edi, esi, edx, r10d, with `syscall` at the end. */
const X64_ARGUMENTS = [[0xbf], [0xbe], [0xba], [0x41, 0xba]];

const assembleX64: Assembler = (addressOf) => {
  const call = (step: Step): number[] => [
    ...step.arguments.flatMap((argument, place) => {
      // mov rsi, rsp
      if (argument === "stack") return [0x48, 0x89, 0xe6];
      return [...(X64_ARGUMENTS[place] ?? []), ...words(typeof argument === "number" ? argument : addressOf(argument))];
    }),
    0xb8,
    ...words(CALLS[step.call][0]),
    0x0f,
    0x05,
  ];
  // cmp eax, EXPECT
  const steps = STEPS.map((step) => call(step).concat(0x83, 0xf8, step.expect));
  const sleep = call(SLEEP);
  const jumpBytes = 6;
  const failAt = steps.reduce((sum, step) => sum + step.length + jumpBytes, 0) + sleep.length + 2;
  const code: number[] = [];
  for (const step of steps) {
    code.push(...step);
    // jne FAIL, from the end of the instruction on
    code.push(0x0f, 0x85, ...words(failAt - (code.length + jumpBytes)));
  }
  // jmp SLEEP
  code.push(...sleep, 0xeb, 256 - (sleep.length + 2), ...call(FAIL));
  return Uint8Array.from(code);
};

/** movz, movk … lsl 16 */
function moveArm64(register: number, value: number): number[] {
  const [low, high] = [value & 0xffff, value >>> 16];
  return [(0xd280_0000 | (low << 5) | register) >>> 0, (0xf2a0_0000 | (high << 5) | register) >>> 0];
}

const assembleArm64: Assembler = (addressOf) => {
  const call = (step: Step): number[] => [
    ...step.arguments.flatMap((argument, place) => {
      // mov x1, sp
      if (argument === "stack") return [0x9100_03e1];
      return moveArm64(place, typeof argument === "number" ? argument : addressOf(argument));
    }),
    ...moveArm64(8, CALLS[step.call][1]),
    // svc 0
    0xd400_0001,
  ];
  // cmp x0, EXPECT
  const steps = STEPS.map((step) => call(step).concat((0xf100_001f | (step.expect << 10)) >>> 0));
  const sleep = call(SLEEP);
  const failAt = steps.reduce((sum, step) => sum + step.length + 1, 0) + sleep.length + 1;
  const code: number[] = [];
  for (const step of steps) {
    code.push(...step);
    // b.ne FAIL, from the instruction itself on
    code.push((0x5400_0001 | ((failAt - code.length) << 5)) >>> 0);
  }
  // b SLEEP
  code.push(...sleep, (0x1400_0000 | (-sleep.length & 0x03ff_ffff)) >>> 0, ...call(FAIL));
  return words(...code);
};

/** As 32-bit numbers, the lowest byte first. */
function words(...values: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(values.length * 4);
  const view = new DataView(bytes.buffer);
  values.forEach((value, index) => view.setUint32(index * 4, value >>> 0, true));
  return bytes;
}
