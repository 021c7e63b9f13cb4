import type { Clock, TimerHandle } from "../../../core/clock.ts";

/** A signal that is aborted when time is up, or when the signal that it hangs on is. */
export class Timeout {
  readonly #controller = new AbortController();
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #parent: AbortSignal | undefined;
  readonly #reason: (afterMs: number) => Error;
  #timeoutMs: number;
  #timer: TimerHandle;

  /** `reason` makes the error of a timeout; that of the parent is passed on as it is. */
  constructor(clock: Clock, timeoutMs: number, reason: (afterMs: number) => Error, parent?: AbortSignal) {
    this.#clock = clock;
    this.#startedMs = clock.monotonicMs();
    this.#timeoutMs = timeoutMs;
    this.#reason = reason;
    this.#parent = parent;
    this.#timer = this.#arm();
    if (parent?.aborted === true) this.#follow();
    else parent?.addEventListener("abort", this.#follow, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Milliseconds left. */
  get leftMs(): number {
    return this.#startedMs + this.#timeoutMs - this.#clock.monotonicMs();
  }

  /** Sets the time, counted from the start, to `timeoutMs` where that is more. */
  extendTo(timeoutMs: number): void {
    if (timeoutMs <= this.#timeoutMs) return;
    this.#timeoutMs = timeoutMs;
    this.#timer.cancel();
    this.#timer = this.#arm();
  }

  /** Ends the watch; the signal is never aborted after that. */
  dispose(): void {
    this.#timer.cancel();
    this.#parent?.removeEventListener("abort", this.#follow);
  }

  readonly #follow = (): void => {
    this.#timer.cancel();
    this.#controller.abort(this.#parent?.reason);
  };

  #arm(): TimerHandle {
    const expire = () => this.#controller.abort(this.#reason(this.#timeoutMs));
    return this.#clock.after(Math.max(0, this.leftMs), expire, { background: true });
  }
}
