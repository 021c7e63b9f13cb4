import type { Json } from "../../client/api.ts";
import { EXIT } from "../../client/failure.ts";

/** What a shell gives for a command that a signal ended. */
const SIGNALLED = 128;
/** As `timeout` of coreutils has it. */
const TIMED_OUT = 124;
/** Of Linux, whatever this computer is: the first is 1. */
const SIGNALS =
  "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU " +
  "XFSZ VTALRM PROF WINCH IO PWR SYS";
const NUMBERS = new Map(SIGNALS.split(" ").map((name, i) => [`SIG${name}`, i + 1]));

/** The exit code of this process for a command of a sandbox that ended so. */
export function commandExitCode({ exit_code: code, signal, timed_out: timedOut }: Json): number {
  if (timedOut === true) return TIMED_OUT;
  if (typeof code === "number") return code;
  const number = NUMBERS.get(String(signal));
  return number === undefined ? EXIT.failed : SIGNALLED + number;
}
