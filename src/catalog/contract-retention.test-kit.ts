import { expect, it } from "vitest";
import type { NewExtent, TableRecord } from "./catalog.ts";
import { aFlush, anExtent, failureOf, type Subject } from "./contract-fixtures.test-kit.ts";

export function retentionContract({ catalog, clock, table }: Subject): void {
  const MS = 1_000_000n;

  /** An extent whose largest `at` lies so many nanoseconds from now. */
  const endingAt = (offsetNs: bigint) => {
    const maxAtNs = BigInt(clock().nowMs()) * MS + offsetNs;
    return anExtent({ minAtNs: maxAtNs - 1_000n * MS, maxAtNs });
  };
  const commit = async (events: TableRecord, extents: readonly NewExtent[]) =>
    await catalog().commit([aFlush(events, { extents })]);
  const expired = async (tableId: number, beforeMs: number, limit = 100) =>
    (await catalog().expiredExtents(tableId, beforeMs, limit)).map(({ id }) => id);

  it("is set, changed and lifted, and seen by everybody", async () => {
    const events = await table();
    const generation = await catalog().schemaGeneration();
    expect(await catalog().setRetention(events.id, 30)).toEqual({ ...events, retentionDays: 30 });
    expect(await catalog().schemaGeneration()).not.toBe(generation);
    expect(await catalog().table("default", "events")).toEqual({ ...events, retentionDays: 30 });
    expect(await catalog().setRetention(events.id, undefined)).toEqual(events);
    expect(await catalog().table("default", "events")).toEqual(events);
    for (const days of [0, -1, 1.5, Number.NaN, 1e9]) {
      expect(await failureOf(catalog().setRetention(events.id, days))).toBe("invalid_parameter");
    }
    expect(await failureOf(catalog().setRetention(4711, 1))).toBe("table_not_found");
  });

  it("comes beside how soon rows are published for other programs", async () => {
    const events = await table();
    expect(events).not.toHaveProperty("openLagSecs");
    const generation = await catalog().schemaGeneration();
    expect(await catalog().setOpenLag(events.id, 300)).toEqual({ ...events, openLagSecs: 300 });
    expect(await catalog().schemaGeneration()).not.toBe(generation);
    expect(await catalog().table("default", "events")).toEqual({ ...events, openLagSecs: 300 });
    // Its own pace is another thing than the server's bound.
    expect(await catalog().setOpenLag(events.id, 0)).toEqual({ ...events, openLagSecs: 0 });
    expect(await catalog().setOpenLag(events.id, undefined)).toEqual(events);
    const request = { database: "default", name: "early", columns: [], openLagSecs: 60 };
    const { table: early } = await catalog().createTable(request);
    expect(early.openLagSecs).toBe(60);
    expect(await catalog().allTables()).toEqual([events, early]);
    for (const openLagSecs of [-1, 1.5, Number.NaN, 86_401]) {
      expect(await failureOf(catalog().setOpenLag(events.id, openLagSecs))).toBe("invalid_parameter");
      const creating = catalog().createTable({ database: "d", name: "t", columns: [], openLagSecs });
      expect(await failureOf(creating)).toBe("invalid_parameter");
    }
    expect(await failureOf(catalog().setOpenLag(4711, 1))).toBe("table_not_found");
  });

  it("lists all tables of all databases by id", async () => {
    expect(await catalog().allTables()).toEqual([]);
    const { table: first } = await catalog().createTable({ database: "z", name: "t", columns: [], retentionDays: 3 });
    const events = await table();
    await catalog().createDatabase("empty");
    expect(await catalog().allTables()).toEqual([first, events]);
  });

  it("finds extents without a row as new as the time, the oldest first", async () => {
    const events = await table();
    const [late, early, edge] = [endingAt(-1n), endingAt(-5_000n * MS), endingAt(0n)];
    await commit(events, [late, edge, early]);
    const nowMs = clock().nowMs();
    expect(await expired(events.id, nowMs)).toEqual([early.id, late.id]);
    expect(await expired(events.id, nowMs, 1)).toEqual([early.id]);
    expect(await expired(events.id, nowMs + 1)).toEqual([early.id, late.id, edge.id]);
    expect(await expired(events.id, nowMs - 5_000)).toEqual([]);
    expect(await expired(events.id, nowMs - 4_999)).toEqual([early.id]);
    expect(await expired(events.id + 1, nowMs + 1)).toEqual([]);
    await catalog().endExtents(events.id, [early.id]);
    expect(await expired(events.id, nowMs)).toEqual([late.id]);
    const [found] = await catalog().expiredExtents(events.id, nowMs, 1);
    expect(found).toMatchObject({ id: late.id, tableId: events.id, beginSnapshot: 1, rows: 10 });
    expect(found).not.toHaveProperty("stats");
  });

  it("takes rows dated into the future by their arrival", async () => {
    const events = await table();
    const future = endingAt(10_000_000_000n * MS);
    const soon = endingAt(1n);
    const latest = anExtent({ minAtNs: 0n, maxAtNs: 2n ** 63n - 1n });
    const earliest = anExtent({ minAtNs: -(2n ** 63n), maxAtNs: -(2n ** 63n) });
    await commit(events, [future, soon, latest, earliest]);
    const nowMs = clock().nowMs();
    expect(await expired(events.id, nowMs)).toEqual([earliest.id]);
    expect(await expired(events.id, nowMs + 1)).toEqual([earliest.id, future.id, soon.id, latest.id]);
  });

  it("keeps the arrival of rows that are merged later", async () => {
    const events = await table();
    const [first, second] = [endingAt(10_000_000n * MS), endingAt(-9_000n * MS)];
    await commit(events, [first, second]);
    clock().advance(3_000);
    const third = endingAt(20_000_000n * MS);
    await commit(events, [third]);
    const arrivedMs = clock().nowMs();
    clock().advance(50_000);
    const merge = async (inputs: NewExtent[], outputs: NewExtent[]) =>
      await catalog().mergeExtents({
        tableId: events.id,
        schemaVersion: 1,
        inputs: inputs.map(({ id }) => id),
        outputs,
      });
    // The future rows of all make the second output as new as the latest arrival; the first has none of them.
    const outputs = [
      anExtent({ minAtNs: 0n, maxAtNs: second.maxAtNs }),
      anExtent({ rows: 20, maxAtNs: third.maxAtNs }),
    ];
    await merge([first, second, third], outputs);
    const ids = outputs.map(({ id }) => id);
    expect(await expired(events.id, arrivedMs)).toEqual(ids.slice(0, 1));
    expect(await expired(events.id, arrivedMs + 1)).toEqual(ids);
    clock().advance(50_000);
    const again = anExtent({ rows: 30, minAtNs: 0n, maxAtNs: third.maxAtNs });
    await merge(outputs, [again]);
    expect(await expired(events.id, arrivedMs)).toEqual([]);
    expect(await expired(events.id, arrivedMs + 1)).toEqual([again.id]);
  });
}
