import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { TICKS_PER_SECOND } from "../../src/core/process-stat.ts";
import { cpuSecondsOf } from "../support/process-stats.ts";

/** Of two counts in ticks for each core, and what was done while they were read. */
const UNCERTAIN_SECONDS = 0.1;

/** What else the machine did: the share of it that other processes took, and by how much the clock was set. */
export type ForeignLoad = { foreignShare: number; clockStepMs: number };

const MOST_FOREIGN_SHARE = 0.1;
const MOST_CLOCK_STEP_MS = 50;

/** Why figures that were taken meanwhile say nothing, in sentences; none when they do. */
export function loadProblems({ foreignShare, clockStepMs }: ForeignLoad): string[] {
  const problems: string[] = [];
  if (foreignShare > MOST_FOREIGN_SHARE) problems.push(`other processes took ${percent(foreignShare)} of the machine`);
  if (clockStepMs > MOST_CLOCK_STEP_MS) problems.push(`the clock was set by ${clockStepMs.toFixed(0)} ms`);
  return problems;
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

/** What else the machine did while something was measured, and whether its clock was set. Linux only. */
export class Watch {
  readonly #startedMs = performance.now();
  readonly #offsetMs = offsetMs();
  readonly #busySeconds = busySeconds();
  /** Of this process and all below it. */
  readonly #ownSeconds = cpuSecondsOf(process.pid);

  end(): ForeignLoad {
    const seconds = (performance.now() - this.#startedMs) / 1_000;
    const own = cpuSecondsOf(process.pid) - this.#ownSeconds;
    const foreign = Math.max(0, busySeconds() - this.#busySeconds - own - UNCERTAIN_SECONDS);
    return {
      foreignShare: Math.min(1, foreign / (seconds * availableParallelism())),
      clockStepMs: Math.abs(offsetMs() - this.#offsetMs),
    };
  }
}

/** Of the wall clock from the monotonic one. */
function offsetMs(): number {
  return Date.now() - performance.now();
}

/** CPU seconds of all processes together, since the machine started. */
function busySeconds(): number {
  const line = readFileSync("/proc/stat", "utf8").split("\n", 1)[0] ?? "";
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line.trim().split(/\s+/).slice(1).map(Number);
  return (user + nice + system + irq + softirq) / TICKS_PER_SECOND;
}
