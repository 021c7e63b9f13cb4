import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Catalog, ExtentRecord, Lease, NewExtent, TableRecord } from "../catalog/catalog.ts";
import { openMemoryCatalog } from "../catalog/sqlite/memory.test-kit.ts";
import { systemClock, type Clock } from "../core/clock.ts";
import { uuidV7Source } from "../core/ids.ts";
import { silentLog, type Log } from "../core/log.ts";
import { createMetrics, type Metrics } from "../core/metrics.ts";
import { foldName } from "../core/names.ts";
import { systemRandom } from "../core/random.ts";
import { localSignals } from "../db/signals.ts";
import { checksumOf } from "../format/checksum.ts";
import type { ColumnSpec, ExtentFormat } from "../format/types.ts";
import { tlmToParquet } from "../io/duckdb/parquet.test-kit.ts";
import { tlmFixture, type FixtureRow } from "../io/duckdb/tlm.test-kit.ts";
import { openFilesystemStore } from "../io/objectstore/filesystem.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import { PublishRequests } from "./publish-requests.ts";
import { createCompactor, type CompactorOptions, type CompactorPorts } from "./compactor.ts";
import type { Duty } from "../feature/lease-loop.ts";

/** A real catalog and a real store, with extents made of plain rows. */
export type ExtentFixture = {
  format?: ExtentFormat;
  columns: readonly ColumnSpec[];
  rows: readonly FixtureRow[];
  /** Values that did not fit, by the name of their column. */
  misfits?: Readonly<Record<string, number>>;
  /** What the catalog is told that is not so, or not said otherwise. */
  claims?: Partial<Pick<NewExtent, "rows" | "sizeBytes" | "checksum" | "minAtNs" | "maxAtNs" | "stats">>;
};

export type Bench = {
  folder: string;
  catalog: Catalog;
  store: ObjectStore;
  metrics: Metrics;
  requests: PublishRequests;
  /** What was logged as an error: merges that failed. */
  failures: unknown[];
  lease: Lease;
  /** The system's clock, put forward. */
  clock: Clock & { aheadMs: number };
  /** Commits an extent of its own for each fixture; the ids. */
  add(table: TableRecord, extents: readonly ExtentFixture[]): Promise<string[]>;
  live(table: TableRecord): Promise<ExtentRecord[]>;
  /** Keys of all objects. */
  objects(): Promise<string[]>;
  /** What merges have left in their folder. */
  leftovers(): Promise<string[]>;
  compactor(options?: Partial<CompactorOptions>, ports?: Partial<CompactorPorts>): Duty;
  close(): Promise<void>;
};

export async function openBench(): Promise<Bench> {
  const folder = await mkdtemp(join(tmpdir(), "engine-compaction-"));
  const clock = { ...systemClock, aheadMs: 0, nowMs: () => systemClock.nowMs() + clock.aheadMs };
  const newId = uuidV7Source(systemClock, systemRandom);
  const failures: unknown[] = [];
  const log = Object.assign(Object.create(silentLog) as Log, {
    error: (about: { err?: unknown; keys?: unknown }) => failures.push(about.err ?? about.keys),
  });
  const { catalog } = openMemoryCatalog(systemClock);
  const requests = new PublishRequests({ records: catalog.records, signals: localSignals() });
  const store = await openFilesystemStore({ root: join(folder, "data"), random: systemRandom, log });
  const lease = await catalog.acquireLease("compaction", "test", 3_600_000);
  if (lease === undefined) throw new Error("no lease");
  const metrics = createMetrics();
  const tempDir = join(folder, "tmp");
  return {
    folder,
    catalog,
    store,
    metrics,
    requests,
    failures,
    lease,
    clock,
    async add(table, extents) {
      const made = [];
      for (const extent of extents) {
        const id = newId();
        const described = await describe(extent);
        const key = `engine/${table.database}/${table.name}/2024-01-01/${id}.${described.format}`;
        await store.put(key, described.bytes);
        const { bytes, ...rest } = described;
        made.push({ ...rest, id, key, sizeBytes: bytes.byteLength, ...extent.claims });
      }
      for (const extent of made) {
        const flush = { tableId: table.id, schemaVersion: table.schemaVersion, newColumns: [], ledger: [] };
        await catalog.commit([{ ...flush, extents: [extent] }]);
      }
      return made.map(({ id }) => id);
    },
    live: async (table) => catalog.extents(table.id, (await catalog.head()).id),
    objects: async () => {
      const keys: string[] = [];
      for await (const { key } of store.list("")) keys.push(key);
      return keys;
    },
    leftovers: async () => (await readdir(tempDir)).filter((name) => name !== "code"),
    compactor: (options, ports) =>
      createCompactor(
        { catalog, store, clock, newId, log, metrics, isBusy: () => false, requests, ...ports },
        {
          keyPrefix: "engine",
          tempDir,
          minExtents: 4,
          restMs: 0,
          memoryBytes: 512 * 1024 * 1024,
          threads: 1,
          cpuShare: 1,
          ...options,
        },
      ),
    async close() {
      await catalog.close();
      await rm(folder, { recursive: true });
    },
  };
}

/** An extent's bytes and what the catalog keeps of it; statistics are only NULL counts. */
async function describe({ format = "tlm", columns, rows, misfits = {} }: ExtentFixture) {
  const present = columns.filter(({ name }) => {
    return name === "at" || name in misfits || rows.some((row) => (row[name] ?? null) !== null);
  });
  const tlm = tlmFixture(present, rows, 3_000);
  const bytes = format === "tlm" ? tlm : await tlmToParquet(tlm);
  const times = rows.map((row) => row["at"] as bigint);
  return {
    bytes,
    format,
    formatVersion: 1,
    rows: rows.length,
    checksum: checksumOf(bytes),
    minAtNs: times.reduce((a, b) => (a < b ? a : b)),
    maxAtNs: times.reduce((a, b) => (a > b ? a : b)),
    stats: present.map(({ name }) => {
      const own = misfits[name];
      const nullCount = rows.filter((row) => (row[name] ?? null) === null).length;
      return own === undefined ? { name, nullCount } : { name, nullCount, misfits: own };
    }),
  };
}

/** The statistics of a column, by its name in any case. */
export function statsOf(extent: ExtentRecord, name: string): ExtentRecord["stats"][number] | undefined {
  return extent.stats.find((stats) => foldName(stats.name) === foldName(name));
}
