import { FIRST_UNKNOWN, type SeccompArchitecture, syscallNumbers } from "./numbers.ts";
import { type ArgumentRule, type ArgumentTest, ENOSYS, EPERM, PROGRAMS, type SeccompPolicy } from "./rules.ts";

/** One instruction of classic BPF: `struct sock_filter`. */
type Instruction = { code: number; ifTrue: number; ifFalse: number; k: number };

const LOAD = 0x20; // BPF_LD | BPF_W | BPF_ABS
const AND = 0x54; // BPF_ALU | BPF_AND | BPF_K
const JUMP = 0x05; // BPF_JMP | BPF_JA
const JUMP_IF_EQUAL = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const JUMP_IF_AT_LEAST = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const RETURN = 0x06; // BPF_RET | BPF_K

const RETURN_ALLOW = 0x7fff_0000;
const RETURN_ERRNO = 0x0005_0000;

/** Where things are in `struct seccomp_data`. */
const NUMBER_OFFSET = 0;
const ARCHITECTURE_OFFSET = 4;
const ARGUMENTS_OFFSET = 16;

const AUDIT_ARCH: Readonly<Record<SeccompArchitecture, number>> = { x64: 0xc000_003e, arm64: 0xc000_00b7 };
/** The bit of x32 calls in their numbers. */
const X32_BIT = 0x4000_0000;

/** Jumps on a condition reach so far. */
const MAX_REACH = 255;
/** The kernel takes no longer filter (BPF_MAXINSNS). */
const MAX_INSTRUCTIONS = 4096;
const INSTRUCTION_BYTES = 8;

/**
 * The filter of a policy, by default that for programs in sandboxes: instructions as the kernel takes them
 * (`struct sock_filter`, little endian). What is not allowed fails with EPERM; calls of later kernels than the table
 * with ENOSYS, so that the C library falls back to an older one.
 */
export function seccompFilter(architecture: SeccompArchitecture, policy: SeccompPolicy = PROGRAMS): Uint8Array {
  const instructions = [
    instruction(LOAD, ARCHITECTURE_OFFSET),
    ...orRefuse(instruction(JUMP_IF_EQUAL, AUDIT_ARCH[architecture], { ifTrue: 1 })),
    instruction(LOAD, NUMBER_OFFSET),
    ...search(rangesOf(architecture, policy)),
  ];
  if (instructions.length > MAX_INSTRUCTIONS) throw new Error("the seccomp filter is longer than the kernel takes");
  return encode(instructions);
}

function orRefuse(condition: Instruction): Instruction[] {
  return [condition, fail(EPERM)];
}

/** System calls from a number on, up to where the next range begins, with what is done. */
type Range = { from: number; body: readonly Instruction[] };

/** All numbers, in order; neighbours of which the same is done are one range. */
function rangesOf(architecture: SeccompArchitecture, { allowed, rules }: SeccompPolicy): Range[] {
  const numbers = syscallNumbers(architecture);
  const bodies = new Map<number, readonly Instruction[]>();
  for (const name of allowed) setBody(bodies, numbers.get(name), ALLOW);
  for (const rule of rules) setBody(bodies, numbers.get(rule.call), ruleBody(rule));
  const ranges: Range[] = [];
  for (let number = 0; number < FIRST_UNKNOWN; number++) {
    const body = bodies.get(number) ?? REFUSE;
    if (ranges.at(-1)?.body !== body) ranges.push({ from: number, body });
  }
  // Above is what the kernel may bring one day, and higher up, what is called by the x32 convention.
  ranges.push({ from: FIRST_UNKNOWN, body: [fail(ENOSYS)] }, { from: X32_BIT, body: REFUSE });
  return ranges;
}

function setBody(
  bodies: Map<number, readonly Instruction[]>,
  number: number | undefined,
  body: readonly Instruction[],
): void {
  if (number !== undefined) bodies.set(number, body);
}

/** Finds the range of the number that is loaded by halving; every range ends with a return. */
function search(ranges: readonly Range[]): Instruction[] {
  const middle = ranges.length >> 1;
  const upper = ranges[middle];
  if (upper === undefined) throw new Error("there are no ranges to search");
  if (middle === 0) return [...upper.body];
  const below = search(ranges.slice(0, middle));
  const above = search(ranges.slice(middle));
  const jump =
    below.length <= MAX_REACH
      ? [instruction(JUMP_IF_AT_LEAST, upper.from, { ifTrue: below.length })]
      : [instruction(JUMP_IF_AT_LEAST, upper.from, { ifFalse: 1 }), instruction(JUMP, below.length)];
  return [...jump, ...below, ...above];
}

/** Each list of tests allows, or goes on with the next list; after the last one the call fails. */
function ruleBody({ errno, anyOf }: ArgumentRule): Instruction[] {
  return [...anyOf.flatMap((tests) => listBody(tests)), fail(errno)];
}

function listBody([test, ...rest]: readonly ArgumentTest[]): Instruction[] {
  if (test === undefined) return [...ALLOW];
  const body = listBody(rest);
  return [...testBody(test, body.length), ...body];
}

/** Goes on behind itself when the test holds, and else `skip` instructions further. */
function testBody(test: ArgumentTest, skip: number): Instruction[] {
  const isWanted = "isOneOf" in test;
  const values = isWanted ? test.isOneOf : test.isNoneOf;
  const load = [instruction(LOAD, ARGUMENTS_OFFSET + 8 * test.argument)];
  if (test.mask !== undefined) load.push(instruction(AND, test.mask));
  const compare = values.map((value, index) => {
    const behind = values.length - 1 - index;
    // Behind the comparisons is the jump for the case that none has matched, when one should have.
    return instruction(JUMP_IF_EQUAL, value, { ifTrue: isWanted ? behind + 1 : behind + skip });
  });
  return isWanted ? [...load, ...compare, instruction(JUMP, skip)] : [...load, ...compare];
}

function instruction(code: number, k: number, { ifTrue = 0, ifFalse = 0 } = {}): Instruction {
  if (ifTrue > MAX_REACH || ifFalse > MAX_REACH) throw new Error("a jump of the seccomp filter is too long");
  return { code, k, ifTrue, ifFalse };
}

function fail(errno: number): Instruction {
  return instruction(RETURN, RETURN_ERRNO | errno);
}

const ALLOW: readonly Instruction[] = [instruction(RETURN, RETURN_ALLOW)];
const REFUSE: readonly Instruction[] = [fail(EPERM)];

function encode(instructions: readonly Instruction[]): Uint8Array {
  const bytes = new Uint8Array(instructions.length * INSTRUCTION_BYTES);
  const view = new DataView(bytes.buffer);
  for (const [index, { code, ifTrue, ifFalse, k }] of instructions.entries()) {
    const at = index * INSTRUCTION_BYTES;
    view.setUint16(at, code, true);
    view.setUint8(at + 2, ifTrue);
    view.setUint8(at + 3, ifFalse);
    view.setUint32(at + 4, k >>> 0, true);
  }
  return bytes;
}
