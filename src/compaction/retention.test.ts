import { afterEach, beforeEach, expect, test } from "vitest";
import { aFlush, anExtent } from "../catalog/contract-fixtures.test-kit.ts";
import type { NewExtent, TableRecord } from "../catalog/catalog.ts";
import { LeaseLost } from "../catalog/refusals.ts";
import { DEFAULT_SHAPE } from "../format/types.ts";
import { openDutyWorld, type DutyWorld } from "./duty.test-kit.ts";
import { COMPACTION_METRICS } from "./metrics.ts";
import { createRetention } from "./retention.ts";

const DAY_MS = 86_400_000;
const NS_PER_MS = 1_000_000n;

let world: DutyWorld;

beforeEach(async () => {
  world = await openDutyWorld();
});
afterEach(() => world.close());

async function aTable(name: string, retentionDays?: number): Promise<TableRecord> {
  const request = { database: "d", name, columns: DEFAULT_SHAPE };
  const { table } = await world.catalog.createTable(
    retentionDays === undefined ? request : { ...request, retentionDays },
  );
  return table;
}

/** An extent whose largest `at` is so many nanoseconds from now. */
function endingAt(offsetNs: bigint): NewExtent {
  const maxAtNs = BigInt(world.clock.nowMs()) * NS_PER_MS + offsetNs;
  return anExtent({ minAtNs: maxAtNs - 1_000n, maxAtNs, stats: [] });
}

async function commit(table: TableRecord, extents: readonly NewExtent[]): Promise<void> {
  await world.catalog.commit([aFlush(table, { extents })]);
}

async function sweep(): Promise<void> {
  await createRetention(world.ports)(await world.turn());
}

async function alive(table: TableRecord): Promise<string[]> {
  const { id } = await world.catalog.head();
  return (await world.catalog.extents(table.id, id, {}, [])).map((extent) => extent.id);
}

test("what is older than the limit goes, what is exactly as old stays", async () => {
  const kept = await aTable("kept");
  const bounded = await aTable("bounded", 7);
  const limitNs = BigInt(-7 * DAY_MS) * NS_PER_MS;
  const [older, exact, younger] = [endingAt(limitNs - 1n), endingAt(limitNs), endingAt(limitNs + 1n)];
  await commit(bounded, [older, exact, younger]);
  const ancient = endingAt(limitNs * 100n);
  await commit(kept, [ancient]);
  await sweep();
  expect(await alive(bounded)).toEqual([exact.id, younger.id]);
  expect(await alive(kept)).toEqual([ancient.id]);
  world.clock.advance(1);
  await sweep();
  expect(await alive(bounded)).toEqual([]);
  const head = await world.catalog.head();
  await sweep();
  expect(await world.catalog.head()).toEqual(head);
  // Soft only: what was there can be read at the snapshots before.
  expect(await world.catalog.extents(bounded.id, 1, {}, [])).toHaveLength(3);
});

test("rows dated into the future go by their arrival", async () => {
  const table = await aTable("t", 1);
  const future = endingAt(BigInt(1_000 * DAY_MS) * NS_PER_MS);
  await commit(table, [future]);
  world.clock.advance(DAY_MS);
  await sweep();
  expect(await alive(table)).toEqual([future.id]);
  world.clock.advance(1);
  await sweep();
  expect(await alive(table)).toEqual([]);
});

test("retention that is set, changed and lifted counts from then on", async () => {
  const table = await aTable("t");
  const extents = [1, 2, 3].map((days) => endingAt(BigInt(-days * DAY_MS - 1) * NS_PER_MS));
  await commit(table, extents);
  const ids = extents.map(({ id }) => id);
  await world.catalog.setRetention(table.id, 3);
  await sweep();
  expect(await alive(table)).toEqual(ids.slice(0, 2));
  await world.catalog.setRetention(table.id, undefined);
  await sweep();
  expect(await alive(table)).toEqual(ids.slice(0, 2));
  await world.catalog.setRetention(table.id, 1);
  await sweep();
  expect(await alive(table)).toEqual([]);
  expect((await COMPACTION_METRICS.of(world.metrics).retentionExtents.get()).values).toMatchObject([{ value: 3 }]);
});

test("many extents go in several snapshots, and a lost lease or a stop ends it in between", async () => {
  const table = await aTable("t", 1);
  await commit(
    table,
    Array.from({ length: 1_200 }, () => endingAt(BigInt(-2 * DAY_MS) * NS_PER_MS)),
  );
  const stop = new AbortController();
  const stopping = createRetention({
    ...world.ports,
    catalog: {
      ...bound(),
      endExtents: async (...args) => {
        stop.abort(new Error("stopped"));
        return await world.catalog.endExtents(...args);
      },
    },
  });
  await expect(stopping(await world.turn(stop.signal))).rejects.toThrow("stopped");
  expect(await alive(table)).toHaveLength(700);

  const lease = await world.lease("another");
  await world.catalog.releaseLease(lease);
  const { signal } = new AbortController();
  await expect(createRetention(world.ports)({ lease, signal })).rejects.toBeInstanceOf(LeaseLost);
  expect(await alive(table)).toHaveLength(700);

  await sweep();
  expect(await alive(table)).toEqual([]);
  expect((await world.catalog.head()).id).toBe(4);
});

test("what a merge replaces while retention looks is not undone: its successor goes", async () => {
  const table = await aTable("t", 1);
  const old = [-3, -2].map((days) => endingAt(BigInt(days * DAY_MS) * NS_PER_MS));
  await commit(table, old);
  const merged = anExtent({ rows: 20, stats: [], maxAtNs: old[1]?.maxAtNs ?? 0n, minAtNs: old[0]?.minAtNs ?? 0n });
  const inputs = old.map(({ id }) => id);
  const merge = { tableId: table.id, schemaVersion: 1, inputs, outputs: [merged] };
  let didMerge = false;
  const racing = createRetention({
    ...world.ports,
    catalog: {
      ...bound(),
      endExtents: async (...args) => {
        if (!didMerge) await world.catalog.mergeExtents(merge);
        didMerge = true;
        return await world.catalog.endExtents(...args);
      },
    },
  });
  await racing(await world.turn());
  expect(await alive(table)).toEqual([merged.id]);
  await sweep();
  expect(await alive(table)).toEqual([]);
  // The other way round the merge is refused, so nothing comes back.
  const output = anExtent({ rows: 10, stats: [] });
  const late = { ...merge, inputs: [merged.id], outputs: [{ ...output, rows: 20 }] };
  expect(await world.catalog.mergeExtents(late)).toBeUndefined();
  expect(await alive(table)).toEqual([]);
});

/** The catalog's calls that retention makes, to be replaced one by one. */
function bound() {
  const { catalog } = world;
  return {
    allTables: () => catalog.allTables(),
    nowMs: () => catalog.nowMs(),
    expiredExtents: (...args: Parameters<typeof catalog.expiredExtents>) => catalog.expiredExtents(...args),
  };
}
