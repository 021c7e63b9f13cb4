import type { Clock, TimerHandle } from "../core/clock.ts";

/**
 * Staging: where the bodies of one table gather until a flush takes them.
 *
 * A flush starts as soon as waiting longer could gain nothing: when no flush of the table is under way. While one is,
 * arrivals gather and share the next, so that the pace is the disk's and not a timer's. Rows, bytes and age are upper
 * bounds: whichever is reached first starts another flush beside the running one.
 */
export type StagerLimits = { maxRows: number; maxBytes: number; maxAgeMs: number; disabled: boolean };

/** What the stager needs to know of an item. */
export type Staged = { rows: number; sizeBytes: number };

export type StagerPorts<T> = {
  clock: Clock;
  limits: StagerLimits;
  /** Runs one flush to its end. Must not reject: items carry their own failure. */
  flush: (items: T[]) => Promise<void>;
};

export class Stager<T extends Staged> {
  readonly #ports: StagerPorts<T>;
  #items: T[] = [];
  #rows = 0;
  #sizeBytes = 0;
  #running = 0;
  #scheduled = false;
  #ageTimer: TimerHandle | undefined;

  constructor(ports: StagerPorts<T>) {
    this.#ports = ports;
  }

  add(item: T): void {
    const { limits, clock } = this.#ports;
    if (limits.disabled) {
      this.#start([item]);
      return;
    }
    // An item that would push the gathered ones over a bound goes into the next flush.
    if (this.#items.length > 0 && this.#wouldOverflow(item)) this.#take();
    this.#items.push(item);
    this.#rows += item.rows;
    this.#sizeBytes += item.sizeBytes;
    if (this.#rows >= limits.maxRows || this.#sizeBytes >= limits.maxBytes) this.#take();
    else if (this.#running === 0) this.#takeSoon();
    else this.#ageTimer ??= clock.after(limits.maxAgeMs, () => this.#take());
  }

  #wouldOverflow(item: T): boolean {
    const { limits } = this.#ports;
    return this.#rows + item.rows > limits.maxRows || this.#sizeBytes + item.sizeBytes > limits.maxBytes;
  }

  /** Takes at the end of this turn of the event loop's microtasks: requests that arrived in one read share a flush. */
  #takeSoon(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      if (this.#running === 0) this.#take();
    });
  }

  #take(): void {
    this.#ageTimer?.cancel();
    this.#ageTimer = undefined;
    const items = this.#items;
    if (items.length === 0) return;
    this.#items = [];
    this.#rows = 0;
    this.#sizeBytes = 0;
    this.#start(items);
  }

  #start(items: T[]): void {
    this.#running++;
    void this.#ports.flush(items).finally(() => {
      this.#running--;
      if (this.#running === 0) this.#take();
    });
  }
}
