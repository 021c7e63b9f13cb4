import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BACKUP } from "../../src/backup/job.ts";
import type { CatalogDatabase } from "../../src/catalog/catalog-database.ts";
import { MIGRATIONS } from "../../src/catalog/migrations.test-kit.ts";
import { openTestCatalog, sharedTestServer, type TestDatabases } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { withEmptyPostgres } from "../../src/catalog/postgres/transfer-load.ts";
import { loadSqlite, withEmptySqlite } from "../../src/catalog/sqlite/transfer-load.ts";
import { dumpOf, openIn, type Dump } from "../../src/catalog/transfer/transfer.test-kit.ts";
import { systemClock } from "../../src/core/clock.ts";
import { lacks } from "../../src/core/gates.test-kit.ts";
import { uuidV7Source } from "../../src/core/ids.ts";
import { silentLog } from "../../src/core/log.ts";
import { systemRandom } from "../../src/core/random.ts";
import { Fabric } from "../../src/fabric/fabric.ts";
import { holdOf, type Hold } from "../../src/fabric/job.ts";
import { JobKinds } from "../../src/fabric/kinds.ts";
import { ANN, controlPlaneOn, LeasedBox, ROOT } from "../../src/sandbox/control/scheduler/scheduler.test-kit.ts";

/** What `docs/backup.md` says becomes of duties, jobs and sandboxes that were under way when the backup was made. */

const TASK = "x.task";
const NODE = "node-1";
const LEASE_MS = 600_000;

function fabricOn({ records, signals }: CatalogDatabase): Fabric {
  const newId = uuidV7Source(systemClock, systemRandom);
  const kinds = new JobKinds([BACKUP]);
  const ports = { records, signals, kinds, clock: systemClock, random: systemRandom, newId, log: silentLog };
  return new Fabric({ ...ports, leaseMs: LEASE_MS });
}

async function claim(fabric: Fabric, kind: string, max: number): Promise<Hold[]> {
  const claimed = { kinds: new Set([kind]), holder: "worker", workerId: "worker", labels: {}, max, waitMs: 0 };
  return (await fabric.claim({ ...claimed, jobsOf: "everybody" })).map(holdOf);
}

/** A catalog with a duty, jobs and sandboxes under way; and how it looks to a backup. */
async function makeBusyCatalog(folder: string) {
  const catalog = await openIn(folder);
  const fabric = fabricOn(catalog);
  const add = async (kind: string, more: { maxAttempts?: number } = {}): Promise<string> => {
    const payload = kind === TASK ? {} : { destination: "/backups" };
    return (await fabric.enqueue({ kind, payload, ...more }, ROOT)).job.id;
  };
  const ids = {
    again: await add(TASK, { maxAttempts: 2 }),
    last: await add(TASK, { maxAttempts: 1 }),
    unwanted: await add(TASK),
    backup: await add(BACKUP.name),
    waiting: "",
    waitingBackup: "",
  };
  const holds = await claim(fabric, TASK, 3);
  await claim(fabric, BACKUP.name, 1);
  await fabric.cancel(ids.unwanted);
  ids.waiting = await add(TASK);
  ids.waitingBackup = await add(BACKUP.name);
  const lease = await catalog.acquireLease("compaction", "me", LEASE_MS);

  const plane = controlPlaneOn({ catalog, clock: systemClock });
  await plane.report(NODE);
  const sandboxes = { ephemeral: "", persistent: "" };
  const boxes: Hold[] = [];
  for (const persistence of ["ephemeral", "persistent"] as const) {
    sandboxes[persistence] = (await plane.create({ persistence })).id;
    for (const hold of await plane.claim(NODE, 1)) {
      const box = new LeasedBox(plane, hold);
      await box.desiredState();
      await box.say("creating");
      await box.say("running");
      boxes.push(hold);
    }
  }
  const dump = await dumpOf(catalog);
  plane.fabric.close();
  fabric.close();
  await catalog.close();
  return { dump, ids, holds, fence: lease?.fence ?? 0, sandboxes, boxes };
}

let folder: string;
let busy: Awaited<ReturnType<typeof makeBusyCatalog>>;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-settle-"));
  await mkdir(join(folder, "busy"));
  busy = await makeBusyCatalog(join(folder, "busy"));
});
afterAll(() => rm(folder, { recursive: true }));

async function checkSettled(catalog: CatalogDatabase): Promise<void> {
  const { ids, holds, fence, sandboxes, boxes } = busy;
  const next = await catalog.acquireLease("compaction", "other", LEASE_MS);
  expect(next?.fence).toBeGreaterThan(fence);

  const fabric = fabricOn(catalog);
  const states: Record<string, unknown> = {};
  for (const [name, id] of Object.entries(ids)) states[name] = (await fabric.find(id, ROOT))?.status;
  expect(states).toEqual({
    again: "queued",
    last: "failed",
    unwanted: "cancelled",
    backup: "cancelled",
    waiting: "queued",
    waitingBackup: "cancelled",
  });
  expect((await fabric.find(ids.last, ROOT))?.error).toBe("the catalog was restored from a backup");
  // The holders of before do not come through, and the next one is not taken for them.
  for (const hold of holds) await expect(fabric.extend(hold, LEASE_MS)).rejects.toMatchObject({ code: "lease_lost" });
  const again = (await claim(fabric, TASK, 5)).find(({ jobId }) => jobId === ids.again);
  expect(again?.fence).toBeGreaterThan(holds.find(({ jobId }) => jobId === ids.again)?.fence ?? Infinity);
  expect(await claim(fabric, BACKUP.name, 5)).toEqual([]);
  fabric.close();

  const plane = controlPlaneOn({ catalog, clock: systemClock });
  expect(boxes).toHaveLength(2);
  for (const hold of boxes) {
    await expect(new LeasedBox(plane, hold).say("stopped")).rejects.toMatchObject({ code: "lease_lost" });
  }
  expect(await plane.sandboxes.settle()).toBe(2);
  const lost = "its node was lost: the catalog was restored from a backup";
  expect(await plane.sandboxes.get(sandboxes.ephemeral, ANN)).toMatchObject({ state: "failed", reason: lost });
  const waits = { state: "pending", wanted: "running", nodeId: NODE };
  expect(await plane.sandboxes.get(sandboxes.persistent, ANN)).toMatchObject(waits);
  plane.fabric.close();
}

test("on SQLite", async () => {
  const into = join(folder, "restored");
  const load = (source: Dump): Promise<void> =>
    withEmptySqlite(join(into, "catalog.db"), (path) =>
      loadSqlite(path, { source, migrations: MIGRATIONS, clock: systemClock }),
    );
  await load(busy.dump);
  const catalog = await openIn(into);
  await checkSettled(catalog);
  await catalog.close();
});

describe.skipIf(lacks("PostgreSQL"))("on PostgreSQL", () => {
  let server: TestDatabases;
  beforeAll(async () => {
    server = await sharedTestServer();
  });
  afterAll(() => server.stop());

  test("the same", async () => {
    const url = await server.createDatabase();
    const options = { source: busy.dump, migrations: MIGRATIONS, clock: systemClock };
    await withEmptyPostgres({ url, clock: systemClock }, (load) => load(options));
    const catalog = await openTestCatalog(url);
    await checkSettled(catalog);
    await catalog.close();
  });
});
