import type { Catalog } from "../../src/catalog/catalog.ts";
import { MIGRATIONS } from "../../src/catalog/migrations.test-kit.ts";
import { openPostgresCatalog } from "../../src/catalog/postgres/postgres.ts";
import { createCompactor } from "../../src/compaction/compactor.ts";
import { COMPACTION_METRICS } from "../../src/compaction/metrics.ts";
import type { Duty } from "../../src/feature/lease-loop.ts";
import { systemClock } from "../../src/core/clock.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { createLog } from "../../src/core/log.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import { systemRandom } from "../../src/core/random.ts";
import { openS3Store } from "../../src/io/objectstore/s3/s3.ts";
import { withStorage, type Storage } from "../query/seed.ts";
import type { FromSettler, SettleJob, SettlePlace, ToSettler } from "./settle.ts";

/** The settling process: see `settle.ts`. */

/** Longer than any day is left to become quiet. */
const AHEAD_MS = 10 * 365 * 86_400_000;
const LEASE_MS = 3_600_000;
const log = createLog("error");
const metrics = createMetrics();
const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + AHEAD_MS };
/** As the role `compaction` has them by default. */
const OPTIONS = { keyPrefix: "engine", minExtents: 24, restMs: 0, memoryBytes: 512 * 1024 * 1024, threads: 1 };

const wanted = Promise.withResolvers<void>();

async function serve({ place, tempDir, table }: SettleJob): Promise<void> {
  await withPlace(place, async ({ catalog, store }) => {
    // Not the name of the servers' own duty: theirs may be held, and finds nothing to do.
    const lease = await catalog.acquireLease("settle", "bench", LEASE_MS);
    if (lease === undefined) throw new Error("somebody else settles already");
    const ports = { catalog, store, clock, newId: uuidV7Source(systemClock, systemRandom), log, metrics };
    const compact: Duty = createCompactor({ ...ports, isBusy: () => false }, { ...OPTIONS, tempDir, cpuShare: 1 });
    await tell({ kind: "open" });
    await wanted.promise;
    await compact({ lease, signal: new AbortController().signal });
    const { values } = await COMPACTION_METRICS.of(metrics).compactionOutputBytes.get();
    const writtenBytes = values.reduce((sum, { value }) => sum + value, 0);
    await tell({ kind: "done", sizeBytes: await settledBytes(catalog, table), writtenBytes });
    await catalog.releaseLease(lease);
  });
}

/** Bytes of the table's live extents, all of which must be Parquet. */
async function settledBytes(catalog: Catalog, name: string): Promise<number> {
  const table = await catalog.table("default", name);
  if (table === undefined) throw new Error(`there is no table ${name}`);
  const extents = await catalog.extents(table.id, (await catalog.head()).id, {}, []);
  const left = extents.filter(({ format }) => format !== "parquet");
  if (left.length > 0) throw new Error(`${left.length} extents of ${name} are not Parquet`);
  return extents.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

async function withPlace(place: SettlePlace, task: (storage: Storage) => Promise<void>): Promise<void> {
  if (place.kind === "home") return withStorage(place.home, task);
  const catalog = await openPostgresCatalog({
    url: place.catalogUrl,
    clock: systemClock,
    random: systemRandom,
    migrations: MIGRATIONS,
    mode: "admin",
    maxConnections: 4,
    acquireTimeoutMs: 10_000,
  });
  const store = openS3Store({ ...place.store, clock: systemClock, random: systemRandom, log, metrics });
  try {
    await task({ catalog, store });
  } finally {
    store.close();
    await catalog.close();
  }
}

/** Resolves when the message is on its way. */
function tell(message: FromSettler): Promise<void> {
  return new Promise((resolve) => process.send?.(message, () => resolve()));
}

process.on("message", (message: ToSettler) => {
  if (message.kind === "run") {
    wanted.resolve();
    return;
  }
  serve(message).catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
});
