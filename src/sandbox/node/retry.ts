import { sleep, type Clock } from "../../core/clock.ts";
import { untilAborted } from "../../core/concurrency.ts";
import { messageOf } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { Random } from "../../core/random.ts";
import { Backoff, isPassing } from "../../fabric/runner-failure.ts";

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
