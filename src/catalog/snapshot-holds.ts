import type { Clock, TimerHandle } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Catalog } from "./catalog.ts";
import { snapshotExpired } from "./refusals.ts";

/**
 * What the queries of this node read, said to the catalog, so that nothing is deleted under them.
 *
 * Correctness does not rest on it. A plan is complete, because the catalog makes a snapshot unreadable before it forgets
 * anything that the snapshot sees, and refuses to plan with an unreadable one in the same transaction; and bytes that
 * are gone fail the query that opens them. So no query ever answers with a part of its rows. What a hold adds is that
 * queries succeed.
 *
 * A write to the catalog for every query would cost more than most queries. They need none: one that reads at the head
 * and ends within a second could only meet a deletion in that second, which happens when somebody cleans up by hand, or
 * when there is next to no grace. It is then run once more, at the new head. So:
 *
 * - A query that travels in time has its snapshot held before it plans: that one may be about to go.
 * - A query at the head is held once it has run for a second, along with all others: the node says one number, the
 *   oldest snapshot that any of its queries reads, in one renewal per third of the time to live.
 * - A hold that no query needs any more is given back within a second, so that cleaning up by hand finds nothing held.
 *
 * Time is counted from before the hold was asked for, on the clock that never goes back. When no renewal got through
 * until the hold must have ended, the queries under it fail: what they read may be on its way out.
 */
export type SnapshotHoldsOptions = {
  catalog: Pick<Catalog, "holdSnapshots" | "releaseSnapshots" | "oldestSnapshot">;
  clock: Clock;
  log: Log;
  /** Tells processes that run queries apart. */
  node: string;
  ttlMs?: number;
};

const DEFAULT_TTL_MS = 60_000;
const TICK_MS = 1_000;

/** What one query reads. */
export type SnapshotPin = {
  /** The query starts, or starts over, with the plan that it reads at the head, which is that snapshot. */
  reads(head: number): void;
  /** The query reads an older snapshot too. Resolves when that is held; rejects with `snapshot_expired`. */
  hold(snapshot: number): Promise<void>;
  /** Throws `snapshot_expired` when the hold has ended without notice, as when this machine slept. */
  check(): void;
  /** The query has ended. */
  close(): void;
};

/** `oldest` is undefined while the query reads nothing, or nothing that could be held. */
type OpenPin = {
  oldest: number | undefined;
  travels: boolean;
  openedAtMs: number;
  onLapse: (reason: EngineError) => void;
};

type Held = { oldest: number; untilMs: number };

export class SnapshotHolds {
  readonly #options: SnapshotHoldsOptions;
  readonly #ttlMs: number;
  readonly #readings = new Set<OpenPin>();
  /** Up to then (monotonic) the catalog certainly keeps it. */
  #held: Held | undefined;
  #timer: TimerHandle | undefined;
  /** What was said last: words must not overtake each other. Never rejects. */
  #said: Promise<void> = Promise.resolve();
  #isSpeaking = false;
  #isClosed = false;

  constructor(options: SnapshotHoldsOptions) {
    this.#options = options;
    this.#ttlMs = options.ttlMs ?? DEFAULT_TTL_MS;
  }

  /** A query begins; `onLapse` is called at most once, when it has to fail. */
  open(onLapse: (reason: EngineError) => void): SnapshotPin {
    const openedAtMs = this.#options.clock.monotonicMs();
    const reading: OpenPin = { oldest: undefined, travels: false, openedAtMs, onLapse };
    this.#readings.add(reading);
    this.#schedule();
    return {
      reads: (head) => {
        reading.oldest = head;
      },
      hold: async (snapshot) => {
        reading.travels = true;
        reading.oldest = Math.min(reading.oldest ?? snapshot, snapshot);
        await this.#say(() => this.#cover(snapshot));
      },
      check: () => {
        this.#endLapsed();
        if (!this.#readings.has(reading)) throw lapsed(reading.oldest);
      },
      close: () => void this.#readings.delete(reading),
    };
  }

  /** The oldest snapshot that the catalog keeps for this node. */
  get oldestHeld(): number | undefined {
    return this.#held?.oldest;
  }

  /** Gives back what is held. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#say(() => this.#release());
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#isClosed) return;
    this.#timer = this.#options.clock.after(TICK_MS, () => this.#tick(), { background: true });
  }

  #tick(): void {
    this.#timer = undefined;
    this.#endLapsed();
    if (!this.#isSpeaking) this.#speak();
    if (this.#readings.size > 0 || this.#held !== undefined || this.#isSpeaking) this.#schedule();
  }

  /** Says what has changed, if it is time to. */
  #speak(): void {
    const work = this.#needed();
    if (work === undefined) return;
    const { log } = this.#options;
    this.#say(work).catch((error: unknown) => log.warn({ err: error }, "the snapshots that queries read are not held"));
  }

  #needed(): (() => Promise<void>) | undefined {
    const nowMs = this.#options.clock.monotonicMs();
    const oldest = this.#oldest();
    const isNeeded = [...this.#readings].some(
      (reading) => reading.oldest !== undefined && (reading.travels || nowMs - reading.openedAtMs >= TICK_MS),
    );
    if (!isNeeded || oldest === undefined) return this.#held === undefined ? undefined : () => this.#release();
    const isDue = this.#held === undefined || nowMs >= this.#held.untilMs - (this.#ttlMs * 2) / 3;
    return isDue || !this.#covers(oldest) ? () => this.#renew() : undefined;
  }

  #oldest(): number | undefined {
    const snapshots = [...this.#readings].flatMap(({ oldest }) => oldest ?? []);
    return snapshots.length === 0 ? undefined : Math.min(...snapshots);
  }

  #covers(snapshot: number): boolean {
    return this.#held !== undefined && this.#held.oldest <= snapshot && !this.#isOver(this.#held);
  }

  /** A tick early, for between two ticks nobody looks. */
  #isOver({ untilMs }: Held): boolean {
    return this.#options.clock.monotonicMs() >= untilMs - TICK_MS;
  }

  /** Queries under a hold that has ended fail. */
  #endLapsed(): void {
    const held = this.#held;
    if (held === undefined || !this.#isOver(held)) return;
    this.#held = undefined;
    for (const reading of this.#readings) {
      if (reading.oldest === undefined || reading.oldest < held.oldest) continue;
      this.#readings.delete(reading);
      reading.onLapse(lapsed(reading.oldest));
    }
  }

  /** Once nothing else is being said. */
  #say(work: () => Promise<void>): Promise<void> {
    const saying = this.#said.then(async () => {
      this.#isSpeaking = true;
      try {
        await work();
      } finally {
        this.#isSpeaking = false;
      }
    });
    // Who asked hears of the failure.
    this.#said = saying.catch(() => {});
    return saying;
  }

  async #cover(snapshot: number): Promise<void> {
    if (this.#covers(snapshot)) return;
    await this.#renew();
    if (this.#covers(snapshot)) return;
    throw snapshotExpired(snapshot, await this.#options.catalog.oldestSnapshot());
  }

  /** Holds the oldest snapshot that is read and can still be held. */
  async #renew(): Promise<void> {
    const { catalog, clock, node } = this.#options;
    for (let oldest = this.#oldest(); oldest !== undefined; oldest = this.#oldest()) {
      const untilMs = clock.monotonicMs() + this.#ttlMs;
      try {
        await catalog.holdSnapshots(node, oldest, this.#ttlMs);
        this.#held = { oldest, untilMs };
        return;
      } catch (error) {
        if (!(error instanceof EngineError) || error.code !== "snapshot_expired") throw error;
        if (!this.#forgoBelow((await catalog.oldestSnapshot()).id)) throw error;
      }
    }
  }

  /** Queries that read what could not be held any more go on without: they find all of it, or fail. */
  #forgoBelow(oldestReadable: number): boolean {
    let found = false;
    for (const reading of this.#readings) {
      if (reading.oldest === undefined || reading.oldest >= oldestReadable) continue;
      reading.oldest = undefined;
      found = true;
    }
    return found;
  }

  async #release(): Promise<void> {
    if (this.#held === undefined) return;
    this.#held = undefined;
    await this.#options.catalog.releaseSnapshots(this.#options.node);
  }
}

function lapsed(snapshot: number | undefined): EngineError {
  const message = `snapshot ${snapshot} could not be held for the query: the catalog was out of reach for too long`;
  return new EngineError("snapshot_expired", message);
}
