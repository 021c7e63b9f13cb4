import { ANONYMOUS } from "../auth/caller.ts";
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { EngineError } from "../core/errors.ts";
import type {
  Additions,
  AdditionsRequest,
  Catalog,
  ExtentRecord,
  Resolution,
  ScanPlan,
  ScanRequest,
  TableChange,
  TableRecord,
} from "../catalog/catalog.ts";
import { ExtentIndex } from "../catalog/extent-index.ts";
import { systemClock } from "../core/clock.ts";
import { createLog, silentLog } from "../core/log.ts";
import { createMetrics } from "../core/metrics.ts";
import { foldName } from "../core/names.ts";
import { checksumOf } from "../format/checksum.ts";
import type { ColumnSpec, ExtentFormat } from "../format/types.ts";
import { parquetFrom } from "../io/duckdb/parquet.ts";
import { tlmFixture, type FixtureRow } from "../io/duckdb/tlm.test-kit.ts";
import { ObjectNotFound, rangeOf, type ObjectStore } from "../io/objectstore/objectstore.ts";
import { fixtureStats } from "./stats.test-kit.ts";
import { createChildPool, type ChildPool, type ChildPoolOptions } from "./scan/child-pool.ts";
import type { Confinement } from "../io/confinement/confinement.ts";
import { openConfinement } from "../io/confinement/open-confinement.ts";
import type { QueryRequest } from "./contract/query.ts";
import { lendSnapshot } from "./translator/shared-snapshot.test-kit.ts";
import { createTranslator } from "./translator/translator.ts";
import { createQueryService, type ClosableQueryService, type QueryServiceOptions } from "./service.ts";

/** A query service for tests: real query processes and real files, under a catalog that is a list in memory. */

export type ExtentFixture = {
  format: ExtentFormat;
  columns: readonly ColumnSpec[];
  rows: readonly FixtureRow[];
  /** First snapshot that has it. */
  snapshot?: number;
  /** Parquet of version 1, which has no field ids, and nanoseconds. */
  isOld?: boolean;
};

export type QueryHarness = {
  folder: string;
  service: ClosableQueryService;
  catalog: Pick<Catalog, "resolve" | "additions">;
  pool: ChildPool;
  /** Keys of the extents that the last queries asked the catalog for. */
  opened: string[];
  addTable(
    database: string,
    name: string,
    columns: readonly ColumnSpec[],
    extents: readonly ExtentFixture[],
  ): Promise<void>;
  /** Of the table of that name; undefined lifts it. */
  setRetention(table: string, days: number | undefined): void;
  /** What the table of that name has from now on. */
  setColumns(table: string, columns: readonly ColumnSpec[]): void;
  path(key: string): string;
  /** Makes older snapshots unreadable. */
  expireSnapshots(before: number): void;
  /** All bytes of the answer. */
  text(
    sql: string,
    options?: Partial<
      Pick<QueryRequest, "language" | "explain" | "database" | "signal" | "caller" | "parameters" | "format">
    >,
  ): Promise<string>;
  /** The answer's rows, numbers as JavaScript reads them. */
  rows(sql: string, database?: string): Promise<Record<string, unknown>[]>;
  /** Why the query fails; one that answers fails the test. */
  failure(sql: string, options?: Parameters<QueryHarness["text"]>[1]): Promise<EngineError>;
  close(): Promise<void>;
};

type Options = {
  pool?: Partial<ChildPoolOptions>;
  service?: Partial<QueryServiceOptions>;
  /** Whether the store has local paths. */
  local?: boolean;
};

const DEFAULT_MEMORY_BYTES = 1024 ** 3;

/** That of this machine, tried once. */
const confinement: Confinement = await openConfinement({ log: silentLog, tempDir: tmpdir() });

export function createQueryHarness(options: Options = {}): QueryHarness {
  const folder = mkdtempSync(join(tmpdir(), "engine-query-test-"));
  const tempDir = join(folder, "tmp");
  const fake = new FakeCatalog(join(folder, "data"));
  const log = process.env["ENGINE_TEST_LOG"] === undefined ? silentLog : createLog("debug");
  const memoryBytes = options.pool?.memoryBytes ?? DEFAULT_MEMORY_BYTES;
  const store = options.service?.store ?? fakeStore(fake, options.local ?? true);
  const cacheDir = options.service?.cacheDir ?? join(folder, "extents");
  const pool = createChildPool({
    children: 1,
    memoryBytes,
    log,
    clock: systemClock,
    tempDir,
    confinement,
    ...options.pool,
  });
  const translator = createTranslator({
    log,
    clock: systemClock,
    metrics: createMetrics(),
    confinement,
    tempDir,
    snapshotDir: lendSnapshot(join(folder, "kql")),
    memoryBytes,
    retryAfterSecs: 1,
  });
  const service = createQueryService({
    catalog: fake as unknown as Catalog,
    records: { rows: () => Promise.resolve([]) },
    store,
    pool,
    translator,
    clock: systemClock,
    log,
    metrics: createMetrics(),
    tempDir,
    async *listStaged() {},
    node: "test",
    newId: randomUUID,
    wallMs: 30_000,
    memoryBytes,
    totalMemoryBytes: Infinity,
    maxConcurrent: 0,
    maxConcurrentPerTenant: 0,
    retryAfterSecs: 1,
    slowMs: 0,
    objectStoreBytes: 10 * 1024 ** 3,
    cacheDir,
    cacheBytes: 1024 ** 3,
    ...options.service,
  });
  const harness: QueryHarness = {
    folder,
    service,
    catalog: fake,
    pool,
    opened: fake.opened,
    addTable: (database, name, columns, extents) => fake.add(database, name, columns, extents),
    setRetention: (table, days) => fake.setRetention(table, days),
    setColumns: (table, columns) => fake.setColumns(table, columns),
    path: (key) => fake.path(key),
    expireSnapshots: (before) => {
      fake.oldest = before;
    },
    async text(sql, options = {}) {
      const { signal } = new AbortController();
      const asked = { caller: ANONYMOUS, database: "default", requestId: "test", signal, ...options };
      const result = await service.run({ ...asked, text: sql });
      const chunks: Uint8Array[] = [];
      for await (const chunk of result.body) chunks.push(chunk);
      const text = Buffer.concat(chunks).toString("utf8");
      const lines = text === "" ? 0 : text.trimEnd().split("\n").length;
      if (options.format !== undefined) return text;
      if (lines !== result.rows) throw new Error(`${result.rows} rows announced, ${lines} sent`);
      return text;
    },
    async rows(sql, database = "default") {
      const text = await harness.text(sql, { database });
      return text === ""
        ? []
        : text
            .trimEnd()
            .split("\n")
            .map((line) => JSON.parse(line) as Record<string, unknown>);
    },
    failure: (sql, options) =>
      harness.text(sql, options).then(
        (answer) => {
          throw new Error(`answered ${answer}`);
        },
        (error: EngineError) => error,
      ),
    async close() {
      await service.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return harness;
}

/** The reading half of a catalog. */
class FakeCatalog {
  readonly opened: string[] = [];
  /** The oldest readable snapshot; snapshot n is of n seconds after the epoch. */
  oldest = 0;
  readonly #root: string;
  readonly #tables: TableRecord[] = [];
  readonly #extents: ExtentRecord[] = [];

  constructor(root: string) {
    this.#root = root;
    mkdirSync(root, { recursive: true });
  }

  path(key: string): string {
    return join(this.#root, key);
  }

  async add(
    database: string,
    name: string,
    columns: readonly ColumnSpec[],
    extents: readonly ExtentFixture[],
  ): Promise<void> {
    const id = this.#tables.length + 1;
    const ids = columns.map((column, i) => ({ ...column, id: i }));
    this.#tables.push({ id, databaseId: 1, database, name, schemaVersion: 1, columns: ids, clusterBy: [] });
    const idOf = new Map(ids.map((column) => [foldName(column.name), column.id]));
    for (const [i, { format, columns: own, rows, snapshot, isOld = false }] of extents.entries()) {
      const tlm = tlmFixture(own, rows, 3000);
      const options = isOld ? {} : { ids: idOf };
      const parquet = format === "tlm" ? undefined : await parquetFrom(tlm, options);
      const bytes = parquet?.bytes ?? tlm;
      const finer = parquet?.nanosecondColumns ?? [];
      const key = `${database}/${name}/${i}.${format}`;
      mkdirSync(dirname(this.path(key)), { recursive: true });
      writeFileSync(this.path(key), bytes);
      const times = rows.map((row) => row["at"] as bigint);
      this.#extents.push({
        id: id === 1 ? `extent-${i}` : `extent-${id}-${i}`,
        key,
        format,
        formatVersion: parquet?.formatVersion ?? 1,
        ...(finer.length > 0 && { nanosecondColumnIds: finer.map((column) => idOf.get(foldName(column)) ?? -1) }),
        rows: rows.length,
        sizeBytes: bytes.byteLength,
        checksum: checksumOf(bytes),
        minAtNs: times.reduce((a, b) => (a < b ? a : b), times[0] ?? 0n),
        maxAtNs: times.reduce((a, b) => (a > b ? a : b), times[0] ?? 0n),
        stats: own.map((column) => fixtureStats(column, rows)),
        tableId: id,
        schemaVersion: 1,
        beginSnapshot: snapshot ?? 1,
      });
    }
  }

  setRetention(name: string, days: number | undefined): void {
    const i = this.#tables.findIndex((table) => table.name === name);
    const { retentionDays: _former, ...table } = this.#tables[i] ?? raise(`there is no table ${name}`);
    this.#tables[i] = days === undefined ? table : { ...table, retentionDays: days };
  }

  setColumns(name: string, columns: readonly ColumnSpec[]): void {
    const i = this.#tables.findIndex((table) => table.name === name);
    const table = this.#tables[i] ?? raise(`there is no table ${name}`);
    this.#tables[i] = { ...table, columns: columns.map((column, id) => ({ ...column, id })) };
  }

  async database(name: string): Promise<{ id: number; name: string } | undefined> {
    return (await this.databases()).find((database) => foldName(database.name) === foldName(name));
  }

  async databases(): Promise<{ id: number; name: string }[]> {
    return [...new Set(["default", ...this.#tables.map((table) => table.database)])].map((name, id) => ({ id, name }));
  }

  async table(database: string, name: string): Promise<TableRecord | undefined> {
    const tables = await this.tables(database);
    return tables.find((table) => foldName(table.name) === foldName(name));
  }

  async resolve(database: string, names: readonly string[]): Promise<Resolution | undefined> {
    const known = await this.database(database);
    if (known === undefined) return undefined;
    const tables = await Promise.all(names.map((name) => this.table(database, name)));
    return { database: known, head: await this.head(), tables };
  }

  async tables(database: string): Promise<TableRecord[]> {
    return this.#tables.filter((table) => foldName(table.database) === foldName(database));
  }

  async head(): Promise<{ id: number; committedAtMs: number }> {
    return { id: Math.max(1, ...this.#extents.map((extent) => extent.beginSnapshot)), committedAtMs: 0 };
  }

  async snapshots(limit: number): Promise<{ id: number; committedAtMs: number }[]> {
    const head = await this.head();
    return Array.from({ length: Math.min(limit, head.id) }, (_, i) => ({ id: head.id - i, committedAtMs: 1_000 }));
  }

  async tableChanges(tableIds: readonly number[]): Promise<TableChange[]> {
    return this.#extents
      .filter(({ tableId }) => tableIds.includes(tableId))
      .map(({ tableId, rows, beginSnapshot: snapshot }) => {
        return { snapshot, tableId, added: 1, removed: 0, rowsAdded: rows, rowsRemoved: 0 };
      });
  }

  async tableStats(tableId: number): Promise<{ rows: number; extents: number; sizeBytes: number }> {
    const own = this.#extents.filter((extent) => extent.tableId === tableId);
    const sum = (sizeOf: (extent: ExtentRecord) => number): number => own.reduce((n, e) => n + sizeOf(e), 0);
    return { rows: sum(({ rows }) => rows), extents: own.length, sizeBytes: sum(({ sizeBytes }) => sizeBytes) };
  }

  async misfits(tableId: number): Promise<ReadonlyMap<number, number>> {
    const columns = this.#tables.find(({ id }) => id === tableId)?.columns ?? [];
    const sum = new Map<number, number>();
    for (const { stats } of this.#extents.filter((extent) => extent.tableId === tableId)) {
      for (const { name, misfits = 0 } of stats) {
        const id = columns.find((column) => foldName(column.name) === foldName(name))?.id;
        if (id !== undefined && misfits > 0) sum.set(id, (sum.get(id) ?? 0) + misfits);
      }
    }
    return sum;
  }

  async snapshotAt(timeMs: number): Promise<{ id: number; committedAtMs: number } | undefined> {
    const head = await this.head();
    return timeMs < 1_000 ? undefined : { id: Math.min(head.id, Math.floor(timeMs / 1_000)), committedAtMs: 0 };
  }

  async oldestSnapshot(): Promise<{ id: number; committedAtMs: number }> {
    return { id: this.oldest, committedAtMs: 0 };
  }

  async holdSnapshots(): Promise<void> {}

  async releaseSnapshots(): Promise<void> {}

  async extentsWithout(): Promise<string[]> {
    return [];
  }

  async additions({ tableId, from, upTo }: AdditionsRequest): Promise<Additions> {
    if (from - 1 < this.oldest) throw new EngineError("snapshot_expired", `the oldest snapshot is ${this.oldest}`);
    const extents = this.#extents
      .filter((extent) => extent.tableId === tableId && extent.beginSnapshot >= from && extent.beginSnapshot <= upTo)
      .map((extent) => Object.assign({}, extent, { columns: extent.stats.map(({ name }) => name) }));
    return { extents, upTo };
  }

  async planScan({ tableId, ...request }: ScanRequest): Promise<ScanPlan> {
    const index = new ExtentIndex();
    const own = this.#extents.filter((extent) => extent.tableId === tableId);
    for (const [seq, extent] of own.entries()) {
      index.add({ ...extent, seq, endSnapshot: undefined, rowCount: extent.rows });
    }
    const columns = this.#tables.find(({ id }) => id === tableId)?.columns ?? [];
    const { seqs, ...pruning } = index.scan(
      request,
      (name) => columns.find((column) => foldName(column.name) === foldName(name)),
      () => (seq) => own[seq]?.stats ?? [],
    );
    const extents = seqs
      .flatMap((seq) => own[seq] ?? [])
      .map((extent) => Object.assign(extent, { columns: extent.stats.map(({ name }) => name) }));
    this.opened.push(...extents.map(({ key }) => key));
    return { extents, ...pruning };
  }

  async extents(
    tableId: number,
    snapshot: number,
    range: { minNs?: bigint; maxNs?: bigint } = {},
  ): Promise<ExtentRecord[]> {
    const found = this.#extents.filter(
      (extent) =>
        extent.tableId === tableId &&
        extent.beginSnapshot <= snapshot &&
        (range.minNs === undefined || extent.maxAtNs >= range.minNs) &&
        (range.maxNs === undefined || extent.minAtNs <= range.maxNs),
    );
    this.opened.push(...found.map((extent) => extent.key));
    return found;
  }
}

function raise(message: string): never {
  throw new Error(message);
}

function fakeStore(catalog: FakeCatalog, local: boolean): ObjectStore {
  const store: Partial<ObjectStore> = {
    async get(key, range) {
      try {
        const bytes = readFileSync(catalog.path(key));
        const { start, end } = rangeOf(bytes.length, range);
        return Uint8Array.from(bytes.subarray(start, end));
      } catch {
        throw new ObjectNotFound(key);
      }
    },
  };
  if (local) store.localPath = (key) => catalog.path(key);
  return store as ObjectStore;
}
