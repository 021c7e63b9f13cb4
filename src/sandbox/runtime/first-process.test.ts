import { expect, it } from "vitest";
import { firstProcess } from "./first-process.ts";
import { RuntimeError } from "./runtime.ts";
import { signaller } from "./signaller.ts";

/** The calls of the program, with their arguments where those are numbers that do not depend on where things lie. */
const CALLS = {
  rtSigaction: 134,
  setresgid: 149,
  setresuid: 147,
  capset: 91,
  prctl: 167,
  kill: 129,
  write: 64,
  read: 63,
  close: 57,
  ppoll: 73,
  exitGroup: 94,
};
const NAMES = new Map(Object.entries(CALLS).map(([name, number]) => [number, name]));

/** What it calls, up to the second time that it sleeps; every call answers what `answer` says. The machine is x64's test. */
function traceArm64(program: Uint8Array, answer: (name: string) => number): string[] {
  const file = Buffer.from(program);
  const base = Number(file.readBigUInt64LE(64 + 16));
  const registers = Array.from({ length: 9 }, () => 0);
  const trace: string[] = [];
  let isEqual = false;
  for (let at = Number(file.readBigUInt64LE(24)) - base; trace.length < 20; at += 4) {
    const word = file.readUInt32LE(at);
    const [register, value] = [word & 31, (word >>> 5) & 0xffff];
    if (word >>> 21 === 0xd280_0000 >>> 21) registers[register] = value;
    else if (word >>> 21 === 0xf2a0_0000 >>> 21) registers[register] = (registers[register] ?? 0) + value * 65_536;
    else if (word === 0x9100_03e1) registers[1] = -1;
    // A number that was read: the first is shown as -100, the second as -101.
    else if (word >>> 11 === 0xb940_03e0 >>> 11) registers[word & 31] = -100 - ((word >>> 10) & 1);
    else if (word >>> 22 === 0xf100_0000 >>> 22) isEqual = registers[0] === ((word >>> 10) & 0xfff);
    else if (word >>> 24 === 0x54 && (word & 15) === 1) at += isEqual ? 0 : (((word << 8) >> 13) - 1) * 4;
    else if (word >>> 26 === 5) at += (((word << 6) >> 6) - 1) * 4;
    else if (word === 0xd400_0001) {
      const name = NAMES.get(registers[8] ?? 0) ?? `call ${registers[8]}`;
      trace.push(
        `${name} ${registers
          .slice(0, 3)
          .map((number) => shown(file, number, base))
          .join(" ")}`,
      );
      if (name === "exitGroup" || trace.filter((line) => line.startsWith("ppoll")).length === 2) return trace;
      registers[0] = answer(name);
    } else throw new Error(`0x${word.toString(16)} is no instruction that it should have`);
  }
  return trace;
}

/** Addresses as what lies there. */
function shown(file: Buffer, number: number, base: number): string {
  return number >= base ? `[${file.readUInt32LE(number - base).toString(16)}]` : String(number);
}

const FIRST_PROCESS = firstProcess("arm64", 3);
const works = (name: string): number => (name === "write" || name === "read" ? 1 : 0);

it("does on arm64 what it does on x64, whose own is what all machines of other tests run", () => {
  expect(traceArm64(FIRST_PROCESS, works)).toEqual([
    "rtSigaction 17 [1] 0",
    "setresgid 1000 1000 1000",
    "setresuid 1000 1000 1000",
    "capset [20080522] [0] 1000",
    "prctl 4 1 1000",
    "write 3 [72] 1",
    "read 3 -1 1",
    "prctl 1 9 1",
    "write 3 [64] 1",
    expect.stringMatching(/^close 3 /),
    "ppoll 0 0 0",
    "ppoll 0 0 0",
  ]);
});

it("ends when something fails", () => {
  for (const failing of ["rtSigaction", "setresuid", "capset", "prctl", "write", "read", "close"]) {
    const trace = traceArm64(FIRST_PROCESS, (name) => (name === failing ? -1 : works(name)));
    expect(trace.slice(-2)).toEqual([expect.stringMatching(`^${failing} `), expect.stringMatching(/^exitGroup 1 /)]);
  }
});

it("sends on arm64 the signal that it is told to, whoever that is for", () => {
  const program = signaller("arm64");
  expect(traceArm64(program, (name) => (name === "read" ? 8 : 0))).toEqual([
    "read 0 -1 8",
    "kill -100 -101 8",
    expect.stringMatching(/^exitGroup 0 /),
  ]);
  expect(traceArm64(program, () => 0).at(-1)).toMatch(/^exitGroup 1 /);
  expect(traceArm64(program, (name) => (name === "read" ? 8 : -1)).at(-1)).toMatch(/^exitGroup 1 /);
});

it("is less than 1 KiB, and is not made for other processors", () => {
  expect(firstProcess("x64", 3).length).toBeLessThan(1024);
  expect(firstProcess("arm64", 3).length).toBeLessThan(1024);
  expect(() => firstProcess("riscv64", 3)).toThrow(RuntimeError);
});
