import { RuntimeError } from "./runtime.ts";

/** A program of system calls. When one of the steps fails it exits with code 1. */
type TinyProgram = {
  /** Bytes that steps name. */
  data: Readonly<Record<string, Uint8Array>>;
  steps: readonly Step[];
  /** Made after the steps, again and again. */
  last: Step;
};

/** `expect`: the only result that is not a failure. */
export type Step = { call: keyof typeof CALLS; arguments: readonly Argument[]; expect: number };

/** A number; the address of data, by its name; that of memory to write to; or a 32-bit number that lies there. */
type Argument = number | string | { stack: "address" | 0 | 1 };

/**
 * The program as an ELF file of less than 1 KiB without libraries: images need not have one that can do this. Throws
 * `RuntimeError` `unable` for processors of other kinds than x64 and arm64.
 */
export function tinyProgram(system: NodeJS.Architecture, program: TinyProgram): Uint8Array {
  if (system === "x64") return link(62, program, assembleX64);
  if (system === "arm64") return link(183, program, assembleArm64);
  throw new RuntimeError("unable", `there are no sandboxes on processors of the kind ${system}`);
}

/** Numbers of system calls: x86_64, aarch64. */
const CALLS = {
  rtSigaction: [13, 134],
  setresgid: [119, 149],
  setresuid: [117, 147],
  capset: [126, 91],
  prctl: [157, 167],
  kill: [62, 129],
  write: [1, 64],
  read: [0, 63],
  close: [3, 57],
  ppoll: [271, 73],
  exitGroup: [231, 94],
} as const;

const FAIL: Step = { call: "exitGroup", arguments: [1], expect: 0 };

const LOADED_AT = 0x40_0000;
/** The file's header and its two program headers. */
const HEADERS_BYTES = 64 + 2 * 56;

type Assembler = (program: TinyProgram, addressOf: (name: string) => number) => Uint8Array;

/** Headers, data, code. */
function link(machine: number, program: TinyProgram, assemble: Assembler): Uint8Array {
  const addresses = new Map<string, number>();
  let end = HEADERS_BYTES;
  for (const [name, bytes] of Object.entries(program.data)) {
    addresses.set(name, LOADED_AT + end);
    end += Math.ceil(bytes.length / 8) * 8;
  }
  const addressOf = (name: string): number => {
    const address = addresses.get(name);
    if (address === undefined) throw new RangeError(`the program has no data ${name}`);
    return address;
  };
  const code = assemble(program, addressOf);
  const file = new Uint8Array(end + code.length);
  file.set(headers(machine, LOADED_AT + end, file.length));
  for (const [name, bytes] of Object.entries(program.data)) file.set(bytes, addressOf(name) - LOADED_AT);
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

/** Of edi, esi and edx. */
const X64_NUMBERS = [7, 6, 2];

/** mov rdi, rsp; or mov edi, [rsp + 4 N]; and so on. */
function stackX64(place: number, { stack }: { stack: "address" | 0 | 1 }): number[] {
  const register = X64_NUMBERS[place] ?? 0;
  if (stack === "address") return [0x48, 0x89, 0xe0 | register];
  return [0x8b, 0x44 | (register << 3), 0x24, 4 * stack];
}

const assembleX64: Assembler = ({ steps: all, last }, addressOf) => {
  const call = (step: Step): number[] => [
    ...step.arguments.flatMap((argument, place) => {
      if (typeof argument === "object") return stackX64(place, argument);
      return [...(X64_ARGUMENTS[place] ?? []), ...words(typeof argument === "number" ? argument : addressOf(argument))];
    }),
    0xb8,
    ...words(CALLS[step.call][0]),
    0x0f,
    0x05,
  ];
  // cmp eax, EXPECT
  const steps = all.map((step) => call(step).concat(0x83, 0xf8, step.expect));
  const end = call(last);
  const jumpBytes = 6;
  const failAt = steps.reduce((sum, step) => sum + step.length + jumpBytes, 0) + end.length + 2;
  const code: number[] = [];
  for (const step of steps) {
    code.push(...step);
    // jne FAIL, from the end of the instruction on
    code.push(0x0f, 0x85, ...words(failAt - (code.length + jumpBytes)));
  }
  // jmp to the last
  code.push(...end, 0xeb, 256 - (end.length + 2), ...call(FAIL));
  return Uint8Array.from(code);
};

/** movz, movk … lsl 16 */
function moveArm64(register: number, value: number): number[] {
  const [low, high] = [value & 0xffff, value >>> 16];
  return [(0xd280_0000 | (low << 5) | register) >>> 0, (0xf2a0_0000 | (high << 5) | register) >>> 0];
}

/** mov xN, sp; or ldr wN, [sp, 4 N] */
function stackArm64(register: number, { stack }: { stack: "address" | 0 | 1 }): number[] {
  if (stack === "address") return [(0x9100_03e0 | register) >>> 0];
  return [(0xb940_03e0 | (stack << 10) | register) >>> 0];
}

const assembleArm64: Assembler = ({ steps: all, last }, addressOf) => {
  const call = (step: Step): number[] => [
    ...step.arguments.flatMap((argument, place) => {
      if (typeof argument === "object") return stackArm64(place, argument);
      return moveArm64(place, typeof argument === "number" ? argument : addressOf(argument));
    }),
    ...moveArm64(8, CALLS[step.call][1]),
    // svc 0
    0xd400_0001,
  ];
  // cmp x0, EXPECT
  const steps = all.map((step) => call(step).concat((0xf100_001f | (step.expect << 10)) >>> 0));
  const end = call(last);
  const failAt = steps.reduce((sum, step) => sum + step.length + 1, 0) + end.length + 1;
  const code: number[] = [];
  for (const step of steps) {
    code.push(...step);
    // b.ne FAIL, from the instruction itself on
    code.push((0x5400_0001 | ((failAt - code.length) << 5)) >>> 0);
  }
  // b to the last
  code.push(...end, (0x1400_0000 | (-end.length & 0x03ff_ffff)) >>> 0, ...call(FAIL));
  return words(...code);
};

/** As 32-bit numbers, the lowest byte first. */
export function words(...values: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(values.length * 4);
  const view = new DataView(bytes.buffer);
  values.forEach((value, index) => view.setUint32(index * 4, value >>> 0, true));
  return bytes;
}
