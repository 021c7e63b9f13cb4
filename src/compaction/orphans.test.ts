import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { aFlush, anExtent } from "../catalog/contract-fixtures.test-kit.ts";
import type { NewExtent, TableRecord } from "../catalog/catalog.ts";
import { ExtentPendingDeletion } from "../catalog/refusals.ts";
import { DEFAULT_SHAPE } from "../format/types.ts";
import { openDutyWorld, storedExtent, type DutyWorld } from "./duty.test-kit.ts";
import { COMPACTION_METRICS } from "./metrics.ts";
import { createOrphanSweep } from "./orphans.ts";

const DAY_MS = 86_400_000;

let world: DutyWorld;
let table: TableRecord;

let machineMs: number;

beforeAll(async () => {
  machineMs = (await machineTime()).modifiedAtMs;
});
beforeEach(async () => {
  // The store is on disk, and its clock the machine's.
  world = await openDutyWorld(machineMs);
  ({ table } = await world.catalog.createTable({ database: "default", name: "events", columns: DEFAULT_SHAPE }));
});
afterEach(() => world.close());

async function machineTime(): Promise<{ modifiedAtMs: number }> {
  const probe = await openDutyWorld();
  await probe.inner.put("now", new Uint8Array(1));
  const info = await probe.inner.head("now");
  await probe.close();
  if (info === undefined) throw new Error("the store lost its object");
  return info;
}

async function sweep(signal?: AbortSignal): Promise<void> {
  await createOrphanSweep(world.ports, { keyPrefix: "engine" })(await world.turn(signal));
}

async function isStored({ key }: Pick<NewExtent, "key">): Promise<boolean> {
  return (await world.inner.head(key)) !== undefined;
}

const commit = (...extents: NewExtent[]) => world.catalog.commit([aFlush(table, { extents })]);

test("deletes old objects that no extent has, and nothing else", async () => {
  const [alive, dead, lost] = [await storedExtent(world), await storedExtent(world), await storedExtent(world)];
  await commit(alive, dead);
  await world.catalog.endExtents(table.id, [dead.id]);
  const id = lost.id.replace(/^0190/, "0191");
  const parquet = { key: `engine/default/events/2026-01-01/${id}.parquet` };
  const others = [
    `engine/_staged/node/${id}`,
    `engine/_staged/events/2026-01-01/${id}.tlm`,
    `engine/_check/events/2026-01-01/${id}.tlm`,
    `engine/_exports/default/${id}/1.parquet`,
    `engine/_exports/events/2026-01-01/${id}.parquet`,
    `engine/default/events/2026-01-01/${id}.txt`,
    `engine/default/events/2026-01-01/no-id.tlm`,
    `engine/default/events/2026-01-01/more/${id}.tlm`,
    `engine/default/_events/2026-01-01/${id}.tlm`,
    `engine/default/events/${id}.tlm`,
    `engineer/default/events/2026-01-01/${id}.tlm`,
    `other/default/events/2026-01-01/${id}.tlm`,
  ].map((key) => ({ key }));
  for (const { key } of [parquet, ...others]) await world.inner.put(key, new Uint8Array(1));

  world.clock.advance(2 * DAY_MS - 60_000);
  await sweep();
  expect(await Promise.all([lost, parquet].map(isStored))).toEqual([true, true]);
  expect(await world.catalog.commit([aFlush(table)])).toMatchObject([{ kind: "committed" }]);

  world.clock.advance(120_000);
  await sweep();
  expect(await Promise.all([lost, parquet].map(isStored))).toEqual([false, false]);
  expect(await Promise.all([alive, dead, ...others].map(isStored))).toEqual(
    Array.from({ length: others.length + 2 }, () => true),
  );
  expect((await COMPACTION_METRICS.of(world.metrics).orphansDeleted.get()).values).toMatchObject([{ value: 2 }]);
});

/** An id as it is made at the time. */
function idAt(ms: number): string {
  const hex = ms.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000001`;
}

test("what is pending deletion stays so for months, and where an id is older than it can be, until the next run", async () => {
  const old = await storedExtent(world, { id: idAt(machineMs - 1_000 * DAY_MS) });
  const lost = await storedExtent(world, { id: idAt(machineMs) });
  world.clock.advance(3 * DAY_MS);
  await sweep();
  expect(await Promise.all([old, lost].map(isStored))).toEqual([false, false]);
  await expect(commit(old)).rejects.toBeInstanceOf(ExtentPendingDeletion);
  await sweep();
  expect(await commit(old)).toMatchObject([{ kind: "committed" }]);
  world.clock.advance(87 * DAY_MS);
  await sweep();
  await expect(commit(lost)).rejects.toBeInstanceOf(ExtentPendingDeletion);
  world.clock.advance(1);
  await sweep();
  expect(await commit(lost)).toMatchObject([{ kind: "committed" }]);
});

test("an id from the time to come is no orphan, whatever the store says of its object", async () => {
  world.clock.advance(10 * DAY_MS);
  const young = await storedExtent(world, { id: idAt(world.clock.nowMs() - DAY_MS) });
  await sweep();
  expect(await isStored(young)).toBe(true);
  world.clock.advance(2 * DAY_MS);
  await sweep();
  expect(await isStored(young)).toBe(false);
});

test("an upload that commits after its id was marked is refused; one that came before is safe", async () => {
  const [late, early] = [await storedExtent(world), await storedExtent(world)];
  world.clock.advance(3 * DAY_MS);
  const { catalog } = world;
  // The commit of one comes between the listing and the question, that of the other after it.
  const racing = createOrphanSweep(
    {
      ...world.ports,
      catalog: {
        nowMs: () => catalog.nowMs(),
        sweepPendingDeletions: (...args) => catalog.sweepPendingDeletions(...args),
        markPendingDeletion: async (ids) => {
          await commit(early);
          const marked = await catalog.markPendingDeletion(ids);
          await expect(commit(late)).rejects.toBeInstanceOf(ExtentPendingDeletion);
          return marked;
        },
      },
    },
    { keyPrefix: "engine" },
  );
  await racing(await world.turn());
  expect([await isStored(late), await isStored(early)]).toEqual([false, true]);
  await expect(commit(late)).rejects.toBeInstanceOf(ExtentPendingDeletion);
  expect(await catalog.tableStats(table.id)).toMatchObject({ extents: 1 });
});

test.each(["fail_before", "fail_after", "tear"] as const)(
  "a sweep that the store interrupts (%s) is finished by the next",
  async (kind) => {
    const lost = [await storedExtent(world), await storedExtent(world), await storedExtent(world)];
    world.clock.advance(3 * DAY_MS);
    world.store.script({ operation: "delete", fault: { kind } });
    await expect(sweep()).rejects.toThrow("injected fault");
    // They are marked, whether their bytes are there or not.
    for (const extent of lost) await expect(commit(extent)).rejects.toBeInstanceOf(ExtentPendingDeletion);
    await sweep();
    expect(await Promise.all(lost.map(isStored))).toEqual([false, false, false]);
  },
);

test("goes through more objects than fit one question, and stops when told", async () => {
  const lost = Array.from({ length: 1_100 }, () => anExtent());
  await Promise.all(lost.map(({ key }) => world.inner.put(key, new Uint8Array(1))));
  world.clock.advance(3 * DAY_MS);
  const stopped = AbortSignal.abort(new Error("stopped"));
  await expect(sweep(stopped)).rejects.toThrow("stopped");
  expect(world.store.calls.delete).toBe(0);
  await sweep();
  expect((await Promise.all(lost.map(isStored))).filter(Boolean)).toEqual([]);
  expect(world.store.calls.delete).toBe(2);
});
