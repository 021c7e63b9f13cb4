import type { Clock, TimerHandle } from "../core/clock.ts";

/**
 * Batches: where the bodies of one table gather until a flush takes them.
 *
 * A flush starts as soon as waiting longer could gain nothing: when no flush of the table is under way, or the only one
 * has been sealed and waits for the disk. Otherwise arrivals gather and share the next, so that the pace is the disk's
 * and not a timer's. Rows, bytes and age are upper bounds: whichever is reached first starts another flush besides.
 *
 * Two at a time, because clients that wait for one flush send again all at once when it is done: with one at a time they
 * and the disk would take turns at being idle. What they send does not arrive in one moment either: if the first of them
 * were flushed at once, alone, the others would wait for it. So the next flush waits a moment for as many as the last one
 * had, where that has only just ended. A lone client waits for nobody.
 */
export type BatchLimits = { maxRows: number; maxBytes: number; maxAgeMs: number; disabled: boolean };

/** Flushes of a table that run at a time while no bound is reached. */
const MAX_RUNNING = 2;
/** How long a flush waits for more, as a part of what the last one took, and at most. */
const GATHER_SHARE = 1 / 4;
const MAX_GATHER_MS = 10;

/** What the batcher needs to know of an item. */
export type BatchItem = { rows: number; sizeBytes: number };

export type BatcherPorts<T> = {
  clock: Clock;
  limits: BatchLimits;
  /** Runs one flush to its end, and says when it is sealed. Must not reject: items carry their own failure. */
  flush: (items: T[], sealed: () => void) => Promise<void>;
  /** Told when a flush has ended, none is under way and nothing waits. */
  onIdle?: () => void;
};

export class Batcher<T extends BatchItem> {
  readonly #ports: BatcherPorts<T>;
  #items: T[] = [];
  #rows = 0;
  #sizeBytes = 0;
  #running = 0;
  #sealing = 0;
  #scheduled = false;
  #ageTimer: TimerHandle | undefined;
  #gatherTimer: TimerHandle | undefined;
  /** The flush that ended last. */
  #last = { items: 0, tookMs: 0, endedMs: -Infinity };

  constructor(ports: BatcherPorts<T>) {
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
    else if (this.#mayStart() && this.#gatherMs() === 0) this.#takeSoon();
    else {
      this.#ageTimer ??= clock.after(limits.maxAgeMs, () => this.#take());
      if (this.#mayStart()) this.#gather();
    }
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
      if (this.#mayStart()) this.#take();
    });
  }

  /** How long to wait for the clients of the last flush; 0 when as many have come, or are not about to. */
  #gatherMs(): number {
    const { items, tookMs, endedMs } = this.#last;
    if (this.#items.length >= items || this.#ports.clock.monotonicMs() - endedMs > tookMs) return 0;
    return Math.min(tookMs * GATHER_SHARE, MAX_GATHER_MS);
  }

  #gather(): void {
    this.#gatherTimer ??= this.#ports.clock.after(this.#gatherMs(), () => {
      this.#gatherTimer = undefined;
      if (this.#mayStart()) this.#take();
    });
  }

  #mayStart(): boolean {
    return this.#sealing === 0 && this.#running < MAX_RUNNING;
  }

  #take(): void {
    this.#ageTimer?.cancel();
    this.#ageTimer = undefined;
    this.#gatherTimer?.cancel();
    this.#gatherTimer = undefined;
    const items = this.#items;
    if (items.length === 0) return;
    this.#items = [];
    this.#rows = 0;
    this.#sizeBytes = 0;
    this.#start(items);
  }

  #start(items: T[]): void {
    this.#running++;
    this.#sealing++;
    const { clock, flush } = this.#ports;
    const startedMs = clock.monotonicMs();
    let isSealing = true;
    const sealed = () => {
      if (isSealing) this.#sealing--;
      isSealing = false;
      if (this.#items.length === 0 || !this.#mayStart()) return;
      if (this.#gatherMs() === 0) this.#take();
      else this.#gather();
    };
    void flush(items, sealed).finally(() => {
      this.#running--;
      const endedMs = clock.monotonicMs();
      this.#last = { items: items.length, tookMs: endedMs - startedMs, endedMs };
      sealed();
      if (this.#running === 0 && this.#items.length === 0) this.#ports.onIdle?.();
    });
  }
}
