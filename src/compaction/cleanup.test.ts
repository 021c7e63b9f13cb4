import { afterEach, beforeEach, expect, test } from "vitest";
import { aFlush } from "../catalog/contract-fixtures.test-kit.ts";
import type { NewExtent, TableRecord } from "../catalog/catalog.ts";
import { DEFAULT_SHAPE } from "../format/types.ts";
import { cleanup } from "./cleanup.ts";
import { createDeletion } from "./deletion.ts";
import { openDutyWorld, storedExtent, type DutyWorld } from "./duty.test-kit.ts";
import { COMPACTION_METRICS } from "./metrics.ts";

let world: DutyWorld;
let table: TableRecord;
let extents: NewExtent[];
/** When each of the extents but the last was soft-deleted, a second apart, with the snapshots 2, 3 and 4. */
let diedAtMs: number[];

beforeEach(async () => {
  world = await openDutyWorld();
  ({ table } = await world.catalog.createTable({ database: "d", name: "t", columns: DEFAULT_SHAPE }));
  extents = [];
  for (let i = 0; i < 4; i++) extents.push(await storedExtent(world, { rows: 3, sizeBytes: 10, stats: [] }));
  await world.catalog.commit([aFlush(table, { extents })]);
  diedAtMs = [];
  for (const { id } of extents.slice(0, -1)) {
    world.clock.advance(1_000);
    await world.catalog.endExtents(table.id, [id]);
    diedAtMs.push(world.clock.nowMs());
  }
});
afterEach(() => world.close());

const freed = (count: number) => ({ extents: count, rows: 3 * count, sizeBytes: 10 * count });
const run = (beforeMs: number) => cleanup(world.ports, table.id, beforeMs);
const at = (i: number): number => diedAtMs[i] ?? Number.NaN;

async function stored(): Promise<number[]> {
  const found = await Promise.all(extents.map(({ key }) => world.inner.head(key)));
  return found.flatMap((info, i) => (info === undefined ? [] : [i]));
}

test("frees what died strictly before the time, once, and makes only what it must unreadable", async () => {
  expect(await run(at(0))).toEqual(freed(0));
  expect((await world.catalog.oldestSnapshot(table.id)).id).toBe(0);
  expect(await run(at(0) + 1)).toEqual(freed(1));
  expect(await run(at(0) + 1)).toEqual(freed(0));
  expect(await stored()).toEqual([1, 2, 3]);
  // Long before any grace, for this table, and for no other.
  expect((await world.catalog.oldestSnapshot(table.id)).id).toBe(2);
  expect((await world.catalog.oldestSnapshot()).id).toBe(0);
  await expect(world.catalog.extents(table.id, 1)).rejects.toMatchObject({ code: "snapshot_expired" });
  expect(await world.catalog.extents(table.id, 2)).toHaveLength(3);
  expect(await run(Number.MAX_SAFE_INTEGER)).toEqual(freed(2));
  expect(await stored()).toEqual([3]);
});

test("leaves what a reader holds", async () => {
  await world.catalog.holdSnapshots("node", 2, 60_000);
  expect(await run(Number.MAX_SAFE_INTEGER)).toEqual(freed(1));
  expect(await stored()).toEqual([1, 2, 3]);
  expect(await world.catalog.extents(table.id, 2)).toHaveLength(3);
  await world.catalog.releaseSnapshots("node");
  expect(await run(Number.MAX_SAFE_INTEGER)).toEqual(freed(2));
});

test("a store that fails leaves the records, so that the next run finds them again", async () => {
  world.store.script({ operation: "delete", times: 4, fault: { kind: "fail_after" } });
  await expect(run(at(1) + 1)).rejects.toThrow("bytes of 2 extents could not be deleted: injected fault");
  expect(await run(at(1) + 1)).toEqual(freed(2));
  expect(await stored()).toEqual([2, 3]);
});

test("several at a time, and the deletion in the background, count each extent once", async () => {
  const deletion = createDeletion(world.ports, { graceMs: 0 });
  const results = await Promise.all([
    ...Array.from({ length: 5 }, () => run(Number.MAX_SAFE_INTEGER)),
    deletion(await world.turn()).then(() => undefined),
  ]);
  const inBackground = (await COMPACTION_METRICS.of(world.metrics).deletedExtents.get()).values[0]?.value ?? 0;
  expect(results.reduce((sum, result) => sum + (result?.extents ?? 0), inBackground)).toBe(3);
  expect(await stored()).toEqual([3]);
});
