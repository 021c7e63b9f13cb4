import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/**
 * Tells a process from a later one with the same id: the time at which it started, and which start of the machine that
 * was. Undefined for a process that is not there, or that has ended and was not waited for.
 */
export function identityOf(pid: number): string | undefined {
  if (process.platform !== "linux") return identityByPs(pid);
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return undefined;
  }
  // The name in parentheses may hold anything, parentheses too (proc(5)). The state is field 3, the start field 22.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state = "", start = ""] = [fields[0], fields[19]];
  return state === "Z" || state === "X" || start === "" ? undefined : `${bootId()}:${start}`;
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

function identityByPs(pid: number): string | undefined {
  try {
    const [state = "", ...start] = execFileSync("ps", ["-o", "stat=,lstart=", "-p", String(pid)], { encoding: "utf8" })
      .trim()
      .split(/\s+/);
    return state.startsWith("Z") || start.length === 0 ? undefined : start.join(" ");
  } catch {
    // `ps` ends with 1 for a process that is not there.
    return undefined;
  }
}

export type KnownProcess = { pid: number; identity: string };

export function isAlive({ pid, identity }: KnownProcess): boolean {
  return identityOf(pid) === identity;
}

/** Signals the process, and nobody else: not one that got its id later. */
export function signal(known: KnownProcess, name: NodeJS.Signals): void {
  if (!isAlive(known)) return;
  try {
    process.kill(known.pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
