/**
 * Time, passed in. This file and `random.ts` are the only places that read the machine's clock, timers or
 * randomness; everything else takes a `Clock`, so that tests and the simulation decide what time it is.
 */

export type TimerHandle = { cancel(): void };

export interface Clock {
  /** Wall-clock milliseconds since the Unix epoch (integer). */
  nowMs(): number;
  /** Milliseconds on a clock that never goes back, for measuring durations. */
  monotonicMs(): number;
  /** Runs `task` once after `delayMs`. The timer does not keep the process alive when `background` is set. */
  after(delayMs: number, task: () => void, options?: { background?: boolean }): TimerHandle;
  /** Runs `task` every `periodMs` until cancelled; never keeps the process alive. */
  every(periodMs: number, task: () => void): TimerHandle;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, task, options) {
    const timer = setTimeout(task, delayMs);
    if (options?.background === true) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
  every(periodMs, task) {
    const timer = setInterval(task, periodMs);
    timer.unref();
    return { cancel: () => clearInterval(timer) };
  },
};

/** Nanoseconds since the Unix epoch, with the clock's millisecond resolution. */
export function nowNs(clock: Clock): bigint {
  return BigInt(clock.nowMs()) * 1_000_000n;
}

/** Resolves when this thread has done what it is at, and has looked for input and output. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Resolves after `delayMs`; rejects with the signal's reason when aborted first. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason as Error);
      return;
    }
    const onAbort = () => {
      timer.cancel();
      reject(signal?.reason as Error);
    };
    const timer = clock.after(delayMs, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** The same, but ends early, and well, when the signal is aborted. */
export async function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  await sleep(clock, delayMs, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

/**
 * What the work resolves to. The signal that it is given is aborted with `late()` when the time is up, and when `signal` is;
 * rejects with `late()` when the work fails after the time is up, whatever it says.
 */
export async function withTimeLimit<T>(
  clock: Clock,
  { ms, late, signal }: { ms: number; late: () => Error; signal?: AbortSignal },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const timer = clock.after(ms, () => stop.abort(late()), { background: true });
  try {
    return await work(signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]));
  } catch (error) {
    throw stop.signal.aborted ? stop.signal.reason : error;
  } finally {
    timer.cancel();
  }
}

/** A clock for tests: time stands still until `advance` moves it, running due timers in order. */
export class ManualClock implements Clock {
  #nowMs: number;
  #nextId = 0;
  readonly #timers = new Map<number, { dueMs: number; task: () => void; periodMs?: number }>();

  constructor(startMs = 1_700_000_000_000) {
    this.#nowMs = startMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, task: () => void): TimerHandle {
    return this.#add({ dueMs: this.#nowMs + delayMs, task });
  }

  every(periodMs: number, task: () => void): TimerHandle {
    return this.#add({ dueMs: this.#nowMs + periodMs, task, periodMs });
  }

  advance(byMs: number): void {
    const untilMs = this.#nowMs + byMs;
    for (;;) {
      const next = [...this.#timers].filter(([, t]) => t.dueMs <= untilMs).sort((a, b) => a[1].dueMs - b[1].dueMs)[0];
      if (next === undefined) break;
      const [id, timer] = next;
      this.#nowMs = timer.dueMs;
      if (timer.periodMs === undefined) this.#timers.delete(id);
      else timer.dueMs += timer.periodMs;
      timer.task();
    }
    this.#nowMs = untilMs;
  }

  #add(timer: { dueMs: number; task: () => void; periodMs?: number }): TimerHandle {
    const id = this.#nextId++;
    this.#timers.set(id, timer);
    return { cancel: () => void this.#timers.delete(id) };
  }
}
