import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Clock, TimerHandle } from "../../core/clock.ts";
import { budgetError } from "./budget.ts";

/**
 * Holds query processes to their memory from outside. DuckDB's own limit counts DuckDB's own buffers only, and the
 * kernel's (RLIMIT_DATA, Linux only) is set once per process, for the largest budget. So while queries run, resident
 * memory is looked at every few milliseconds, the more often the less is left, and a process that grew past what its
 * query is allowed is killed.
 */
export type Watched = { readonly pid: number | undefined; kill(reason: Error): void };

export type Watch = {
  /** The most that the process grew since the watch began, in bytes, as far as it was seen. */
  peakBytes(): number;
  stop(): void;
};

export type WatchdogOptions = {
  clock: Clock;
  /** How resident memory is read; the platform's way by default. */
  meter?: MemoryMeter;
};

export type MemoryMeter = {
  /** How often to look, where nothing is near its limit. */
  readonly periodMs: number;
  /** How often to look at most. */
  readonly minPeriodMs: number;
  /** Calls back with the bytes of each process that could be read; at once, or later. */
  measure(pids: readonly number[], take: (pid: number, bytes: number) => void): void;
};

/** Growth that is not the query's: buffers of the process itself, and what the allocator keeps. */
const MIN_SLACK_BYTES = 64 * 1024 * 1024;
const SLACK_SHARE = 0.1;

/** What a process may grow by while its query is allowed so much. */
export function growthLimit(allowedBytes: number): number {
  return allowedBytes + Math.max(MIN_SLACK_BYTES, allowedBytes * SLACK_SHARE);
}

/** About as fast as a process can fill memory: what is left lasts so long at least. */
const MAX_GROWTH_BYTES_PER_MS = 4 * 1024 * 1024;

type Entry = { child: Watched; pid: number; allowedBytes: number; baseBytes: number | undefined; peakBytes: number };

export class Watchdog {
  readonly #clock: Clock;
  readonly #meter: MemoryMeter;
  readonly #entries = new Map<number, Entry>();
  #timer: TimerHandle | undefined;

  constructor({ clock, meter = platformMeter() }: WatchdogOptions) {
    this.#clock = clock;
    this.#meter = meter;
  }

  /** Watches a process from now on; what it holds now is not held against its query. */
  watch(child: Watched, allowedBytes: number): Watch {
    const { pid } = child;
    if (pid === undefined) return { peakBytes: () => 0, stop: () => {} };
    const entry: Entry = { child, pid, allowedBytes, baseBytes: undefined, peakBytes: 0 };
    this.#entries.set(pid, entry);
    this.#meter.measure([pid], (_pid, bytes) => (entry.baseBytes ??= bytes));
    this.#expectNear(allowedBytes);
    return { peakBytes: () => entry.peakBytes, stop: () => this.#forget(entry) };
  }

  #forget(entry: Entry): void {
    if (this.#entries.get(entry.pid) === entry) this.#entries.delete(entry.pid);
    if (this.#entries.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Looks again before a process can have grown by so much. */
  #expectNear(leftBytes: number): void {
    const { periodMs, minPeriodMs } = this.#meter;
    const delayMs = Math.max(minPeriodMs, Math.min(periodMs, leftBytes / MAX_GROWTH_BYTES_PER_MS));
    this.#timer ??= this.#clock.after(delayMs, () => this.#look());
  }

  #look(): void {
    this.#timer = undefined;
    this.#meter.measure([...this.#entries.keys()], (pid, bytes) => {
      const entry = this.#entries.get(pid);
      if (entry === undefined) return;
      entry.baseBytes ??= bytes;
      entry.peakBytes = Math.max(entry.peakBytes, bytes - entry.baseBytes);
      if (entry.peakBytes <= growthLimit(entry.allowedBytes)) return;
      this.#forget(entry);
      entry.child.kill(budgetError("memory_bytes", entry.peakBytes, entry.allowedBytes));
    });
    const left = Array.from(this.#entries.values(), (entry) => growthLimit(entry.allowedBytes) - entry.peakBytes);
    if (left.length > 0) this.#expectNear(Math.min(...left));
  }
}

/** Resident memory of other processes, as far as the platform tells. */
export function platformMeter(platform: NodeJS.Platform = process.platform): MemoryMeter {
  return platform === "linux" ? procMeter : psMeter();
}

/** A read of `/proc` takes some ten microseconds, less than handing it to another thread would. */
const procMeter: MemoryMeter = {
  periodMs: 20,
  minPeriodMs: 2,
  measure(pids, take) {
    for (const pid of pids) {
      const bytes = procResidentBytes(pid);
      if (bytes !== undefined) take(pid, bytes);
    }
  },
};

function procResidentBytes(pid: number): number | undefined {
  try {
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1];
    return kib === undefined ? undefined : Number(kib) * 1024;
  } catch {
    // It just ended.
    return undefined;
  }
}

/** Where there is no `/proc`: one `ps` for all, and never two at a time. */
function psMeter(): MemoryMeter {
  let running = false;
  return {
    periodMs: 100,
    minPeriodMs: 100,
    measure(pids, take) {
      if (running) return;
      running = true;
      execFile("ps", ["-o", "pid=,rss=", "-p", pids.join(",")], (_error, output) => {
        running = false;
        for (const [, pid, kib] of output.matchAll(/^\s*(\d+)\s+(\d+)\s*$/gm)) take(Number(pid), Number(kib) * 1024);
      });
    },
  };
}
