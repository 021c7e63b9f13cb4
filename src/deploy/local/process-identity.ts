import { execFileSync } from "node:child_process";
import { bootId, processStat } from "../../core/process-stat.ts";

/**
 * Tells a process from a later one with the same id: the time at which it started, and which start of the machine that
 * was. Undefined for a process that is not there, or that has ended and was not waited for.
 */
export function identityOf(pid: number): string | undefined {
  if (process.platform !== "linux") return identityByPs(pid);
  const { state = "Z", startTicks } = processStat(pid) ?? {};
  return state === "Z" || state === "X" ? undefined : `${bootId()}:${startTicks}`;
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
