import { crc32 } from "node:zlib";
import type { Clock, TimerHandle } from "../../src/core/clock.ts";
import type { Random } from "../../src/core/random.ts";

/**
 * Virtual time, and one thing at a time.
 *
 * Whatever could happen next is an event with a time. A step takes one of those that are due, in an order drawn from
 * the seed, and lets all that follows from it by promises come to an end. Where nothing is due, time moves on to the
 * next event; where it is moved by hand, all that became due meanwhile happens late, and in any order.
 *
 * Events of one lane (a process) happen in the order of their times, as timers of a process do; those of no lane (what
 * is under way in the network) in any. A lane can be frozen, as a process that is stopped and continued, and cut off, as
 * one that dies: its events never happen.
 */
export type Lane = { readonly name: string; frozenUntilMs: number; isCut: boolean };

export type Event = {
  readonly dueMs: number;
  readonly lane: Lane | undefined;
  readonly label: string;
  readonly run: () => void | Promise<void>;
};

/** The label of what a process has asked its clock for. */
export const TIMER = "timer";

export class Scheduler {
  nowMs: number;
  steps = 0;
  /** The first thing that went wrong. */
  failure: Error | undefined;
  readonly random: Random;
  /** Lines of what happened, where they are wanted. */
  readonly trace: string[] | undefined;
  #hash = 0;
  #events: Event[] = [];

  constructor(options: { random: Random; startMs: number; keepTrace: boolean }) {
    this.random = options.random;
    this.nowMs = options.startMs;
    this.trace = options.keepTrace ? [] : undefined;
  }

  /** Tells runs apart: equal for runs in which the same things happened at the same times. */
  get hash(): number {
    return this.#hash;
  }

  /** What could still happen. */
  get pending(): readonly Event[] {
    return this.#events;
  }

  at(event: Event): TimerHandle {
    this.#events.push(event);
    return { cancel: () => this.drop(event) };
  }

  drop(event: Event): void {
    const index = this.#events.indexOf(event);
    if (index >= 0) this.#events.splice(index, 1);
  }

  note(text: string): void {
    const line = `${this.nowMs} ${text}`;
    this.#hash = crc32(line, this.#hash);
    this.trace?.push(line);
  }

  /** Time passes, and what becomes due in it happens late. */
  pass(byMs: number): void {
    this.nowMs += byMs;
    this.note(`${byMs} ms pass`);
  }

  fail(error: Error): void {
    if (this.failure !== undefined) return;
    this.failure = error;
    this.note(`FAILED ${error.message}`);
  }

  /** True with that probability. */
  chance(probability: number): boolean {
    return this.random.next() < probability;
  }

  /** An integer in [0, bound). */
  below(bound: number): number {
    return Math.floor(this.random.next() * bound);
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error("there is nothing to pick from");
    return item;
  }

  /** Lets one event happen, and what follows from it. False when there is none. */
  async step(): Promise<boolean> {
    const event = this.#next();
    if (event !== undefined) await this.run(event);
    return event !== undefined;
  }

  /** Lets this one happen, at whatever time. */
  async run(event: Event): Promise<void> {
    this.steps++;
    this.drop(event);
    this.note(`${event.lane?.name ?? "network"}: ${event.label}`);
    try {
      await event.run();
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)));
    }
    await settled();
  }

  #next(): Event | undefined {
    let events = this.#events.filter(({ lane }) => lane?.isCut !== true);
    if (events.length < this.#events.length) this.#events = events;
    const soonestMs = events.reduce((soonest, event) => Math.min(soonest, startOf(event)), Infinity);
    if (soonestMs === Infinity) return undefined;
    this.nowMs = Math.max(this.nowMs, soonestMs);
    events = events.filter((event) => startOf(event) <= this.nowMs);
    const firsts = new Map<Lane | Event, Event>();
    for (const event of events) {
      const of = event.lane ?? event;
      const first = firsts.get(of);
      if (first === undefined || event.dueMs < first.dueMs) firsts.set(of, event);
    }
    return this.pick([...firsts.values()]);
  }
}

/** When an event can happen. */
export function startOf({ dueMs, lane }: Event): number {
  return Math.max(dueMs, lane?.frozenUntilMs ?? 0);
}

/**
 * Node runs the next tick once no promise has anything left to do: what takes longer than that waits for something real,
 * and never comes to an end here.
 */
function settled(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

/** The clock of a process, as wrong as it is told to be. */
export class LaneClock implements Clock {
  /** How far it is ahead. */
  skewMs: number;
  readonly #scheduler: Scheduler;
  readonly #lane: Lane;

  constructor(scheduler: Scheduler, lane: Lane, skewMs: number) {
    this.#scheduler = scheduler;
    this.#lane = lane;
    this.skewMs = skewMs;
  }

  nowMs(): number {
    return this.#scheduler.nowMs + this.skewMs;
  }

  monotonicMs(): number {
    return this.#scheduler.nowMs;
  }

  after(delayMs: number, task: () => void): TimerHandle {
    const dueMs = this.#scheduler.nowMs + Math.ceil(Math.max(delayMs, 0));
    return this.#scheduler.at({ dueMs, lane: this.#lane, label: TIMER, run: task });
  }

  every(periodMs: number, task: () => void): TimerHandle {
    let timer: TimerHandle;
    const again = (): void => {
      timer = this.after(periodMs, () => {
        again();
        task();
      });
    };
    again();
    return { cancel: () => timer.cancel() };
  }
}
