import { readdirSync, readFileSync } from "node:fs";
import { readIfShown, statFields, TICKS_PER_SECOND } from "./process-stat.ts";

/**
 * User and system CPU seconds of this process and of all that it has started: those that live, and those that ended, from
 * the moment on that their parent took notice. Of this process alone where there is no `/proc` (proc(5)).
 */
export function treeCpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  const own = (user + system) / 1e6;
  const ended = ticksOf(process.pid)?.ended ?? 0;
  return own + (ended + childTicks(process.pid)) / TICKS_PER_SECOND;
}

/** Of all that live below a process. */
function childTicks(pid: number | string): number {
  return childrenOf(pid).reduce((sum, child) => {
    const ticks = ticksOf(child);
    // One that ended in between is counted by its parent from then on.
    return ticks === undefined ? sum : sum + ticks.own + ticks.ended + childTicks(child);
  }, 0);
}

/** Of each of its threads: whichever started a process is not told. */
function childrenOf(pid: number | string): string[] {
  const threads = readIfShown(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  return threads.flatMap((thread) => {
    const text = readIfShown(() => readFileSync(`/proc/${pid}/task/${thread}/children`, "latin1")) ?? "";
    return text.split(" ").filter((id) => id !== "");
  });
}

function ticksOf(pid: number | string): { own: number; ended: number } | undefined {
  const fields = statFields(pid);
  if (fields === undefined) return undefined;
  // Fields 14 to 17 of proc(5).
  const [utime = 0, stime = 0, cutime = 0, cstime = 0] = fields.slice(11, 15).map(Number);
  return { own: utime + stime, ended: cutime + cstime };
}
