import { sleep, type Clock } from "../../src/core/clock.ts";
import type { Arrivals } from "./arrivals.ts";

/**
 * The open loop: requests fall due whatever the server does. One that finds every connection busy waits in a queue, and
 * whoever sends it is told when it fell due, so that its latency has the wait in it.
 */
export type OpenLoop<Connection> = {
  clock: Clock;
  /** When the loop begins, on the monotonic clock. */
  startMs: number;
  arrivals: Arrivals;
  /** For how long requests fall due. */
  durationMs: number;
  /** For how long after that those in the queue are still sent. */
  drainMs: number;
  /** All idle; each carries one request at a time. */
  connections: readonly Connection[];
  /** Sends the next request, due at that time of the monotonic clock; resolves with the connection to use next. */
  send: (connection: Connection, dueMs: number) => Promise<Connection>;
};

export type OpenLoopEnd = {
  /** Requests that fell due. */
  offered: number;
  /** Of these, how many were in the queue when the last had fallen due. */
  backlog: number;
  /** How long those waited, in milliseconds, that were still in the queue when the drain ended. They were not sent. */
  abandonedMs: number[];
  /** How late the loop itself was, in milliseconds: of requests that found an idle connection when they fell due. */
  latenessMs: number[];
};

/** Rejects with what `send` rejects with. */
export async function runOpenLoop<Connection>(loop: OpenLoop<Connection>): Promise<OpenLoopEnd> {
  return await new OpenLoopRun(loop).run();
}

/** A timer cannot wait for less. */
const SHORTEST_SLEEP_MS = 1;

class OpenLoopRun<Connection> {
  readonly #loop: OpenLoop<Connection>;
  readonly #idle: Connection[];
  readonly #underWay = new Set<Promise<void>>();
  /** Times on the monotonic clock; those before `#head` are sent. */
  #queue: number[] = [];
  #head = 0;
  #nextDueMs: number;
  #offered = 0;
  readonly #latenessMs: number[] = [];
  #error: { reason: unknown } | undefined;

  constructor(loop: OpenLoop<Connection>) {
    this.#loop = loop;
    this.#idle = [...loop.connections];
    this.#nextDueMs = loop.startMs + loop.arrivals();
  }

  async run(): Promise<OpenLoopEnd> {
    const endMs = this.#loop.startMs + this.#loop.durationMs;
    await this.#runUntil(endMs, () => false);
    const backlog = this.#queue.length - this.#head;
    await this.#runUntil(endMs + this.#loop.drainMs, () => this.#head === this.#queue.length);
    const nowMs = this.#loop.clock.monotonicMs();
    const abandonedMs = this.#queue.splice(this.#head).map((dueMs) => nowMs - dueMs);
    await Promise.all(this.#underWay);
    this.#throwError();
    return { offered: this.#offered, backlog, abandonedMs, latenessMs: this.#latenessMs };
  }

  async #runUntil(untilMs: number, isDone: () => boolean): Promise<void> {
    const { clock } = this.#loop;
    for (let nowMs = clock.monotonicMs(); nowMs < untilMs && !isDone(); nowMs = clock.monotonicMs()) {
      this.#pump();
      this.#throwError();
      const wakeMs = Math.min(untilMs, this.#nextDueMs);
      await sleep(clock, Math.max(SHORTEST_SLEEP_MS, wakeMs - nowMs));
    }
    this.#pump();
  }

  /** Takes what has fallen due into the queue, and sends as much of it as there are idle connections. */
  #pump(): void {
    this.#takeDue();
    while (this.#head < this.#queue.length) {
      const connection = this.#idle.shift();
      if (connection === undefined) return;
      this.#start(connection, this.#queue[this.#head++] ?? Number.NaN);
    }
    this.#queue = [];
    this.#head = 0;
  }

  #takeDue(): void {
    const { clock, startMs, durationMs, arrivals } = this.#loop;
    const nowMs = clock.monotonicMs();
    const endMs = startMs + durationMs;
    let idle = this.#idle.length - (this.#queue.length - this.#head);
    for (; this.#nextDueMs <= nowMs && this.#nextDueMs < endMs; this.#nextDueMs = startMs + arrivals()) {
      this.#offered++;
      this.#queue.push(this.#nextDueMs);
      if (idle-- > 0) this.#latenessMs.push(nowMs - this.#nextDueMs);
    }
  }

  #start(connection: Connection, dueMs: number): void {
    const sending = this.#send(connection, dueMs).finally(() => this.#underWay.delete(sending));
    this.#underWay.add(sending);
  }

  async #send(connection: Connection, dueMs: number): Promise<void> {
    try {
      this.#idle.push(await this.#loop.send(connection, dueMs));
      this.#pump();
    } catch (error) {
      this.#error ??= { reason: error };
    }
  }

  #throwError(): void {
    if (this.#error !== undefined) throw this.#error.reason;
  }
}
