import type { SandboxFeed } from "./feed.ts";
import type { LoggedEvent } from "./read-events.ts";

/** What comes to one who follows a log. */
export type Followed =
  | { type: "event"; event: LoggedEvent }
  /** So many events before `nextSeq` that this one has not had are no longer there; `cutBytes`: of all that are not. */
  | { type: "lost"; nextSeq: number; events: number; cutBytes: number }
  /** The last one: there is more, and whoever wants it asks again. */
  | { type: "reconnect"; afterMs: number };

/** Who takes nothing for so long, while there is something, is let go. */
const SLOW_MS = 20_000;
/** Who had caught up and then fell so far behind is let go: it takes less than comes. */
const MOST_BEHIND = 10_000;
/** When one who was let go may come again. */
const RECONNECT_AFTER_MS = 1_000;

/**
 * One reader of a log: a place in it, and at most a page of what comes next. By hand, for a generator that waits cannot
 * be told to end.
 */
export class SandboxFollower implements AsyncIterableIterator<Followed> {
  readonly feed: SandboxFeed<SandboxFollower>;
  readonly endsAtMs: number;
  readonly #nowMs: () => number;
  readonly #onEnd: () => void;
  /** The newest event that was handed over. */
  #seq: number;
  #page: readonly LoggedEvent[] = [];
  #taken = 0;
  #lastTakenMs: number;
  #isAsked = false;
  #hasCaughtUp = false;
  #isEnded = false;
  /** Whether the end is to be told. */
  #isLetGo = false;
  #woken = Promise.withResolvers<void>();

  constructor(
    feed: SandboxFeed<SandboxFollower>,
    afterSeq: number,
    { nowMs, endsAtMs, onEnd }: { nowMs: () => number; endsAtMs: number; onEnd: () => void },
  ) {
    this.feed = feed;
    this.#seq = afterSeq;
    this.#nowMs = nowMs;
    this.endsAtMs = endsAtMs;
    this.#onEnd = onEnd;
    this.#lastTakenMs = nowMs();
  }

  /** The newest event that was handed over, or where it began. */
  get seq(): number {
    return this.#seq;
  }

  /** Whether it takes less than comes. */
  get isSlow(): boolean {
    const behind = this.feed.headSeq - this.#seq;
    if (behind <= 0 || this.#isAsked) return false;
    return this.#nowMs() - this.#lastTakenMs > SLOW_MS || (this.#hasCaughtUp && behind > MOST_BEHIND);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Followed>> {
    this.#isAsked = true;
    try {
      const value = await this.#take();
      return value === undefined ? { done: true, value: undefined } : { done: false, value };
    } finally {
      this.#isAsked = false;
      this.#lastTakenMs = this.#nowMs();
    }
  }

  async return(): Promise<IteratorResult<Followed>> {
    this.#end();
    return { done: true, value: undefined };
  }

  /** It gets no more here, and is told so. What it holds is given up: it comes again from where it is. */
  letGo(): void {
    if (this.#isEnded) return;
    this.#isLetGo = true;
    this.#end();
  }

  /** The feed has moved. */
  wake(): void {
    this.#woken.resolve();
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#page = [];
    this.feed.followers.delete(this);
    this.#onEnd();
    this.wake();
  }

  async #take(): Promise<Followed | undefined> {
    for (;;) {
      if (this.#isEnded) return this.#farewell();
      const event = this.#page[this.#taken];
      if (event !== undefined) return this.#hand(event);
      // One that asks for more than there is had a log that is gone.
      if (this.#seq > this.feed.headSeq) return this.#lose(this.feed.headSeq + 1);
      if (this.#seq < this.feed.headSeq) {
        if (!(await this.#turnPage())) return this.#lose(this.feed.headSeq + 1);
      } else if (this.feed.isOver) this.#end();
      else await this.#wait();
    }
  }

  #farewell(): Followed | undefined {
    const isTold = this.#isLetGo;
    this.#isLetGo = false;
    return isTold ? { type: "reconnect", afterMs: RECONNECT_AFTER_MS } : undefined;
  }

  #hand(event: LoggedEvent): Followed {
    if (event.seq > this.#seq + 1) return this.#lose(event.seq);
    this.#taken++;
    this.#seq = event.seq;
    return { type: "event", event };
  }

  /** False when all up to the head were cut. */
  async #turnPage(): Promise<boolean> {
    const page = await this.feed.after(this.#seq);
    if (this.#isEnded) return true;
    this.#taken = 0;
    this.#page = page;
    return page.length > 0;
  }

  #lose(nextSeq: number): Followed {
    const events = Math.max(0, nextSeq - this.#seq - 1);
    this.#seq = nextSeq - 1;
    return { type: "lost", nextSeq, events, cutBytes: this.feed.cutBytes };
  }

  async #wait(): Promise<void> {
    this.#hasCaughtUp = true;
    this.#woken = Promise.withResolvers();
    await this.#woken.promise;
  }
}
