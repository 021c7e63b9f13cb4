import { Backoff } from "../../core/backoff.ts";
import { sleep, type Clock } from "../../core/clock.ts";
import { untilAborted } from "../../core/concurrency.ts";
import { EngineError, messageOf } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { Random } from "../../core/random.ts";
import { isPassing } from "../../fabric/runner-failure.ts";

export type RetryOptions = {
  clock: Clock;
  random: Random;
  log: Log;
  /** Nothing is tried any more once it is aborted; its reason is what is thrown then. */
  signal: AbortSignal;
};

const PAUSES = { firstMs: 100, mostMs: 5_000 } as const;

/** Calls the control plane until it answers, or refuses for good. */
export async function untilAnswered<T>(
  what: string,
  { clock, random, log, signal }: RetryOptions,
  call: () => Promise<T>,
): Promise<T> {
  const backoff = new Backoff({ random, ...PAUSES });
  for (;;) {
    signal.throwIfAborted();
    try {
      return await untilAborted(call(), signal);
    } catch (error) {
      if (signal.aborted || !isPassing(error)) throw error;
      log.debug({ reason: messageOf(error) }, `${what}: no answer; trying again`);
      await sleep(clock, backoff.next(), signal);
    }
  }
}

const LOCAL_PAUSES = { firstMs: 100, mostMs: 10_000 } as const;

export type PersistOptions = Omit<RetryOptions, "signal"> & {
  /** What fails after it was aborted is not tried again. */
  signal?: AbortSignal;
  mostTries?: number;
};

/** Does something on this computer, again when it has failed. Rejects with the last failure. */
export async function untilDone<T>(
  what: string,
  { clock, random, log, signal, mostTries = Infinity }: PersistOptions,
  work: () => Promise<T>,
): Promise<T> {
  const backoff = new Backoff({ random, ...LOCAL_PAUSES });
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (signal?.aborted === true || tries >= mostTries) throw error;
      log.warn({ reason: messageOf(error) }, `${what} failed; trying again`);
      await sleep(clock, backoff.next());
    }
  }
}

/** Whether a refusal of the control plane says that the sandbox is no more. */
export function isGone(error: unknown): boolean {
  return error instanceof EngineError && (error.code === "sandbox_not_found" || error.code === "not_found");
}
