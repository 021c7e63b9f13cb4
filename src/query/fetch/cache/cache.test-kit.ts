import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PlannedExtent } from "../../../catalog/catalog.ts";
import { ManualClock, systemClock } from "../../../core/clock.ts";
import { silentLog } from "../../../core/log.ts";
import { createMetrics, type Metrics } from "../../../core/metrics.ts";
import { systemRandom } from "../../../core/random.ts";
import { checksumOf } from "../../../format/checksum.ts";
import type { ExtentFormat } from "../../../format/types.ts";
import { openFilesystemStore } from "../../../io/objectstore/filesystem.ts";
import type { GetOptions, ObjectInfo, ObjectStore } from "../../../io/objectstore/objectstore.ts";
import { ExtentCache, type ExtentCacheOptions, type Want } from "./extent-cache.ts";

/** A cache for tests: real files, over a store whose objects are not local files and whose requests can be watched. */

export class RemoteStore implements ObjectStore {
  /** Ranges asked for, in order. */
  readonly gets: { key: string; offset: number; sizeBytes: number }[] = [];
  readonly aborted: string[] = [];
  /** What happens to the bytes of a request on the way. */
  onGet: (bytes: Uint8Array<ArrayBuffer>, key: string) => Uint8Array<ArrayBuffer> = (bytes) => bytes;
  #gate: Promise<void> = Promise.resolve();
  readonly #inner: ObjectStore;

  constructor(inner: ObjectStore) {
    this.#inner = inner;
  }

  get bytesAsked(): number {
    return this.gets.reduce((total, get) => total + get.sizeBytes, 0);
  }

  /** Requests wait from now on until the function returned is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gate = promise;
    return resolve;
  }

  async get(key: string, options: GetOptions = {}): Promise<Uint8Array<ArrayBuffer>> {
    this.gets.push({ key, offset: options.offset ?? 0, sizeBytes: options.length ?? Infinity });
    options.signal?.addEventListener("abort", () => this.aborted.push(key));
    await this.#gate;
    return this.onGet(await this.#inner.get(key, options), key);
  }

  put(key: string, bytes: Uint8Array): Promise<void> {
    return this.#inner.put(key, bytes);
  }

  putFile(key: string, path: string): Promise<void> {
    return this.#inner.putFile(key, path);
  }

  head(key: string): Promise<ObjectInfo | undefined> {
    return this.#inner.head(key);
  }

  list(prefix: string): AsyncIterable<ObjectInfo> {
    return this.#inner.list(prefix);
  }

  delete(keys: readonly string[]): Promise<void> {
    return this.#inner.delete(keys);
  }
}

export type CacheKit = {
  folder: string;
  /** Where the cache keeps its files. */
  cacheDir: string;
  store: RemoteStore;
  clock: ManualClock;
  metrics: Metrics;
  cache: ExtentCache;
  /** Bytes charged so far. */
  charged(): number;
  /** Another cache over the same folder, as after a restart. */
  reopen(options?: Partial<ExtentCacheOptions>): Promise<ExtentCache>;
  addExtent(id: string, bytes: Uint8Array, format?: ExtentFormat): Promise<PlannedExtent>;
  want(overrides?: Partial<Want>): Want;
  close(): void;
};

export async function openCacheKit(options: Partial<ExtentCacheOptions> = {}): Promise<CacheKit> {
  const folder = mkdtempSync(join(tmpdir(), "engine-cache-test-"));
  const inner = await openFilesystemStore({ root: join(folder, "store"), random: systemRandom, log: silentLog });
  const store = new RemoteStore(inner);
  // Reading a file sets its access time to the real one.
  const clock = new ManualClock(systemClock.nowMs());
  const metrics = createMetrics();
  const cacheDir = join(folder, "cache");
  const defaults = { store, folder: cacheDir, capacityBytes: 2 ** 30, clock, log: silentLog, metrics };
  let charged = 0;
  const reopen = async (overrides: Partial<ExtentCacheOptions> = {}): Promise<ExtentCache> => {
    const cache = new ExtentCache({ ...defaults, ...options, ...overrides });
    await cache.open();
    return cache;
  };
  return {
    folder,
    cacheDir,
    store,
    clock,
    metrics,
    cache: await reopen(),
    charged: () => charged,
    reopen,
    async addExtent(id, bytes, format = "tlm") {
      const key = `t/${id}.${format}`;
      await store.put(key, bytes);
      return extentOf(id, key, bytes, format);
    },
    want: (overrides) => ({
      columns: undefined,
      signal: new AbortController().signal,
      charge: (sizeBytes) => {
        charged += sizeBytes;
      },
      ...overrides,
    }),
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export function extentOf(id: string, key: string, bytes: Uint8Array, format: ExtentFormat): PlannedExtent {
  return {
    id,
    key,
    format,
    formatVersion: 1,
    rows: 1,
    sizeBytes: bytes.byteLength,
    checksum: checksumOf(bytes),
    minAtNs: 0n,
    maxAtNs: 0n,
    columns: [],
    tableId: 1,
    schemaVersion: 1,
    beginSnapshot: 1,
  };
}

/** Bytes that no compression or mix-up makes equal. */
export function bytesOf(seed: number, sizeBytes: number): Uint8Array {
  const bytes = new Uint8Array(sizeBytes);
  let state = seed + 1;
  for (let i = 0; i < sizeBytes; i++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes[i] = state >>> 16;
  }
  return bytes;
}
