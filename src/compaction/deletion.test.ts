import { afterEach, beforeEach, expect, test } from "vitest";
import { aFlush, anExtent } from "../catalog/contract-fixtures.test-kit.ts";
import type { ExtentRecord, NewExtent, TableRecord } from "../catalog/catalog.ts";
import { LeaseLost } from "../catalog/refusals.ts";
import { drawnSeed } from "../core/drawn-seed.test-kit.ts";
import { seededRandom } from "../core/random.ts";
import { DEFAULT_SHAPE } from "../format/types.ts";
import { createDeletion, type DeletionPorts } from "./deletion.ts";
import { openDutyWorld, storedExtent, type DutyWorld } from "./duty.test-kit.ts";
import { COMPACTION_METRICS } from "./metrics.ts";

const GRACE_MS = 60_000;
const SEED = drawnSeed();

let world: DutyWorld;

beforeEach(async () => {
  world = await openDutyWorld(undefined, seededRandom(SEED));
});
afterEach(() => world.close());

async function aTable(name = "t"): Promise<TableRecord> {
  return (await world.catalog.createTable({ database: "d", name, columns: DEFAULT_SHAPE })).table;
}

/** Commits so many extents with bytes. */
async function committed(table: TableRecord, count: number): Promise<NewExtent[]> {
  const extents: NewExtent[] = [];
  for (let i = 0; i < count; i++) extents.push(await storedExtent(world, { stats: [] }));
  await world.catalog.commit([aFlush(table, { extents })]);
  return extents;
}

async function end(table: TableRecord, extents: readonly NewExtent[]): Promise<void> {
  const ids = extents.map(({ id }) => id);
  await world.catalog.endExtents(table.id, ids);
}

async function run(ports: Partial<DeletionPorts> = {}, graceMs = GRACE_MS): Promise<void> {
  await createDeletion({ ...world.ports, ...ports }, { graceMs })(await world.turn());
}

function aRecord(table: TableRecord): ExtentRecord {
  return { ...anExtent(), tableId: table.id, schemaVersion: 1, beginSnapshot: 1 };
}

/** Which of the extents have bytes, and which have records. */
async function left(
  table: TableRecord,
  extents: readonly NewExtent[],
): Promise<{ bytes: string[]; records: string[] }> {
  const bytes: string[] = [];
  for (const { id, key } of extents) if ((await world.inner.head(key)) !== undefined) bytes.push(id);
  const { id: head } = await world.catalog.head();
  const alive = await world.catalog.extents(table.id, head, {}, []);
  const dead = await world.catalog.deadExtents(table.id, Number.MAX_SAFE_INTEGER);
  const records = new Set([...alive, ...dead].map(({ id }) => id));
  return { bytes, records: extents.map(({ id }) => id).filter((id) => records.has(id)) };
}

const both = (extents: readonly NewExtent[]) => {
  const ids = extents.map(({ id }) => id);
  return { bytes: ids, records: ids };
};

test("what was deleted a grace ago goes, and the snapshots that saw it become unreadable before", async () => {
  const table = await aTable();
  const extents = await committed(table, 3);
  await end(table, extents.slice(0, 1));
  world.clock.advance(1_000);
  await end(table, extents.slice(1, 2));
  world.clock.advance(GRACE_MS - 1_000 - 1);
  await run();
  expect(await left(table, extents)).toEqual(both(extents));
  expect((await world.catalog.oldestSnapshot()).id).toBe(0);

  world.clock.advance(1);
  await run();
  expect(await left(table, extents)).toEqual(both(extents.slice(1)));
  expect((await world.catalog.oldestSnapshot()).id).toBe(2);
  await expect(world.catalog.extents(table.id, 1)).rejects.toMatchObject({ code: "snapshot_expired" });
  expect((await world.catalog.extents(table.id, 2, {}, [])).map(({ id }) => id)).toEqual(both(extents.slice(1)).bytes);

  world.clock.advance(1_000);
  await run();
  expect(await left(table, extents)).toEqual(both(extents.slice(2)));
  await run();
  expect((await COMPACTION_METRICS.of(world.metrics).deletedExtents.get()).values).toMatchObject([{ value: 2 }]);
  expect((await COMPACTION_METRICS.of(world.metrics).deletedBytes.get()).values).toMatchObject([{ value: 2_000 }]);
});

test("snapshots that became unreadable are forgotten", async () => {
  const table = await aTable();
  for (let i = 0; i < 4; i++) await committed(table, 1);
  world.clock.advance(GRACE_MS);
  await committed(table, 1);
  const ids = async () => (await world.catalog.snapshots(100)).map(({ id }) => id);
  await world.catalog.holdSnapshots("node", 2, GRACE_MS);
  await run();
  expect(await ids()).toEqual([5, 4, 3, 2, 0]);
  await world.catalog.releaseSnapshots("node");
  await run();
  expect(await ids()).toEqual([5, 4, 0]);
});

test("what a reader holds stays until it is given back", async () => {
  const table = await aTable();
  const extents = await committed(table, 2);
  await end(table, extents.slice(0, 1));
  world.clock.advance(GRACE_MS * 2);
  await world.catalog.holdSnapshots("node", 1, GRACE_MS);
  await run();
  expect(await left(table, extents)).toEqual(both(extents));
  await world.catalog.releaseSnapshots("node");
  await run();
  expect(await left(table, extents)).toEqual(both(extents.slice(1)));
});

test("a crash between the bytes and the records is finished by the next run", async () => {
  const table = await aTable();
  const extents = await committed(table, 3);
  await end(table, extents.slice(0, 2));
  world.clock.advance(GRACE_MS);
  const { catalog } = world;
  const crashing: DeletionPorts["catalog"] = {
    allTables: () => catalog.allTables(),
    nowMs: () => catalog.nowMs(),
    snapshotAt: (ms) => catalog.snapshotAt(ms),
    expireSnapshots: (...args) => catalog.expireSnapshots(...args),
    sweepSnapshots: (limit) => catalog.sweepSnapshots(limit),
    oldestKeptSnapshot: (id) => catalog.oldestKeptSnapshot(id),
    deadExtents: (...args) => catalog.deadExtents(...args),
    droppedTables: () => catalog.droppedTables(),
    tableStats: (id) => catalog.tableStats(id),
    head: () => catalog.head(),
    extents: (...args) => catalog.extents(...args),
    endExtents: (...args) => catalog.endExtents(...args),
    forgetTable: (id) => catalog.forgetTable(id),
    forgetExtents: () => Promise.reject(new Error("the power went")),
  };
  await expect(run({ catalog: crashing })).rejects.toThrow("the power went");
  expect(await left(table, extents)).toEqual({ bytes: [extents[2]?.id], records: both(extents).records });
  await run();
  expect(await left(table, extents)).toEqual(both(extents.slice(2)));
});

test.each(["fail_before", "fail_after", "tear"] as const)(
  "a store that fails once (%s) is tried again",
  async (kind) => {
    const table = await aTable();
    const extents = await committed(table, 250);
    await end(table, extents.slice(1));
    world.clock.advance(GRACE_MS);
    world.store.script({ operation: "delete", skip: 1, fault: { kind } });
    await run();
    expect(await left(table, extents)).toEqual(both(extents.slice(0, 1)));
  },
);

test("an object that cannot be deleted keeps its record, and none of its neighbours", async () => {
  const [table, other] = [await aTable(), await aTable("other")];
  const [extents, others] = [await committed(table, 5), await committed(other, 1)];
  await end(table, extents);
  await end(other, others);
  world.clock.advance(GRACE_MS);
  const bad = extents[2]?.key ?? "";
  world.store.script({ operation: "delete", keyHolds: bad, times: 2, fault: { kind: "fail_before" } });
  await expect(run()).rejects.toThrow(/some tables: bytes of 1 extents could not be deleted: injected fault/);
  expect(await left(table, extents)).toEqual(both(extents.slice(2, 3)));
  expect(await left(other, others)).toEqual(both([]));
  await run();
  expect(await left(table, extents)).toEqual(both([]));
});

test("a store that is down is not asked for every object, and nothing is forgotten", async () => {
  const table = await aTable();
  const extents = await committed(table, 300);
  await end(table, extents);
  world.clock.advance(GRACE_MS);
  world.store.rates = { failBefore: 1 };
  await expect(run()).rejects.toThrow("bytes of 300 extents");
  expect(world.store.calls.delete).toBeLessThan(20);
  expect(await left(table, extents)).toEqual(both(extents));
  world.store.rates = {};
  await run();
  expect(await left(table, extents)).toEqual(both([]));
});

test("with faults of every kind it ends with nothing left and nothing lost, however often it is interrupted", async () => {
  const table = await aTable();
  const extents = await committed(table, 120);
  const kept = extents.slice(0, 20);
  await end(table, extents.slice(20, 70));
  await end(table, extents.slice(70));
  world.clock.advance(GRACE_MS);
  world.store.rates = { failBefore: 0.3, failAfter: 0.3, tear: 0.3 };
  const random = seededRandom(SEED + 1);
  for (let i = 0; i < 40; i++) {
    const stop = new AbortController();
    if (random.next() < 0.3) stop.abort(new Error("stopped"));
    await createDeletion(world.ports, { graceMs: GRACE_MS })(await world.turn(stop.signal)).catch(() => {});
    const { bytes, records } = await left(table, extents);
    // Bytes go first: whatever has bytes has a record.
    expect(records).toEqual(expect.arrayContaining(bytes));
    expect(bytes).toEqual(expect.arrayContaining(kept.map(({ id }) => id)));
  }
  world.store.rates = {};
  await run();
  expect(await left(table, extents)).toEqual(both(kept));
});

test("a lost lease ends it before anything becomes unreadable or is forgotten", async () => {
  const table = await aTable();
  const extents = await committed(table, 2);
  await end(table, extents);
  world.clock.advance(GRACE_MS);
  const lease = await world.lease("another");
  await world.catalog.releaseLease(lease);
  const { signal } = new AbortController();
  const duty = createDeletion(world.ports, { graceMs: GRACE_MS });
  await expect(duty({ lease, signal })).rejects.toBeInstanceOf(LeaseLost);
  expect((await world.catalog.oldestSnapshot()).id).toBe(0);
  await run();
  expect(await left(table, extents)).toEqual(both([]));
});

test("a dropped table goes a grace later, bytes first, and is forgotten when nobody can come with a flush for it", async () => {
  const table = await aTable();
  const extents = await committed(table, 2);
  await world.catalog.dropTable(table.id);
  const again = await aTable();
  const kept = await committed(again, 1);
  world.clock.advance(GRACE_MS - 1);
  await run();
  expect(await left(table, extents)).toEqual(both(extents));
  world.clock.advance(1);
  await run();
  expect(await left(table, extents)).toEqual({ bytes: [], records: [] });
  expect(await world.catalog.droppedTables()).toHaveLength(1);
  world.clock.advance(86_400_000 - GRACE_MS);
  await run();
  expect(await world.catalog.droppedTables()).toEqual([]);
  expect(await left(again, kept)).toEqual(both(kept));
});

test("what came to a table after its drop, from a node that did not know, goes as well", async () => {
  const table = await aTable();
  const extents = await committed(table, 1);
  await world.catalog.dropTable(table.id);
  let asked = 0;
  const { catalog } = world;
  const calls: Partial<DeletionPorts["catalog"]> = {
    tableStats: () => Promise.resolve({ rows: 1, extents: 1, sizeBytes: 1 }),
    extents: () => Promise.resolve([{ ...aRecord(table), id: "late" }]),
    endExtents: (tableId, ids) => {
      if (tableId === table.id && ids[0] === "late") asked++;
      return Promise.resolve([]);
    },
  };
  const late = new Proxy(catalog, {
    get: (target, name) =>
      Reflect.get(calls, name) ??
      ((...args: unknown[]) => (Reflect.get(target, name) as (...of: unknown[]) => unknown).apply(target, args)),
  });
  world.clock.advance(GRACE_MS);
  await run({ catalog: late });
  expect(asked).toBe(1);
  expect((await left(table, extents)).bytes).toEqual([]);
});

test("a deletion's report says when the last bytes went, those that merges had replaced before included", async () => {
  const table = await aTable();
  const [merged, ended, other] = (await committed(table, 3)) as [NewExtent, NewExtent, NewExtent];
  const of = { tableId: table.id, schemaVersion: 1 };
  const output = await storedExtent(world, { stats: [] });
  await world.catalog.mergeExtents({ ...of, inputs: [merged.id], outputs: [output] });
  world.clock.advance(1_000);
  const { reports } = world.ports;
  const report = (id: string) => ({
    id,
    tableId: table.id,
    database: "d",
    table: "t",
    where: "true",
    deletedBy: "somebody",
    rows: 10,
    extentsEnded: 1,
    extentsRewritten: 0,
  });
  const groups = [{ inputs: [ended.id], outputs: [] }];
  await world.catalog.deleteRows({ ...of, groups, rows: 10, also: [reports.statement(report("first"))] });
  const committedAtMs = world.clock.nowMs();
  expect(await reports.find("first")).toEqual({ ...report("first"), snapshotId: 3, committedAtMs });
  world.clock.advance(GRACE_MS - 1_000);
  await run();
  // The merge's input is gone, the deletion's not yet.
  expect((await left(table, [merged, ended])).bytes).toEqual([ended.id]);
  expect((await reports.find("first"))?.bytesGoneAtMs).toBeUndefined();
  await end(table, [other]);
  world.clock.advance(1_000);
  await run();
  expect((await left(table, [merged, ended, other])).bytes).toEqual([other.id]);
  expect((await reports.find("first"))?.bytesGoneAtMs).toBe(world.clock.nowMs());
  // It stays as it was said first, also when the table is dropped.
  const goneAtMs = world.clock.nowMs();
  await world.catalog.deleteRows({ ...of, groups: [], rows: 0, also: [reports.statement(report("second"))] });
  await world.catalog.dropTable(table.id);
  world.clock.advance(GRACE_MS);
  await run();
  expect((await reports.find("first"))?.bytesGoneAtMs).toBe(goneAtMs);
  expect((await reports.find("second"))?.bytesGoneAtMs).toBe(world.clock.nowMs());
  expect((await reports.list({ limit: 9, databases: undefined })).map(({ id }) => id)).toEqual(["second", "first"]);
  expect(await reports.list({ limit: 9, before: "second", databases: ["d"] })).toHaveLength(1);
  expect(await reports.list({ limit: 9, databases: ["e"] })).toEqual([]);
  expect(await reports.list({ limit: 9, databases: [] })).toEqual([]);
});
