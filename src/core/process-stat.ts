import { readFileSync } from "node:fs";
import { systemCodeOf } from "./errors.ts";

/** What tells a process from a later one with the same id, where there is `/proc` (Linux). */
export type ProcessStat = {
  /** A letter: `Z` has ended and was not waited for, `X` is gone. */
  state: string;
  /** When it started: clock ticks since the machine did. */
  startTicks: string;
};

/** `sysconf(_SC_CLK_TCK)`, which Linux fixes for user space. */
export const TICKS_PER_SECOND = 100;

/** Undefined for a process that has ended, or that this system keeps from us. */
export function processStat(pid: number | string): ProcessStat | undefined {
  const fields = statFields(pid);
  // The state is field 3, the start field 22.
  const [state, startTicks] = [fields?.[0], fields?.[19]];
  return state === undefined || startTicks === undefined ? undefined : { state, startTicks };
}

/**
 * What `/proc/PID/stat` has behind the name, field 3 of proc(5) first. Undefined for a process that has ended, or that this
 * system keeps from us.
 */
export function statFields(pid: number | string): readonly string[] | undefined {
  const text = readIfShown(() => readFileSync(`/proc/${pid}/stat`, "latin1"));
  // The name in parentheses may hold anything, parentheses too.
  return text?.slice(text.lastIndexOf(")") + 2).split(" ");
}

/** Which start of the machine this is; undefined where that is not shown. */
export function bootId(): string | undefined {
  return readIfShown(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8"))?.trim();
}

const NOT_SHOWN: ReadonlySet<string> = new Set(["ENOENT", "ESRCH", "EACCES", "EPERM", "EINVAL"]);

/** What a file of `/proc` gives; undefined where it is not there, or not for us. */
export function readIfShown<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (NOT_SHOWN.has(systemCodeOf(error) ?? "")) return undefined;
    throw error;
  }
}
