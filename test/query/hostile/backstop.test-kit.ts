import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../src/core/clock.ts";
import { systemCodeOf } from "../../../src/core/errors.ts";
import { signalProcess } from "../../../src/core/signals.test-kit.ts";
import type { QueryHarness } from "../../../src/query/query.test-kit.ts";

/**
 * What ends hostile queries when the budgets that they are to try do not hold: a look at the processes of the pool from
 * outside, which knows nothing of budgets.
 */
export type Backstop = { timeMs: number; memoryBytes: number; diskBytes: number };

const GIB = 2 ** 30;
const DEFAULT: Backstop = { timeMs: 60_000, memoryBytes: 4 * GIB, diskBytes: 4 * GIB };
const LOOK_MS = 50;

/** Resolves to what `run` does. Past the backstop all processes of the pool are killed, and it rejects. */
export async function withBackstop<T>(
  harness: Pick<QueryHarness, "pool" | "folder">,
  run: () => Promise<T>,
  backstop: Backstop = DEFAULT,
): Promise<T> {
  const startedMs = systemClock.monotonicMs();
  let breach: string | undefined;
  const look = (): void => {
    const pids = harness.pool.pids();
    breach ??= breachOf(backstop, {
      timeMs: systemClock.monotonicMs() - startedMs,
      memoryBytes: pids.reduce((sum, pid) => sum + residentBytes(pid), 0),
      diskBytes: bytesBelow(join(harness.folder, "tmp")),
    });
    if (breach !== undefined) for (const pid of pids) killIfThere(pid);
    timer = systemClock.after(LOOK_MS, look);
  };
  let timer = systemClock.after(LOOK_MS, look);
  try {
    const result = await run();
    if (breach !== undefined) throw new Error(`no budget ended it: ${breach}`);
    return result;
  } catch (error) {
    throw breach === undefined ? error : new Error(`no budget ended it: ${breach}`, { cause: error });
  } finally {
    timer.cancel();
  }
}

function breachOf(backstop: Backstop, used: Backstop): string | undefined {
  for (const what of ["timeMs", "memoryBytes", "diskBytes"] as const) {
    if (used[what] > backstop[what]) return `${what} ${Math.round(used[what])} of ${backstop[what]}`;
  }
  return undefined;
}

function killIfThere(pid: number): void {
  try {
    signalProcess(pid, "SIGKILL");
  } catch (error) {
    if (systemCodeOf(error) !== "ESRCH") throw error;
  }
}

/** 0 of one that has ended, and where there is no `/proc`. */
function residentBytes(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** What goes while it is looked at counts for nothing. */
function bytesBelow(folder: string): number {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return entries.reduce((sum, entry) => sum + bytesOf(join(folder, entry.name), entry.isDirectory()), 0);
  } catch {
    return 0;
  }
}

function bytesOf(path: string, isFolder: boolean): number {
  if (isFolder) return bytesBelow(path);
  try {
    return statSync(path).blocks * 512;
  } catch {
    return 0;
  }
}
