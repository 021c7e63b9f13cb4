import type { Clock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import type { MemoryIndex } from "../index/memory-index.ts";
import { readSettings } from "../settings.ts";
import { answerOf, type RecallAnswer } from "./answer.ts";
import { Follower } from "./follower.ts";
import { IndexFeed } from "./index-feed.ts";
import type { Asked, Extent, Question, RatingOptions } from "./question.ts";
import { rank } from "./rank.ts";
import type { RecordReader } from "./record-source.ts";
import { VersionsReader } from "./versions-reader.ts";
import { View } from "./view.ts";

/** How long a question waits for an index that is being built. */
const BUILD_WAIT_MS = 10_000;
/** Seconds after which a client that has waited in vain may ask again. */
const RETRY_AFTER_SECS = 5;
/** Of all databases; those that nobody has asked for longest are dropped first, and built again when somebody asks. */
const MOST_BYTES = 2 ** 30;

export type RecallDeps = { records: RecordReader; clock: Clock; options: RatingOptions };

/** The indexes of all databases that somebody has asked about, and the answers from them. */
export class Indexes {
  readonly #deps: RecallDeps;
  readonly #feed: IndexFeed;
  readonly #reader: VersionsReader;
  /** The one that was asked last comes last. */
  readonly #followers = new Map<number, Follower>();

  constructor(deps: RecallDeps) {
    this.#deps = deps;
    this.#feed = new IndexFeed(deps.records);
    this.#reader = new VersionsReader(deps.records);
  }

  async recall(databaseId: number, asked: Asked): Promise<RecallAnswer> {
    const { limit, expandHops } = await this.#extentOf(databaseId, asked.question);
    const index = await this.#inTime(this.#followerOf(databaseId).current());
    this.#dropOld();
    const view = new View(index, asked);
    const ranking = rank(view, { query: asked.question.query, expandHops }, this.#deps.options);
    return await answerOf(view, ranking, limit, { reader: this.#reader, databaseId });
  }

  async #extentOf(databaseId: number, { limit, expandHops }: Question): Promise<Extent> {
    if (limit !== undefined && expandHops !== undefined) return { limit, expandHops };
    const { recall } = await readSettings(this.#deps.records, databaseId);
    return { limit: limit ?? recall.limit, expandHops: expandHops ?? recall.expand_hops };
  }

  #followerOf(databaseId: number): Follower {
    const follower = this.#followers.get(databaseId) ?? new Follower(this.#feed, databaseId);
    this.#followers.delete(databaseId);
    this.#followers.set(databaseId, follower);
    return follower;
  }

  async #inTime(building: Promise<MemoryIndex>): Promise<MemoryIndex> {
    const late = Promise.withResolvers<never>();
    const timer = this.#deps.clock.after(BUILD_WAIT_MS, () => late.reject(notReady()));
    try {
      return await Promise.race([building, late.promise]);
    } finally {
      timer.cancel();
    }
  }

  #dropOld(): void {
    let bytes = 0;
    for (const [databaseId, follower] of [...this.#followers].toReversed()) {
      bytes += follower.sizeBytes;
      if (bytes > MOST_BYTES && databaseId !== [...this.#followers.keys()].at(-1)) this.#followers.delete(databaseId);
    }
  }
}

function notReady(): EngineError {
  return new EngineError("unavailable", "the index of this database's memory is being built: ask again in a moment", {
    headers: { "Retry-After": String(RETRY_AFTER_SECS) },
  });
}
