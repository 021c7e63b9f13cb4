import { fullBackoffMs } from "../../core/backoff.ts";
import type { Clock } from "../../core/clock.ts";

const DELAY = { firstMs: 250, mostMs: 60_000 } as const;

type Wait = { untilMs: number; failures: number };

/** Objects that failed, and are passed over for a while: longer each time, so that they cost the others nothing. */
export class Postponed {
  readonly #clock: Clock;
  #waits = new Map<string, Wait>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(key: string): void {
    const failures = this.#waits.get(key)?.failures ?? 0;
    const untilMs = this.#clock.monotonicMs() + fullBackoffMs(DELAY, failures);
    this.#waits.set(key, { untilMs, failures: failures + 1 });
  }

  /** Tells which of these need not wait. Forgets all that are not among them any more. */
  due(objects: readonly { key: string }[]): (object: { key: string }) => boolean {
    const listed = new Set(objects.map(({ key }) => key));
    this.#waits = new Map([...this.#waits].filter(([key]) => listed.has(key)));
    const nowMs = this.#clock.monotonicMs();
    return ({ key }) => (this.#waits.get(key)?.untilMs ?? 0) <= nowMs;
  }
}
