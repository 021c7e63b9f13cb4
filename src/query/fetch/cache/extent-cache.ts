import { CACHE_METRICS } from "./metrics.ts";
import { rm } from "node:fs/promises";
import type { ExtentSummary } from "../../../catalog/catalog.ts";
import type { Clock } from "../../../core/clock.ts";
import { Semaphore } from "../../../core/concurrency.ts";
import { EngineError, messageOf, systemCodeOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import type { Metrics } from "../../../core/metrics.ts";
import { ParquetFooterError } from "../../../format/parquet-footer.ts";
import type { ObjectStore } from "../../../io/objectstore/objectstore.ts";
import { CacheFolder, extentOfKey, keyOf, sizeOnDisk, TEMPORARY } from "./cache-folder.ts";
import { fetchWhole, isExtent, type ExtentSource } from "./extent-source.ts";
import { LruIndex, type CacheEntry } from "./lru-index.ts";
import { covers, fetchColumns, isIntact, mayBePartial } from "./partial-file.ts";
import { SharedJobs } from "./shared-jobs.ts";

/**
 * Extents of an object store as local files, for query processes to open.
 *
 * - Bounded by bytes on disk: the extents that were used the longest ago go first. Files that a running query has
 *   leased stay, so that the bound can be passed by what is being read; without capacity, files live for the query.
 * - Single flight: queries that need one extent at the same time wait for one fetch; it stops when none is left.
 * - Verified by length and checksum when fetched, and when first used again after a restart. A fetch that fails or
 *   brings other bytes is repeated once.
 * - Parquet extents of which a query needs a small part are fetched by column (`partial-file.ts`).
 * - Extents that the catalog forgot are deleted here as well (`sweep`): their rows may have been deleted on request.
 * - A full disk makes room at the expense of the cache first, and fails the query only then.
 */
export type ExtentCacheOptions = {
  store: ObjectStore;
  /** Used by this cache alone. */
  folder: string;
  /** 0 keeps nothing once no query has it open. */
  capacityBytes: number;
  clock: Clock;
  log: Log;
  metrics: Metrics;
};

/** What a query needs of an extent. */
export type Want = {
  /** The columns it opens; all when undefined. */
  columns: readonly string[] | undefined;
  signal: AbortSignal;
  /** Called before bytes are requested for this query; throws past its budget. */
  charge(sizeBytes: number): void;
};

export type Lease = {
  path: string;
  /** It was here already, or on its way for another query. */
  hit: boolean;
  /** The file is gone or damaged: nobody else gets it. */
  drop(): void;
  release(): void;
};

/** Requests to the store under way at most; each brings a few megabytes at most. */
const REQUESTS = 48;
const ATTEMPTS = 2;
/** A full disk costs the cache this part of itself at least. */
const GIVEN_WAY_SHARE = 1 / 8;

export class ExtentCache {
  readonly #options: ExtentCacheOptions;
  readonly #folder: CacheFolder;
  readonly #index = new LruIndex();
  readonly #requests = new Semaphore(REQUESTS);
  readonly #jobs: SharedJobs<CacheEntry>;
  /** Files that are being deleted. */
  readonly #removals = new Set<Promise<void>>();
  #opening: Promise<void> | undefined;

  constructor(options: ExtentCacheOptions) {
    this.#options = options;
    this.#folder = new CacheFolder(options.folder, options.clock);
    this.#jobs = new SharedJobs((entry) => this.#release(entry));
    CACHE_METRICS.of(options.metrics).queryCacheLimit.watch({}, () => options.capacityBytes);
  }

  /** Takes over what is in the folder; to be awaited before anything else. Repeated after a failure. */
  open(): Promise<void> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw new EngineError("unavailable", `the folder of the query cache cannot be used: ${messageOf(error)}`, {
        cause: error,
      });
    });
    return this.#opening;
  }

  /** Whether the extent, or the columns that are needed of it, can be had without a fetch of one's own. */
  has(extent: ExtentSummary, columns: readonly string[] | undefined): boolean {
    return this.#jobs.isUnderWay(extent.id) || this.#find(extent, columns) !== undefined;
  }

  /** A file with what the query needs of the extent. Rejects with `EngineError` or the signal's reason. */
  async acquire(extent: ExtentSummary, want: Want): Promise<Lease> {
    let hit = true;
    for (;;) {
      const found = this.#find(extent, want.columns);
      if (found?.verified === true) return this.#lease(found, hit);
      const onFetch = (): void => {
        hit = false;
      };
      const start = (signal: AbortSignal): Promise<CacheEntry> => this.#bring(extent, want, { signal, onFetch });
      try {
        // A job that somebody else started may bring other columns.
        const take = (entry: CacheEntry): Lease | undefined =>
          this.#serves(entry, extent, want.columns) ? this.#lease(entry, hit) : undefined;
        const lease = await this.#jobs.join(extent.id, { signal: want.signal, start, take });
        if (lease !== undefined) return lease;
      } catch (error) {
        if (!(error instanceof NotCharged)) throw error;
        if (error.want === want) throw error.cause;
      }
    }
  }

  /**
   * Deletes the files of extents that are gone, as `goneOf` says of their ids; those that a query has open go when it
   * ends. Resolves to how many extents those were.
   */
  async sweep(goneOf: (extentIds: readonly string[]) => Promise<readonly string[]>): Promise<number> {
    await this.open();
    const ids = [...new Set(this.#index.keys().map(extentOfKey))];
    const gone = ids.length === 0 ? [] : await goneOf(ids);
    for (const id of gone) for (const partial of [false, true]) this.#discard(this.#index.get(keyOf(id, partial)));
    await Promise.all(this.#removals);
    return gone.length;
  }

  async #open(): Promise<void> {
    for (const entry of await this.#folder.open()) {
      const former = this.#index.add(entry);
      if (former !== undefined) await this.#folder.remove(former);
    }
    this.#trim(0);
  }

  /** The whole extent, else a partial file that has the columns, or may have them once its manifest is read. */
  #find(extent: ExtentSummary, columns: readonly string[] | undefined): CacheEntry | undefined {
    const whole = this.#index.get(keyOf(extent.id, false));
    if (whole !== undefined || columns === undefined) return whole;
    const partial = this.#index.get(keyOf(extent.id, true));
    return partial !== undefined && this.#serves(partial, extent, columns) ? partial : undefined;
  }

  #serves(entry: CacheEntry, extent: ExtentSummary, columns: readonly string[] | undefined): boolean {
    if (entry.key === keyOf(extent.id, false)) return true;
    if (columns === undefined) return false;
    return entry.manifest === undefined ? !entry.verified : covers(entry.manifest, columns);
  }

  /** One job: resolves to an entry that is leased once, on behalf of those who wait. */
  async #bring(extent: ExtentSummary, want: Want, { signal, onFetch }: Job): Promise<CacheEntry> {
    const known = await this.#verified(extent, want.columns);
    if (known !== undefined) return known;
    onFetch();
    CACHE_METRICS.of(this.#options.metrics).queryCacheMisses.inc();
    const source = this.#sourceFor(want, signal);
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#fetch(source, extent, want.columns);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof EngineError || error instanceof NotCharged) throw error;
        if (attempt === ATTEMPTS) throw isFull(error) ? diskFull(extent, error) : unreadable(extent, error);
        this.#options.log.warn({ key: extent.key, err: error }, "an extent could not be fetched; trying again");
        if (isFull(error)) await this.#giveWay(extent.sizeBytes);
        else if (systemCodeOf(error) === "ENOENT") await this.#folder.make();
      }
    }
  }

  #sourceFor(want: Want, signal: AbortSignal): ExtentSource {
    const { store, metrics } = this.#options;
    const charge = (sizeBytes: number): void => {
      try {
        want.charge(sizeBytes);
      } catch (error) {
        throw new NotCharged(want, error);
      }
      CACHE_METRICS.of(metrics).queryCacheFetchedBytes.inc(sizeBytes);
    };
    return { store, requests: this.#requests, signal, charge };
  }

  /** What an earlier process left of the extent, if that is intact and has the columns. */
  async #verified(extent: ExtentSummary, columns: readonly string[] | undefined): Promise<CacheEntry | undefined> {
    for (const partial of [false, true]) {
      const entry = this.#index.get(keyOf(extent.id, partial));
      if (entry === undefined) continue;
      this.#index.lease(entry);
      entry.verified ||= await this.#check(entry, extent, partial);
      if (entry.verified && this.#serves(entry, extent, columns)) return entry;
      if (!entry.verified) this.#drop(entry);
      this.#release(entry);
    }
    return undefined;
  }

  async #check(entry: CacheEntry, extent: ExtentSummary, partial: boolean): Promise<boolean> {
    try {
      if (await (partial ? isIntact(entry, extent) : isExtent(entry.path, extent))) return true;
      this.#options.log.warn({ path: entry.path }, "a file of the query cache is damaged; it is fetched again");
    } catch (error) {
      this.#options.log.warn({ path: entry.path, err: error }, "a file of the query cache cannot be read");
    }
    return false;
  }

  async #fetch(source: ExtentSource, extent: ExtentSummary, columns?: readonly string[]): Promise<CacheEntry> {
    if (columns !== undefined && mayBePartial(extent)) {
      const partial = await this.#fetchColumns(source, extent, columns);
      if (partial !== undefined) return partial;
    }
    this.#trim(sizeOnDisk(extent.sizeBytes));
    const path = this.#folder.newPath(extent.id, extent.format);
    const temporary = path + TEMPORARY;
    try {
      await fetchWhole(source, extent, temporary);
      source.signal.throwIfAborted();
      const entry = this.#add(await this.#folder.publish(temporary, path, extent));
      this.#discard(this.#index.get(keyOf(extent.id, true)));
      return entry;
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }

  /** Undefined when the whole extent has to be fetched, for whatever reason. */
  async #fetchColumns(
    source: ExtentSource,
    extent: ExtentSummary,
    columns: readonly string[],
  ): Promise<CacheEntry | undefined> {
    const former = this.#index.get(keyOf(extent.id, true));
    if (former !== undefined) this.#index.lease(former);
    try {
      const entry = await fetchColumns(source, extent, columns, { folder: this.#folder, former });
      if (entry === undefined) return undefined;
      const ranges = entry.manifest?.ranges ?? [];
      const sizeBytes = sizeOnDisk(ranges.reduce((total, range) => total + range.sizeBytes, 0));
      if (entry === former) this.#index.resize(entry, sizeBytes);
      else entry.sizeBytes = sizeBytes;
      return this.#add(entry);
    } catch (error) {
      if (!(error instanceof ParquetFooterError)) throw error;
      this.#options.log.warn({ extent: extent.id, err: error }, "an extent cannot be fetched by column");
      return undefined;
    } finally {
      if (former !== undefined) this.#release(former);
    }
  }

  /** Takes a file into the index, leased once. */
  #add(entry: CacheEntry): CacheEntry {
    if (!this.#index.has(entry)) {
      this.#discard(this.#index.get(entry.key));
      this.#index.add(entry);
    }
    this.#index.lease(entry);
    this.#trim(0);
    return entry;
  }

  #lease(entry: CacheEntry, hit: boolean): Lease {
    this.#index.lease(entry);
    if (hit) CACHE_METRICS.of(this.#options.metrics).queryCacheHits.inc();
    this.#folder.touch(entry).catch((error: unknown) => {
      this.#options.log.warn({ path: entry.path, err: error }, "the use of a cached file cannot be written down");
    });
    return { path: entry.path, hit, drop: () => this.#drop(entry), release: () => this.#release(entry) };
  }

  #release(entry: CacheEntry): void {
    this.#index.release(entry);
    if (entry.leases > 0) return;
    if (!this.#index.has(entry)) this.#unlink(entry);
    else this.#trim(0);
  }

  /** Takes a file out of the index; it stays on disk while somebody has it open. */
  #drop(entry: CacheEntry): void {
    this.#index.remove(entry);
    CACHE_METRICS.of(this.#options.metrics).queryCacheBytes.set(this.#index.totalBytes);
  }

  /** Deletes a file that another one takes the place of, once nobody has it open. */
  #discard(entry: CacheEntry | undefined): void {
    if (entry === undefined) return;
    this.#drop(entry);
    this.#unlink(entry);
  }

  /** Evicts until there is room for so many bytes more. */
  #trim(comingBytes: number): void {
    this.#evictTo(this.#options.capacityBytes - comingBytes);
  }

  /** Makes room on a disk that is full: for the bytes wanted and those of others, who are about to find the same. */
  async #giveWay(wantedBytes: number): Promise<void> {
    const { totalBytes } = this.#index;
    this.#evictTo(totalBytes - Math.max(2 * sizeOnDisk(wantedBytes), totalBytes * GIVEN_WAY_SHARE));
    await Promise.all(this.#removals);
  }

  #evictTo(totalBytes: number): void {
    const metrics = CACHE_METRICS.of(this.#options.metrics);
    while (this.#index.totalBytes > totalBytes) {
      const oldest = this.#index.oldest();
      if (oldest === undefined) break;
      this.#discard(oldest);
      metrics.queryCacheEvictions.inc();
    }
    metrics.queryCacheBytes.set(this.#index.totalBytes);
  }

  #unlink(entry: CacheEntry): void {
    if (entry.leases > 0) return;
    const removal = this.#folder.remove(entry).catch((error: unknown) => {
      this.#options.log.warn({ path: entry.path, err: error }, "a file of the query cache cannot be removed");
    });
    const tracked = removal.finally(() => this.#removals.delete(tracked));
    this.#removals.add(tracked);
  }
}

type Job = {
  signal: AbortSignal;
  /** Called when something has to be fetched. */
  onFetch: () => void;
};

/** The budget of the query that started the job does not allow a request; others may start one of their own. */
class NotCharged extends Error {
  readonly want: Want;

  constructor(want: Want, cause: unknown) {
    super("not charged", { cause });
    this.want = want;
  }
}

function isFull(error: unknown): boolean {
  const code = systemCodeOf(error);
  return code === "ENOSPC" || code === "EDQUOT";
}

function diskFull(extent: ExtentSummary, cause: unknown): EngineError {
  const message = `the disk of the query cache has no room for extent ${extent.id}`;
  return new EngineError("insufficient_storage", message, { cause });
}

function unreadable(extent: ExtentSummary, cause: unknown): EngineError {
  return new EngineError("query_failed", `extent ${extent.id} cannot be fetched: ${messageOf(cause)}`, { cause });
}
