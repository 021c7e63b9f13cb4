import { ANONYMOUS } from "../../auth/caller.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Catalog } from "../../catalog/catalog.ts";
import { openMemoryCatalog } from "../../catalog/sqlite/memory.test-kit.ts";
import { ManualClock, systemClock, type Clock } from "../../core/clock.ts";
import { uuidV7Source, type IdSource } from "../../core/ids.ts";
import { silentLog } from "../../core/log.ts";
import { createMetrics, type Metrics } from "../../core/metrics.ts";
import { seededRandom, systemRandom } from "../../core/random.ts";
import { decodeTlm } from "../../format/tlm-decode.ts";
import { FaultyStore } from "../../io/objectstore/faulty.test-kit.ts";
import { openFilesystemStore } from "../../io/objectstore/filesystem.ts";
import type { ObjectStore } from "../../io/objectstore/objectstore.ts";
import { Committer } from "../committer.ts";
import type { IngestRequest, IngestService } from "../ingest.ts";
import type { Sealer } from "../seal.ts";
import { seal } from "../seal-thread.ts";
import { createIngestService } from "../service.ts";
import { createStagedIngestService } from "./service.ts";
import { createStagedCommitter } from "./staged-committer.ts";
import type { StagedCommitService, StagedCommitterOptions } from "./staged.ts";

/** What may differ from one node to the next. */
export type NodeOptions = {
  catalog?: Catalog;
  store?: ObjectStore;
  seal?: Sealer;
  node?: string;
  clock?: Clock;
  newId?: IdSource;
  metrics?: Metrics;
  format?: "tlm" | "parquet";
};

export type CommitterOptions = NodeOptions & Partial<Pick<StagedCommitterOptions, "maxExtents" | "maxBytes">>;

/** A real catalog and a real store, and any number of nodes on them. */
export class StagedWorld {
  readonly catalog: Catalog;
  readonly inner: ObjectStore;
  readonly store: FaultyStore;
  /** The catalog's time. */
  readonly clock: ManualClock;
  readonly #folder: string;
  readonly #newId = uuidV7Source(systemClock, systemRandom);

  private constructor(folder: string, catalog: Catalog, inner: ObjectStore, clock: ManualClock) {
    this.#folder = folder;
    this.catalog = catalog;
    this.inner = inner;
    this.clock = clock;
    this.store = new FaultyStore({ inner, clock: systemClock, random: seededRandom(1) });
  }

  /** On that catalog, else on one in memory. */
  static async open(opened?: Catalog): Promise<StagedWorld> {
    const folder = await mkdtemp(join(tmpdir(), "engine-staged-"));
    const clock = new ManualClock(systemClock.nowMs());
    const catalog = opened ?? openMemoryCatalog(clock).catalog;
    const inner = await openFilesystemStore({ root: join(folder, "data"), random: systemRandom, log: silentLog });
    return new StagedWorld(folder, catalog, inner, clock);
  }

  async close(): Promise<void> {
    await this.catalog.close();
    await rm(this.#folder, { recursive: true });
  }

  #common(options: NodeOptions) {
    return {
      catalog: options.catalog ?? this.catalog,
      store: options.store ?? this.store,
      seal: options.seal ?? seal,
      sealThreads: 2,
      clock: options.clock ?? systemClock,
      random: systemRandom,
      newId: options.newId ?? this.#newId,
      log: silentLog,
      metrics: options.metrics ?? createMetrics(),
      format: options.format ?? "tlm",
      keyPrefix: "engine",
    } as const;
  }

  staged(options: NodeOptions = {}): IngestService {
    const common = this.#common(options);
    const committer = new Committer({ ...common, windowMs: 0, maxExtents: 128 });
    return createStagedIngestService({ ...common, ...ADMISSION, committer, node: options.node ?? "node-1" });
  }

  sync(options: NodeOptions = {}): IngestService {
    const common = this.#common(options);
    const committer = new Committer({ ...common, windowMs: 0, maxExtents: 128 });
    return createIngestService({ ...common, ...ADMISSION, committer });
  }

  committer(options: CommitterOptions = {}): StagedCommitService {
    const { maxExtents = 128, maxBytes = 64 * 1024 * 1024 } = options;
    return createStagedCommitter({ ...this.#common(options), maxExtents, maxBytes });
  }

  /** One round of a committer without a lease. */
  async commit(options: CommitterOptions = {}): Promise<void> {
    await this.committer(options).commitRound(undefined, new AbortController().signal);
  }

  /** Keys below a prefix. */
  async keys(prefix = ""): Promise<string[]> {
    const keys: string[] = [];
    for await (const { key } of this.inner.list(prefix)) keys.push(key);
    return keys;
  }

  /** Rows of a table over all live extents, in no order: members that are not NULL, as text. */
  async rows(table = "t", database = "default"): Promise<Record<string, string>[]> {
    const record = await this.catalog.table(database, table);
    if (record === undefined) return [];
    const spelling = new Map(record.columns.map(({ name }) => [name.toLowerCase(), name]));
    const rows: Record<string, string>[] = [];
    for (const { key } of await this.catalog.extents(record.id, (await this.catalog.head()).id)) {
      const decoded = decodeTlm(await this.inner.get(key));
      for (let row = 0; row < decoded.rows; row++) {
        const members = decoded.columns.flatMap(({ spec, values }) => {
          const value = values[row] ?? null;
          const name = spelling.get(spec.name.toLowerCase()) ?? `no column ${spec.name}`;
          return value === null ? [] : [[name, String(value)] as const];
        });
        rows.push(Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1))));
      }
    }
    return rows;
  }

  /** Values of a column, sorted; NULL where a row has none. */
  async values(column: string, table = "t"): Promise<string[]> {
    const values = (await this.rows(table)).map((row) => row[column] ?? "NULL");
    return values.toSorted((a, b) => a.localeCompare(b));
  }
}

const ADMISSION = {
  batching: { maxRows: 8_000, maxBytes: 16 * 1024 * 1024, maxAgeMs: 50, disabled: false },
  maxInflightBytes: 256 * 1024 * 1024,
  rate: { perSec: 0, burst: 1 },
};

export function send(to: IngestService, body: string | Uint8Array, more: Partial<IngestRequest> = {}) {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  return to.ingest({
    caller: ANONYMOUS,
    database: "default",
    table: "t",
    autoCreate: true,
    evolve: true,
    expectedBytes: bytes.length,
    readBody: async () => bytes,
    ...more,
  });
}

/** A catalog of which some calls are answered otherwise. */
export function withCalls(catalog: Catalog, calls: Partial<Catalog>): Catalog {
  return new Proxy(catalog, {
    get: (target, name) => {
      const own = Reflect.get(calls, name) as unknown;
      return own ?? (Reflect.get(target, name) as () => unknown).bind(target);
    },
  });
}
