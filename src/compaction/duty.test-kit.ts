import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anExtent } from "../catalog/contract-fixtures.test-kit.ts";
import type { Catalog, Lease, NewExtent } from "../catalog/catalog.ts";
import { openMemoryCatalog } from "../catalog/sqlite/memory.test-kit.ts";
import { ManualClock, systemClock } from "../core/clock.ts";
import { silentLog } from "../core/log.ts";
import { createMetrics, type Metrics } from "../core/metrics.ts";
import { seededRandom, systemRandom } from "../core/random.ts";
import { FaultyStore } from "../io/objectstore/faulty.test-kit.ts";
import { openFilesystemStore } from "../io/objectstore/filesystem.ts";
import type { ObjectStore } from "../io/objectstore/objectstore.ts";
import { DeletionReports } from "./deletion-reports.ts";
import type { DutyTurn } from "../feature/lease-loop.ts";

/** A catalog and a store on disk, for duties that are run by hand. */
export type DutyWorld = {
  /** The time of the catalog. */
  clock: ManualClock;
  catalog: Catalog;
  /** Fails as it is told. */
  store: FaultyStore;
  /** The same, which never fails. */
  inner: ObjectStore;
  metrics: Metrics;
  ports: {
    catalog: Catalog;
    store: ObjectStore;
    metrics: Metrics;
    log: typeof silentLog;
    reports: DeletionReports;
  };
  /** Takes the lease of that name for an hour. */
  lease(name?: string): Promise<Lease>;
  /** A turn with a lease of its own. */
  turn(signal?: AbortSignal): Promise<DutyTurn>;
  close(): Promise<void>;
};

/** Much longer than a test's clock moves. */
const LEASE_TTL_MS = 400 * 86_400_000;

export async function openDutyWorld(startMs?: number, random = seededRandom(1)): Promise<DutyWorld> {
  const folder = mkdtempSync(join(tmpdir(), "engine-duty-"));
  const clock = new ManualClock(startMs);
  const { catalog } = openMemoryCatalog(clock);
  const inner = await openFilesystemStore({ root: join(folder, "data"), random: systemRandom, log: silentLog });
  const store = new FaultyStore({ inner, clock: systemClock, random });
  const metrics = createMetrics();
  const lease = async (name = "duty") => {
    const taken = await catalog.acquireLease(name, "this test", LEASE_TTL_MS);
    if (taken === undefined) throw new Error(`the lease ${name} is not free`);
    return taken;
  };
  return {
    clock,
    catalog,
    store,
    inner,
    metrics,
    ports: { catalog, store, metrics, log: silentLog, reports: new DeletionReports(catalog.records) },
    lease,
    turn: async (signal = new AbortController().signal) => ({ lease: await lease(), signal }),
    async close() {
      await catalog.verify();
      await catalog.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** An extent whose bytes lie in the store. */
export async function storedExtent(world: DutyWorld, overrides: Partial<NewExtent> = {}): Promise<NewExtent> {
  const extent = anExtent(overrides);
  await world.inner.put(extent.key, new Uint8Array(10));
  return extent;
}
