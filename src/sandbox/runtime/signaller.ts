import { type Step, tinyProgram } from "./tiny-program.ts";

/**
 * A tiny program that sends a signal: it reads two 32-bit numbers from its input, which are the arguments of `kill`, and
 * ends with code 0, or 1 where that failed.
 */
export function signaller(system: NodeJS.Architecture): Uint8Array {
  return tinyProgram(system, { data: {}, steps: STEPS, last: { call: "exitGroup", arguments: [0], expect: 0 } });
}

const STEPS: readonly Step[] = [
  { call: "read", arguments: [0, { stack: "address" }, 8], expect: 8 },
  { call: "kill", arguments: [{ stack: 0 }, { stack: 1 }], expect: 0 },
];
