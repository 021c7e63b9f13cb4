import type { RecordStore } from "../../../catalog/records.ts";
import type { Clock, TimerHandle } from "../../../core/clock.ts";
import { EngineError, messageOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import type { SandboxSignals } from "../signals.ts";
import { SandboxFeed, type LogHead } from "./feed.ts";
import { SandboxFollower } from "./follower.ts";
import { newestLines, type LoggedEvent } from "./read-events.ts";

export type SandboxEventsOptions = {
  records: Pick<RecordStore, "rows">;
  signals: Pick<SandboxSignals, "onEvents">;
  clock: Clock;
  log: Log;
};

type Feed = SandboxFeed<SandboxFollower>;

/** Where one begins to follow: after an event, with the first that there was, or with what comes. */
export type FollowFrom = { afterSeq: number } | "start" | "now";

/** Signals may be lost, and a look may fail. */
const LOOK_EVERY_MS = 2_000;
/** Then a reader ends, and who asks again shows again that it may. */
const MOST_MS = 3_600_000;
const MOST_FOLLOWERS = 1_000;
/** Sandboxes that one statement looks at. */
const LOOK_AT_ONCE = 500;

/**
 * The logs of sandboxes as they grow, for those who follow them in this process: one statement looks at the sandboxes
 * that a signal says have news, and every few seconds at all that are followed, for signals that were lost. Whoever
 * takes its events slowly is let go, and comes again from where it was; nothing is kept for it meanwhile.
 */
export class SandboxEvents {
  readonly #options: SandboxEventsOptions;
  readonly #feeds = new Map<string, Feed>();
  readonly #stopListening: () => void;
  /** Sandboxes that may have news. */
  readonly #due = new Set<string>();
  /** Readers, those that are about to be among them. */
  #followers = 0;
  #isLooking = false;
  #nextLook: TimerHandle | undefined;
  readonly #closing = new AbortController();

  constructor(options: SandboxEventsOptions) {
    this.#options = options;
    this.#stopListening = options.signals.onEvents((sandboxId) => this.#hear(sandboxId));
  }

  /** Aborted when those who follow anything here are to come again, elsewhere. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Readers in this process. */
  get following(): number {
    return this.#followers;
  }

  /**
   * What comes after a place in the log, to the end of the sandbox; before that it ends with `reconnect`: when this
   * process stops, after an hour, or for one who takes too slowly. `return` must be called when it is given up. Rejects
   * with `unavailable` and `too_many_requests`.
   */
  async follow(sandboxId: string, from: FollowFrom): Promise<SandboxFollower> {
    if (this.#closing.signal.aborted) throw new EngineError("unavailable", "this server is about to stop");
    if (this.#followers >= MOST_FOLLOWERS) {
      throw new EngineError("too_many_requests", "too many follow sandboxes here", { headers: { "Retry-After": "5" } });
    }
    const { clock, records } = this.#options;
    const feed = this.#feeds.get(sandboxId) ?? new SandboxFeed<SandboxFollower>(sandboxId, records);
    this.#feeds.set(sandboxId, feed);
    this.#followers++;
    feed.joining++;
    try {
      // Another process may have told this client of more than was seen here.
      await this.#lookAt([feed]);
      const follower = new SandboxFollower(feed, placeOf(feed, from), {
        nowMs: () => clock.monotonicMs(),
        endsAtMs: clock.monotonicMs() + MOST_MS,
        onEnd: () => this.#leave(feed),
      });
      feed.followers.add(follower);
      if (this.#closing.signal.aborted) follower.letGo();
      else this.#lookLater();
      return follower;
    } catch (error) {
      this.#leave(feed);
      throw error;
    } finally {
      feed.joining--;
      this.#forget(feed);
    }
  }

  /** The newest lines of a sandbox, oldest first, and the number of the event after which comes what they do not have. */
  async tail(sandboxId: string, limit: number): Promise<{ lines: readonly LoggedEvent[]; upToSeq: number }> {
    const { records } = this.#options;
    const upToSeq = (await this.#headsOf([sandboxId])).get(sandboxId)?.lastSeq ?? 0;
    const lines = limit === 0 ? [] : await newestLines(records, sandboxId, { upToSeq, limit });
    return { lines, upToSeq };
  }

  /** Those who follow are asked to come again, elsewhere. */
  close(): void {
    this.#closing.abort();
    this.#stopListening();
    this.#nextLook?.cancel();
    for (const feed of this.#feeds.values()) for (const follower of feed.followers) follower.letGo();
  }

  #leave(feed: Feed): void {
    this.#followers--;
    this.#forget(feed);
  }

  /** Unless somebody needs it. */
  #forget(feed: Feed): void {
    if (feed.followers.size === 0 && feed.joining === 0) this.#feeds.delete(feed.sandboxId);
  }

  #hear(sandboxId: string | undefined): void {
    if (sandboxId === undefined) for (const id of this.#feeds.keys()) this.#due.add(id);
    else if (this.#feeds.has(sandboxId)) this.#due.add(sandboxId);
    if (!this.#isLooking) void this.#look();
  }

  #lookLater(): void {
    this.#nextLook ??= this.#options.clock.after(
      LOOK_EVERY_MS,
      () => {
        this.#nextLook = undefined;
        this.#sortOut();
        this.#hear(undefined);
      },
      { background: true },
    );
  }

  /** Lets go of those who take too slowly, or have been here for too long. */
  #sortOut(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const feed of this.#feeds.values()) {
      for (const follower of feed.followers) if (follower.isSlow || follower.endsAtMs <= nowMs) follower.letGo();
    }
  }

  /** At all that are due, those among them that become due meanwhile. */
  async #look(): Promise<void> {
    this.#isLooking = true;
    try {
      while (this.#due.size > 0 && !this.#closing.signal.aborted) {
        const ids = [...this.#due].slice(0, LOOK_AT_ONCE);
        for (const id of ids) this.#due.delete(id);
        await this.#lookAt(ids.flatMap((id) => this.#feeds.get(id) ?? []));
      }
    } catch (error) {
      this.#options.log.warn({ reason: messageOf(error) }, "events of sandboxes could not be looked at");
    } finally {
      this.#isLooking = false;
      if (this.#feeds.size > 0 && !this.#closing.signal.aborted) this.#lookLater();
    }
  }

  async #lookAt(feeds: readonly Feed[]): Promise<void> {
    const heads = await this.#headsOf(feeds.map(({ sandboxId }) => sandboxId));
    for (const feed of feeds) await feed.advance(heads.get(feed.sandboxId));
  }

  async #headsOf(ids: readonly string[]): Promise<Map<string, LogHead>> {
    if (ids.length === 0) return new Map();
    const rows = await this.#options.records.rows(
      "SELECT id, first_seq, last_seq, cut_bytes, deleted_at_ms FROM sandboxes " +
        `WHERE id IN (${ids.map(() => "?").join(", ")})`,
      ids,
    );
    return new Map(
      rows.map(({ id, first_seq: first, last_seq: last, cut_bytes: cut, deleted_at_ms: deleted }) => [
        String(id),
        { firstSeq: Number(first), lastSeq: Number(last), cutBytes: Number(cut), isDeleted: deleted !== null },
      ]),
    );
  }
}

function placeOf(feed: Feed, from: FollowFrom): number {
  if (from === "now") return feed.headSeq;
  return from === "start" ? 0 : from.afterSeq;
}
