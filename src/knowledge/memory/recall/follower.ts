import { MemoryIndex } from "../index/memory-index.ts";
import type { IndexFeed } from "./index-feed.ts";

/** Versions in one page. Between pages the thread serves what has come meanwhile. */
const PAGE_VERSIONS = 5_000;

/** Vectors in one page: some KiB each. */
const PAGE_VECTORS = 500;

type Feed = Pick<IndexFeed, "head" | "counts" | "changes" | "vectors">;

/** An index with every commit up to a moment. It stays as it is until its reader awaits something. */
export type Followed = {
  index: MemoryIndex;
  /** That moment, by the clock of the database: nodes' clocks may differ. */
  nowUs: number;
};

/**
 * Keeps the index of one database at its head. Whoever asks waits until every commit is in that was there when they
 * asked, and shares the way there with the others who wait.
 */
export class Follower {
  readonly #feed: Feed;
  readonly #databaseId: number;
  readonly #model: string | undefined;
  #index: MemoryIndex;
  #running: Promise<Followed> | undefined;
  #next: Promise<Followed> | undefined;
  #isReady = false;
  #sizeBytes = 0;

  constructor(feed: Feed, databaseId: number, model?: string) {
    this.#feed = feed;
    this.#databaseId = databaseId;
    this.#model = model;
    this.#index = this.#newIndex();
  }

  /** Whether it has been at the head, and has not begun again since. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** The last commit that is in. */
  get seq(): number {
    return this.#index.seq;
  }

  /** What the index took when it was last at the head. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** The index with every commit that was there at this moment. */
  current(): Promise<Followed> {
    // One that runs may have read the head before the caller's own write.
    if (this.#running === undefined) return this.#start();
    this.#next ??= this.#running.then(
      () => this.#start(),
      () => this.#start(),
    );
    return this.#next;
  }

  #start(): Promise<Followed> {
    this.#next = undefined;
    const running = this.#advance().finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }

  async #advance(): Promise<Followed> {
    const head = await this.#feed.head(this.#databaseId);
    // A database that was restored has an earlier head.
    if (this.#index.isWorn || head.seq < this.#index.seq) this.#beginAgain();
    const index = this.#index;
    if (index.seq < head.seq) {
      await this.#applyThrough(head.seq, index);
      this.#sizeBytes = index.sizeBytes;
    }
    if (await this.#applyVectors(index)) this.#sizeBytes = index.sizeBytes;
    this.#isReady = true;
    return { index, nowUs: head.nowUs };
  }

  async #applyThrough(seq: number, index: MemoryIndex): Promise<void> {
    if (index.seq === 0) index.reserve(await this.#feed.counts(this.#databaseId));
    while (index.seq < seq) {
      const page = await this.#feed.changes(this.#databaseId, index.seq, seq, PAGE_VERSIONS);
      try {
        index.apply(page);
      } catch (error) {
        // Part of the page is in: what is built anew from the records is whole.
        this.#beginAgain();
        throw error;
      }
    }
  }

  /** Adds the vectors that were computed since; false when there are none. */
  async #applyVectors({ vectors }: MemoryIndex): Promise<boolean> {
    if (vectors === undefined || this.#model === undefined) return false;
    const place = { databaseId: this.#databaseId, model: this.#model };
    for (let isFirst = true; ; isFirst = false) {
      const page = await this.#feed.vectors(place, vectors.seq, PAGE_VECTORS);
      vectors.apply(page);
      if (page.length < PAGE_VECTORS) return !isFirst || page.length > 0;
    }
  }

  #newIndex(): MemoryIndex {
    return new MemoryIndex({ withVectors: this.#model !== undefined });
  }

  #beginAgain(): void {
    this.#index = this.#newIndex();
    this.#isReady = false;
  }
}
