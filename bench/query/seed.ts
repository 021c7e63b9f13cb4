import { ANONYMOUS } from "../../src/auth/caller.ts";
import { createReadStream, existsSync, readdirSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Catalog } from "../../src/catalog/catalog.ts";
import { systemClock } from "../../src/core/clock.ts";
import { Semaphore } from "../../src/core/concurrency.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { silentLog } from "../../src/core/log.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import { systemRandom } from "../../src/core/random.ts";
import type { ExtentFormat } from "../../src/format/types.ts";
import { Committer } from "../../src/ingest/committer.ts";
import type { IngestService } from "../../src/ingest/ingest.ts";
import { createSealPool } from "../../src/ingest/seal-pool.ts";
import { createIngestService } from "../../src/ingest/service.ts";
import { withCatalog } from "../support/catalog.ts";
import { openFilesystemStore } from "../../src/io/objectstore/filesystem.ts";
import type { ObjectStore } from "../../src/io/objectstore/objectstore.ts";
import { countRows, cutByRows, cutBySize } from "../support/bodies.ts";
import type { Cut } from "../support/load-plan.ts";
import { TABLES, type QueryData } from "./data.ts";

/** How extents are to be: the ingest service seals each body into one of its own, whatever its size. */
export type ExtentPlan = {
  format: ExtentFormat;
  cut: Cut;
  /** Rows of `events` from here on are sealed as `tlm` in extents of `FRESH_ROWS` instead. */
  freshFrom?: number;
};

/** What a flush of the default size holds. */
export const FRESH_ROWS = 8_000;

/** An engine's home with the three tables in it. */
export type SeededHome = {
  home: string;
  extents: number;
  sizeBytes: number;
  /** Files of the extents, by table. */
  files: Readonly<Record<string, readonly string[]>>;
  /** Removes what servers made in it since: caches and temporary files. */
  forgetCaches(): Promise<void>;
};

const DONE = "seeded";

/** Seeds `home`, unless an earlier run did. */
export async function seedHome(home: string, data: QueryData, plan: ExtentPlan): Promise<SeededHome> {
  await mkdir(home, { recursive: true });
  if (!existsSync(join(home, DONE))) {
    await withStorage(home, (storage) => fill(storage, data, plan));
    await writeFile(join(home, DONE), "");
  }
  const listed = await withStorage(home, listExtents);
  return {
    home,
    ...listed,
    forgetCaches: async () => {
      for (const name of readdirSync(home)) {
        if (!OWN_FILES.has(name)) await rm(join(home, name), { recursive: true, force: true });
      }
    },
  };
}

/** The same below `folder`, in a home whose name tells the plan. */
export async function seedHomeIn(folder: string, data: QueryData, plan: ExtentPlan): Promise<SeededHome> {
  const cut = "rows" in plan.cut ? `${plan.cut.rows}-rows` : `${plan.cut.sizeBytes}-bytes`;
  const fresh = plan.freshFrom === undefined ? "" : "-half-fresh";
  return await seedHome(join(folder, `home-${plan.format}-${cut}-${data.facts.rows}${fresh}`), data, plan);
}

const OWN_FILES: ReadonlySet<string> = new Set([
  "catalog.db",
  "catalog.db-wal",
  "catalog.db-shm",
  "catalog.db.lock",
  "data",
  DONE,
]);

export type Storage = { catalog: Catalog; store: ObjectStore };

/** Opens the catalog and the store of a home that no server uses. */
export async function withStorage<T>(home: string, task: (storage: Storage) => Promise<T>): Promise<T> {
  return withCatalog(home, async (catalog) => {
    const store = await openFilesystemStore({ root: join(home, "data"), random: systemRandom, log: silentLog });
    return await task({ catalog, store });
  });
}

async function fill(storage: Storage, data: QueryData, plan: ExtentPlan): Promise<void> {
  for (const table of Object.values(TABLES)) await storage.catalog.createTable({ database: "default", ...table });
  const { freshFrom = Number.POSITIVE_INFINITY } = plan;
  await withIngest(storage, plan.format, async (ingest) => {
    for (const { name } of Object.values(TABLES)) {
      const rows = name === TABLES.events.name ? freshFrom : Number.POSITIVE_INFINITY;
      await sendAll(ingest, name, bodiesOf(data.pathOf(name), plan.cut, { from: 0, to: rows }));
    }
  });
  if (freshFrom >= data.facts.rows) return;
  await withIngest(storage, "tlm", async (ingest) => {
    const range = { from: freshFrom, to: Number.POSITIVE_INFINITY };
    await sendAll(ingest, TABLES.events.name, bodiesOf(data.pathOf(TABLES.events.name), { rows: FRESH_ROWS }, range));
  });
}

/** The ingest service without HTTP before it: there, a body of a million rows would pass the limit. */
async function withIngest(
  { catalog, store }: Storage,
  format: ExtentFormat,
  task: (ingest: IngestService) => Promise<void>,
): Promise<void> {
  const metrics = createMetrics();
  const ports = { catalog, store, metrics, log: silentLog, clock: systemClock, random: systemRandom };
  const pool = createSealPool({ threads: availableParallelism(), log: silentLog });
  try {
    const ingest = createIngestService({
      ...ports,
      newId: uuidV7Source(systemClock, systemRandom),
      committer: new Committer({ ...ports, windowMs: 5, maxExtents: 128 }),
      seal: pool.seal,
      // No more, or the bodies would be cut.
      sealThreads: 1,
      format,
      keyPrefix: "engine",
      batching: { maxRows: 1, maxBytes: 1, maxAgeMs: 0, disabled: true },
      maxInflightBytes: Number.MAX_SAFE_INTEGER,
      rate: { perSec: 0, burst: 1 },
    });
    await task(ingest);
  } finally {
    await pool.close();
  }
}

async function sendAll(ingest: IngestService, table: string, bodies: AsyncIterable<Buffer>): Promise<void> {
  const turns = new Semaphore(availableParallelism());
  let failure: Error | undefined;
  const pending = new Set<Promise<void>>();
  for await (const body of bodies) {
    const sending = turns.run(async () => {
      const request = { caller: ANONYMOUS, database: "default", table, autoCreate: false, evolve: false };
      await ingest.ingest({ ...request, expectedBytes: body.length, readBody: async () => body });
    });
    const settled = sending.then(
      () => void pending.delete(settled),
      (error: Error) => {
        failure ??= error;
        pending.delete(settled);
      },
    );
    pending.add(settled);
    // Bodies are large: no more are read than can be worked on.
    if (pending.size > availableParallelism()) await Promise.race(pending);
    if (failure !== undefined) break;
  }
  await Promise.all(pending);
  if (failure !== undefined) throw failure;
}

/** The rows `[from, to)` of a file, cut into bodies. */
async function* bodiesOf(path: string, cut: Cut, range: { from: number; to: number }): AsyncGenerator<Buffer> {
  let held: Buffer = Buffer.alloc(0);
  let row = 0;
  const cutAll = (bytes: Buffer) => ("rows" in cut ? cutByRows(bytes, cut.rows) : cutBySize(bytes, cut.sizeBytes));
  for await (const piece of rowsOf(path)) {
    const rows = countRows(piece);
    const wanted = rowsBetween(piece, range.from - row, range.to - row);
    row += rows;
    held = Buffer.concat([held, wanted]);
    const bodies = cutAll(held);
    // The last may not be full yet.
    held = bodies.pop() ?? Buffer.alloc(0);
    yield* bodies;
  }
  if (held.length > 0) yield held;
}

/** The rows `[from, to)` of whole rows. */
function rowsBetween(ndjson: Buffer, from: number, to: number): Buffer {
  const start = startOfRow(ndjson, from);
  return ndjson.subarray(start, Math.max(start, startOfRow(ndjson, to)));
}

function startOfRow(ndjson: Buffer, row: number): number {
  if (!Number.isFinite(row)) return ndjson.length;
  let start = 0;
  for (let i = 0; i < row && start < ndjson.length; i++) start = ndjson.indexOf(LINE_FEED, start) + 1;
  return start;
}

const LINE_FEED = 10;
const PIECE_BYTES = 32 * 1024 * 1024;

/** A file in pieces of whole rows. */
async function* rowsOf(path: string): AsyncGenerator<Buffer> {
  let held: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(path, { highWaterMark: PIECE_BYTES }) as AsyncIterable<Buffer>) {
    const bytes = Buffer.concat([held, chunk]);
    const end = bytes.lastIndexOf(LINE_FEED) + 1;
    held = bytes.subarray(end);
    if (end > 0) yield bytes.subarray(0, end);
  }
  if (held.length > 0) yield held;
}

async function listExtents({ catalog, store }: Storage) {
  const { id: head } = await catalog.head();
  const files: Record<string, string[]> = {};
  let extents = 0;
  let sizeBytes = 0;
  for (const { name } of Object.values(TABLES)) {
    const table = await catalog.table("default", name);
    const found = await catalog.extents(table?.id ?? -1, head, {}, []);
    files[name] = found.map(({ key }) => store.localPath?.(key) ?? "");
    extents += found.length;
    sizeBytes += found.reduce((sum, extent) => sum + extent.sizeBytes, 0);
  }
  return { extents, sizeBytes, files };
}
