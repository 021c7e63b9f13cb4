import type { Clock } from "../../core/clock.ts";

const FIRST_MS = 250;
const MAX_MS = 60_000;

type Wait = { untilMs: number; delayMs: number };

/** Objects that failed, and are passed over for a while: longer each time, so that they cost the others nothing. */
export class Postponed {
  readonly #clock: Clock;
  #waits = new Map<string, Wait>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(key: string): void {
    const delayMs = Math.min(MAX_MS, (this.#waits.get(key)?.delayMs ?? FIRST_MS / 2) * 2);
    this.#waits.set(key, { untilMs: this.#clock.monotonicMs() + delayMs, delayMs });
  }

  /** Tells which of these need not wait. Forgets all that are not among them any more. */
  due(objects: readonly { key: string }[]): (object: { key: string }) => boolean {
    const listed = new Set(objects.map(({ key }) => key));
    this.#waits = new Map([...this.#waits].filter(([key]) => listed.has(key)));
    const nowMs = this.#clock.monotonicMs();
    return ({ key }) => (this.#waits.get(key)?.untilMs ?? 0) <= nowMs;
  }
}
