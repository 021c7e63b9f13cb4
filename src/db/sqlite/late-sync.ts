import { nextTurn } from "../../core/clock.ts";
import type { LogFile } from "./log-file.ts";

/**
 * Makes durable what was committed without: at once where somebody waits for that, and else when this thread has done
 * what it is at. A sync stands for all that was committed before it began; what comes while one runs waits for the next
 * one.
 */
export class LateSync {
  readonly #log: Pick<LogFile, "sync">;
  readonly #onFailure: (error: Error) => void;
  /** Whether there is something that no sync has begun for. */
  #isDue = false;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  /** After it nothing is known to be durable: a sync after one that failed may succeed all the same. */
  #failure: Error | undefined;

  /** @param onFailure is told once that a sync has failed, whoever waits for it */
  constructor(log: Pick<LogFile, "sync">, onFailure: (error: Error) => void) {
    this.#log = log;
    this.#onFailure = onFailure;
  }

  /** Something was committed that is not durable yet. */
  committed(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    // Its failure is told to `onFailure`.
    void nextTurn().then(() => this.durable().catch(() => undefined));
  }

  get isDurable(): boolean {
    return !this.#isDue && this.#running === undefined && this.#failure === undefined;
  }

  /** Resolves when everything that was committed before is durable. Rejects when that cannot be known. */
  durable(): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (!this.#isDue) return this.#running ?? Promise.resolve();
    if (this.#running === undefined) return this.#begin();
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.durable();
    });
    return this.#next;
  }

  #begin(): Promise<void> {
    this.#isDue = false;
    const running = this.#log.sync();
    this.#running = running;
    running.then(
      () => {
        this.#running = undefined;
      },
      (error: Error) => {
        this.#running = undefined;
        this.#failure = error;
        this.#onFailure(error);
      },
    );
    return running;
  }
}
