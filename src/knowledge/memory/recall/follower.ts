import { MemoryIndex } from "../index/memory-index.ts";
import type { IndexFeed } from "./index-feed.ts";

/** Versions in one page. Between pages the thread serves what has come meanwhile. */
const PAGE_VERSIONS = 5_000;

/**
 * Keeps the index of one database at its head. Whoever asks waits until every commit is in that was there when they
 * asked, and shares the way there with the others who wait.
 */
export class Follower {
  readonly #feed: Pick<IndexFeed, "head" | "changes">;
  readonly #databaseId: number;
  #index = new MemoryIndex();
  #running: Promise<MemoryIndex> | undefined;
  #next: Promise<MemoryIndex> | undefined;

  constructor(feed: Pick<IndexFeed, "head" | "changes">, databaseId: number) {
    this.#feed = feed;
    this.#databaseId = databaseId;
  }

  get sizeBytes(): number {
    return this.#index.sizeBytes;
  }

  /** The index with every commit that was there at this moment. It stays as it is until the caller awaits something. */
  current(): Promise<MemoryIndex> {
    // One that runs may have read the head before the caller's own write.
    if (this.#running === undefined) return this.#start();
    this.#next ??= this.#running.then(
      () => this.#start(),
      () => this.#start(),
    );
    return this.#next;
  }

  #start(): Promise<MemoryIndex> {
    this.#next = undefined;
    const running = this.#advance().finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }

  async #advance(): Promise<MemoryIndex> {
    const head = await this.#feed.head(this.#databaseId);
    // A database that was restored has an earlier head.
    if (this.#index.isWorn || head < this.#index.seq) this.#index = new MemoryIndex();
    const index = this.#index;
    try {
      while (index.seq < head) {
        index.apply(await this.#feed.changes(this.#databaseId, index.seq, head, PAGE_VERSIONS));
      }
    } catch (error) {
      // Part of a page may be in: what is built anew from the records is whole.
      this.#index = new MemoryIndex();
      throw error;
    }
    return index;
  }
}
