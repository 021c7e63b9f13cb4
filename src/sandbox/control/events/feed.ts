import type { RecordStore } from "../../../catalog/records.ts";
import { Semaphore } from "../../../core/concurrency.ts";
import { eventsAfter, newestSeq, type LoggedEvent } from "./read-events.ts";

/** Events that one statement reads for one reader. */
const PAGE_EVENTS = 200;
/** What is kept of one sandbox's newest events, for those who follow closely. */
const RECENT_EVENTS = 400;
const RECENT_BYTES = 1024 * 1024;

/** One who follows a feed. */
export type FeedFollower = { wake(): void };

/** What the row of a sandbox says of its log; `cutBytes`: of all events before the first. */
export type LogHead = { firstSeq: number; lastSeq: number; cutBytes: number; isDeleted: boolean };

/**
 * The end of one sandbox's log, as this process knows it. Its newest events are read once for all who follow; who is
 * further back reads for itself, a page at a time.
 */
export class SandboxFeed<F extends FeedFollower = FeedFollower> {
  readonly sandboxId: string;
  readonly followers = new Set<F>();
  /** Those who are about to follow. */
  joining = 0;
  readonly #records: Pick<RecordStore, "rows">;
  readonly #oneAtATime = new Semaphore(1);
  /** The newest events without a gap, up to `headSeq`. */
  #recent: readonly LoggedEvent[] = [];
  #firstSeq = 1;
  #cutBytes = 0;
  #headSeq = 0;
  #isOver = false;

  constructor(sandboxId: string, records: Pick<RecordStore, "rows">) {
    this.sandboxId = sandboxId;
    this.#records = records;
  }

  /** The oldest event that was kept at the last look. */
  get firstSeq(): number {
    return this.#firstSeq;
  }

  /** Of all events before that one, since the sandbox was made. */
  get cutBytes(): number {
    return this.#cutBytes;
  }

  /** The newest event. */
  get headSeq(): number {
    return this.#headSeq;
  }

  /** Whether no more come after it: the sandbox was deleted. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Takes up what has come, and tells those who wait for it. No head: the row is gone, and the sandbox with it. */
  advance(head: LogHead | undefined): Promise<void> {
    return this.#oneAtATime.run(() => this.#advance(head));
  }

  /** Some of the events after that one, in their order; none where they were cut. */
  async after(seq: number): Promise<readonly LoggedEvent[]> {
    const first = this.#recent[0]?.seq ?? Infinity;
    if (first <= seq + 1) return this.#recent.slice(seq + 1 - first, seq + 1 - first + PAGE_EVENTS);
    // From the first that is kept: no database looks at those that went long ago.
    const afterSeq = Math.max(seq, this.#firstSeq - 1);
    return await eventsAfter(this.#records, this.sandboxId, { afterSeq, limit: PAGE_EVENTS });
  }

  async #advance(head: LogHead | undefined): Promise<void> {
    if (this.#isOver) return;
    const lastSeq = head?.lastSeq ?? (await newestSeq(this.#records, this.sandboxId));
    const hasNews = lastSeq > this.#headSeq;
    if (hasNews) {
      const afterSeq = Math.max(this.#headSeq, lastSeq - RECENT_EVENTS, (head?.firstSeq ?? 1) - 1);
      const come = await eventsAfter(this.#records, this.sandboxId, { afterSeq, limit: RECENT_EVENTS });
      this.#recent = recentOf([...this.#recent, ...come.filter(({ seq }) => seq <= lastSeq)]);
      this.#headSeq = lastSeq;
    }
    this.#firstSeq = head?.firstSeq ?? this.#firstSeq;
    this.#cutBytes = head?.cutBytes ?? this.#cutBytes;
    this.#isOver = head === undefined || head.isDeleted;
    if (hasNews || this.#isOver) for (const follower of this.followers) follower.wake();
  }
}

/** The newest of them without a gap, within the bounds. */
function recentOf(events: readonly LoggedEvent[]): readonly LoggedEvent[] {
  let sizeBytes = 0;
  let start = events.length;
  for (; start > 0 && events.length - start < RECENT_EVENTS; start--) {
    const event = events[start - 1];
    const next = events[start];
    if (event === undefined || (next !== undefined && event.seq + 1 !== next.seq)) break;
    sizeBytes += JSON.stringify(event.data).length;
    if (sizeBytes > RECENT_BYTES) break;
  }
  return events.slice(start);
}
