import { expect, it } from "vitest";
import { aFlush, failureOf, type Subject } from "./contract-fixtures.test-kit.ts";

const TTL_MS = 60_000;

export function readersContract({ catalog, clock, table }: Subject): void {
  const expiredBefore = async (before: number) => (await catalog().expireSnapshots(before)).id;

  it("does not make a snapshot unreadable that a live reader holds", async () => {
    const events = await table();
    for (let i = 0; i < 9; i++) await catalog().commit([aFlush(events)]);
    await catalog().holdSnapshots("a", 5, TTL_MS);
    await catalog().holdSnapshots("b", 3, TTL_MS);
    expect(await expiredBefore(2)).toBe(2);
    expect(await expiredBefore(9)).toBe(3);
    // What a node says replaces what it said.
    await catalog().holdSnapshots("b", 6, TTL_MS);
    expect(await expiredBefore(9)).toBe(5);
    await catalog().releaseSnapshots("a");
    await catalog().releaseSnapshots("unknown");
    expect(await expiredBefore(9)).toBe(6);
    await catalog().releaseSnapshots("b");
    expect(await expiredBefore(9)).toBe(9);
  });

  it("lets a hold end by itself, unless it is renewed", async () => {
    const events = await table();
    for (let i = 0; i < 3; i++) await catalog().commit([aFlush(events)]);
    await catalog().holdSnapshots("a", 1, TTL_MS);
    await catalog().holdSnapshots("b", 2, TTL_MS);
    clock().advance(TTL_MS - 1);
    expect(await expiredBefore(3)).toBe(1);
    await catalog().holdSnapshots("b", 2, TTL_MS);
    clock().advance(1);
    expect(await expiredBefore(3)).toBe(2);
    clock().advance(TTL_MS - 1);
    expect(await expiredBefore(3)).toBe(3);
  });

  it("refuses to hold what can no longer be read, and keeps what was held", async () => {
    const events = await table();
    for (let i = 0; i < 5; i++) await catalog().commit([aFlush(events)]);
    await catalog().expireSnapshots(3);
    await catalog().holdSnapshots("a", 3, TTL_MS);
    expect(await failureOf(catalog().holdSnapshots("a", 2, TTL_MS))).toBe("snapshot_expired");
    expect(await expiredBefore(5)).toBe(3);
  });

  it("answers reads of unreadable snapshots with nothing but an error", async () => {
    const events = await table();
    for (let i = 0; i < 3; i++) await catalog().commit([aFlush(events)]);
    await catalog().expireSnapshots(2);
    const scan = { tableId: events.id, filters: [{ range: {}, tests: [] }] };
    expect(await failureOf(catalog().planScan({ ...scan, atSnapshot: 1 }))).toBe("snapshot_expired");
    expect(await failureOf(catalog().extents(events.id, 1))).toBe("snapshot_expired");
    expect((await catalog().planScan({ ...scan, atSnapshot: 2 })).extents).toHaveLength(2);
    expect(await catalog().extents(events.id, 2)).toHaveLength(2);
  });
}

export function tableFloorContract({ catalog, clock, table }: Subject): void {
  it("advances for that table only, never goes back, and never passes the head", async () => {
    const events = await table();
    const { table: other } = await catalog().createTable({ database: "d", name: "t", columns: events.columns });
    for (let i = 0; i < 5; i++) await catalog().commit([aFlush(events), aFlush(other)]);
    expect((await catalog().expireTable(events.id, 3)).id).toBe(3);
    expect((await catalog().expireTable(events.id, 1)).id).toBe(3);
    const oldest = async (tableId?: number) => (await catalog().oldestSnapshot(tableId)).id;
    expect([await oldest(), await oldest(events.id), await oldest(other.id)]).toEqual([0, 3, 0]);
    expect(await failureOf(catalog().extents(events.id, 2))).toBe("snapshot_expired");
    expect(await catalog().extents(other.id, 2)).toHaveLength(2);
    expect(await catalog().extents(events.id, 3)).toHaveLength(3);
    // The later of the two floors counts.
    await catalog().expireSnapshots(2);
    expect([await oldest(), await oldest(events.id), await oldest(other.id)]).toEqual([2, 3, 2]);
    await catalog().expireSnapshots(4);
    expect([await oldest(), await oldest(events.id), await oldest(other.id)]).toEqual([4, 4, 4]);
    expect((await catalog().expireTable(events.id, 99)).id).toBe(5);
  });

  it("does not pass what a live reader holds", async () => {
    const events = await table();
    for (let i = 0; i < 5; i++) await catalog().commit([aFlush(events)]);
    await catalog().holdSnapshots("a", 2, TTL_MS);
    expect((await catalog().expireTable(events.id, 4)).id).toBe(2);
    clock().advance(TTL_MS);
    expect((await catalog().expireTable(events.id, 4)).id).toBe(4);
  });
}
