import type { Manifest } from "./manifest.ts";

/** A file of the cache. */
export type CacheEntry = {
  /** Says of which extent, and whether it is all of it. */
  key: string;
  path: string;
  /** On disk. */
  sizeBytes: number;
  /** How many queries may have it open. */
  leases: number;
  /** Known to be what was stored; false for what an earlier process left, until it is needed. */
  verified: boolean;
  /** When its access time was last written to disk, by the wall clock. */
  touchedMs: number;
  /** In whole seconds, so that it can be written back exactly. */
  modifiedSecs: number;
  /** What a partial file has, once that is known. */
  manifest?: Manifest;
};

/** The files of the cache by key. Those that nobody has open are in the order of their last use. */
export class LruIndex {
  readonly #free = new Map<string, CacheEntry>();
  readonly #leased = new Map<string, CacheEntry>();
  #totalBytes = 0;

  get totalBytes(): number {
    return this.#totalBytes;
  }

  keys(): string[] {
    return [...this.#free.keys(), ...this.#leased.keys()];
  }

  get(key: string): CacheEntry | undefined {
    return this.#free.get(key) ?? this.#leased.get(key);
  }

  has(entry: CacheEntry): boolean {
    return this.get(entry.key) === entry;
  }

  /** The least recently used file that nobody has open. */
  oldest(): CacheEntry | undefined {
    return this.#free.values().next().value;
  }

  /** Adds a file as the most recently used; returns the one that had its key. */
  add(entry: CacheEntry): CacheEntry | undefined {
    const former = this.get(entry.key);
    if (former !== undefined) this.remove(former);
    (entry.leases > 0 ? this.#leased : this.#free).set(entry.key, entry);
    this.#totalBytes += entry.sizeBytes;
    return former;
  }

  remove(entry: CacheEntry): void {
    if (!this.has(entry)) return;
    this.#free.delete(entry.key);
    this.#leased.delete(entry.key);
    this.#totalBytes -= entry.sizeBytes;
  }

  resize(entry: CacheEntry, sizeBytes: number): void {
    if (this.has(entry)) this.#totalBytes += sizeBytes - entry.sizeBytes;
    entry.sizeBytes = sizeBytes;
  }

  lease(entry: CacheEntry): void {
    entry.leases++;
    if (this.#free.get(entry.key) !== entry) return;
    this.#free.delete(entry.key);
    this.#leased.set(entry.key, entry);
  }

  release(entry: CacheEntry): void {
    entry.leases--;
    if (entry.leases > 0 || this.#leased.get(entry.key) !== entry) return;
    this.#leased.delete(entry.key);
    this.#free.set(entry.key, entry);
  }
}
