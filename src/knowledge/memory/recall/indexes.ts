import type { Clock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import type { Reranker, RerankOutcome } from "../rerank/reranker.ts";
import { readSettings } from "../settings.ts";
import { answerOf, type RecallAnswer } from "./answer.ts";
import { Follower, type Followed } from "./follower.ts";
import { IndexFeed } from "./index-feed.ts";
import { RECALL_LIMITS } from "./limits.ts";
import type { Asking, Extent, Question, RatingOptions } from "./question.ts";
import { rank } from "./rank.ts";
import { NO_INDEX, type IndexState } from "./recall-protocol.ts";
import type { RecordReader } from "./record-source.ts";
import { reranked } from "./reranking.ts";
import { VersionsReader } from "./versions-reader.ts";
import { View } from "./view.ts";

/** Seconds after which a client that has waited in vain may ask again. */
const RETRY_AFTER_SECS = 5;

export type IndexesDeps = {
  records: RecordReader;
  clock: Clock;
  options: RatingOptions;
  /** Whose vectors are compared; none unless given. */
  model?: string | undefined;
  /** What rates the best of a recall anew; nothing unless given. */
  reranker?: Pick<Reranker, "relevances"> | undefined;
  /** What all indexes together may take: `RECALL_LIMITS.indexBytes` unless given. */
  mostBytes?: number;
};

/** An answer, and what came of reranking it; undefined where it was not tried. */
export type Recalled = { answer: RecallAnswer; reranking: RerankOutcome | undefined };

/** The indexes of all databases that somebody has asked about, and the answers from them. */
export class Indexes {
  readonly #deps: IndexesDeps;
  readonly #mostBytes: number;
  readonly #feed: IndexFeed;
  readonly #reader: VersionsReader;
  /** The one that was asked last comes last. */
  #followers = new Map<number, Follower>();

  constructor(deps: IndexesDeps) {
    this.#deps = deps;
    this.#mostBytes = deps.mostBytes ?? RECALL_LIMITS.indexBytes;
    this.#feed = new IndexFeed(deps.records);
    this.#reader = new VersionsReader(deps.records);
  }

  get sizeBytes(): number {
    return [...this.#followers.values()].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  }

  async recall(databaseId: number, { question, rights, vector }: Asking): Promise<Recalled> {
    const [{ limit, expandHops }, { index, nowUs }] = await Promise.all([
      this.#extentOf(databaseId, question),
      this.#inTime(this.#followerOf(databaseId).current()),
    ]).catch(sayingWhen);
    this.#dropOld();
    const view = new View(index, { question, rights, nowUs });
    const ranking = rank(view, { query: question.query, vector, expandHops }, this.#deps.options);
    const from = { reader: this.#reader, databaseId };
    const { reranker } = this.#deps;
    if (reranker === undefined) return { answer: await answerOf(view, ranking, limit, from), reranking: undefined };
    const { memories, outcome } = await reranked(view, ranking.memories, question.query, { ...from, reranker });
    return { answer: await answerOf(view, { ...ranking, memories }, limit, from), reranking: outcome };
  }

  /** Builds the indexes of databases, one after the other, as far as there is room. */
  async prepare(databaseIds: readonly number[]): Promise<void> {
    for (const databaseId of databaseIds) {
      if (this.#followers.has(databaseId)) continue;
      const follower = this.#newFollower(databaseId);
      // In front: those that somebody has asked about stay longest, and of the others the first.
      this.#followers = new Map([[databaseId, follower], ...this.#followers]);
      await follower.current();
      if (this.sizeBytes > this.#mostBytes) return this.#dropOld();
    }
  }

  /** Lets go of indexes whose memory is gone: their databases were dropped. */
  async dropGone(): Promise<void> {
    const candidates = [...this.#followers].filter(([, { isReady, seq }]) => isReady && seq > 0);
    if (candidates.length === 0) return;
    const rows = await this.#deps.records.values("SELECT database_id FROM memory_heads");
    const remembered = new Set(rows.map(([databaseId]) => Number(databaseId)));
    for (const [databaseId, follower] of candidates) {
      const isSame = this.#followers.get(databaseId) === follower;
      if (isSame && !remembered.has(databaseId)) this.#followers.delete(databaseId);
    }
  }

  stateOf(databaseId: number): IndexState {
    const follower = this.#followers.get(databaseId);
    if (follower === undefined) return NO_INDEX;
    const { isReady, seq, sizeBytes } = follower;
    return { state: isReady ? "ready" : "building", commits: seq, sizeBytes };
  }

  async #extentOf(databaseId: number, { limit, expandHops }: Question): Promise<Extent> {
    if (limit !== undefined && expandHops !== undefined) return { limit, expandHops };
    const { recall } = await readSettings(this.#deps.records, databaseId);
    return { limit: limit ?? recall.limit, expandHops: expandHops ?? recall.expand_hops };
  }

  #newFollower(databaseId: number): Follower {
    return new Follower(this.#feed, databaseId, this.#deps.model);
  }

  #followerOf(databaseId: number): Follower {
    const follower = this.#followers.get(databaseId) ?? this.#newFollower(databaseId);
    this.#followers.delete(databaseId);
    this.#followers.set(databaseId, follower);
    return follower;
  }

  async #inTime(building: Promise<Followed>): Promise<Followed> {
    const late = Promise.withResolvers<never>();
    const timer = this.#deps.clock.after(RECALL_LIMITS.buildWaitMs, () => late.reject(notReady()));
    try {
      return await Promise.race([building, late.promise]);
    } finally {
      timer.cancel();
    }
  }

  /** Those that nobody has asked about for longest go; they are built again when somebody asks. */
  #dropOld(): void {
    let excessBytes = this.sizeBytes - this.#mostBytes;
    for (const [databaseId, { sizeBytes }] of [...this.#followers].slice(0, -1)) {
      if (excessBytes <= 0) return;
      this.#followers.delete(databaseId);
      excessBytes -= sizeBytes;
    }
  }
}

function notReady(): EngineError {
  return unavailable("the index of this database's memory is being built: ask again in a moment");
}

function unavailable(message: string, cause?: unknown): EngineError {
  return new EngineError("unavailable", message, { headers: { "Retry-After": String(RETRY_AFTER_SECS) }, cause });
}

/** An index waits for the catalog, which may give up first: its clients are told when to come back, too. */
function sayingWhen(error: unknown): never {
  if (!(error instanceof EngineError) || error.code !== "unavailable" || error.details.headers !== undefined)
    throw error;
  throw unavailable(error.message, error);
}
