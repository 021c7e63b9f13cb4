import { expect, it } from "vitest";
import { aFlush, anExtent, column, failureOf, type Subject } from "./contract-fixtures.test-kit.ts";

export function mergesContract({ catalog, clock, table }: Subject): void {
  const threeExtents = async () => {
    const events = await table();
    const extents = [anExtent(), anExtent(), anExtent()];
    await catalog().commit([aFlush(events, { extents })]);
    return { events, ids: extents.map(({ id }) => id) };
  };

  it("replaces extents by others in one snapshot; older snapshots read the inputs", async () => {
    const { events, ids } = await threeExtents();
    clock().advance(1_000);
    const outputs = [anExtent({ rows: 15, sizeBytes: 700, format: "parquet" }), anExtent({ rows: 5, sizeBytes: 300 })];
    const snapshot = await catalog().mergeExtents({
      tableId: events.id,
      schemaVersion: 1,
      inputs: ids.slice(0, 2),
      outputs,
    });
    expect(snapshot).toEqual({ id: 2, committedAtMs: clock().nowMs() });
    expect(await catalog().head()).toEqual(snapshot);
    const after = await catalog().extents(events.id, 2);
    expect(after.map(({ id }) => id)).toEqual([ids[2], ...outputs.map(({ id }) => id)]);
    expect(after[1]).toEqual({ ...outputs[0], tableId: events.id, schemaVersion: 1, beginSnapshot: 2 });
    expect((await catalog().extents(events.id, 1)).map(({ id }) => id)).toEqual(ids);
    const scan = { tableId: events.id, filters: [{ range: {}, tests: [] }] };
    expect((await catalog().planScan({ ...scan, atSnapshot: 2 })).extents).toHaveLength(3);
    expect((await catalog().planScan({ ...scan, atSnapshot: 1 })).extents.map(({ id }) => id)).toEqual(ids);
    expect(await catalog().tableStats(events.id)).toEqual({ rows: 30, extents: 3, sizeBytes: 2_000 });
    const dead = await catalog().deadExtents(events.id, Number.MAX_SAFE_INTEGER);
    expect(dead.map(({ id, endSnapshot }) => [id, endSnapshot])).toEqual(ids.slice(0, 2).map((id) => [id, 2]));
  });

  it("stores nothing when an input is not alive: the loser of two merges, or of one and a deletion", async () => {
    const { events, ids } = await threeExtents();
    const merge = (inputs: readonly string[]) =>
      catalog().mergeExtents({
        tableId: events.id,
        schemaVersion: 1,
        inputs,
        outputs: [anExtent({ rows: 10 * inputs.length })],
      });
    const outcomes = await Promise.all([merge(ids.slice(0, 2)), merge(ids.slice(1))]);
    expect(outcomes.filter((outcome) => outcome !== undefined)).toHaveLength(1);
    const [alive] = await catalog().extents(events.id, 2, {}, []);
    await catalog().endExtents(events.id, [alive?.id ?? ""]);
    expect(await merge([alive?.id ?? ""])).toBeUndefined();
    expect(await merge(["unknown"])).toBeUndefined();
    const { table: other } = await catalog().createTable({ database: "d", name: "t", columns: events.columns });
    const [, ofEvents = ""] = (await catalog().extents(events.id, 2, {}, [])).map(({ id }) => id);
    const elsewhere = { tableId: other.id, schemaVersion: 1, inputs: [ofEvents], outputs: [anExtent()] };
    expect(await catalog().mergeExtents(elsewhere)).toBeUndefined();
    expect((await catalog().head()).id).toBe(3);
  });

  it("refuses merges that lose or make rows, or cannot be true", async () => {
    const { events, ids } = await threeExtents();
    const sound = { tableId: events.id, schemaVersion: 1, inputs: ids.slice(0, 2), outputs: [anExtent({ rows: 20 })] };
    const broken: [RegExp, Partial<typeof sound>][] = [
      [/mergesConserveRows/, { outputs: [anExtent({ rows: 19 })] }],
      [/mergesConserveRows/, { outputs: [anExtent({ rows: 20 }), anExtent({ rows: 1 })] }],
      [/mergesConserveRows/, { outputs: [] }],
      [/no input, or one twice/, { inputs: [ids[0] ?? "", ids[0] ?? ""] }],
      [/no input, or one twice/, { inputs: [], outputs: [] }],
      [/version 2/, { schemaVersion: 2 }],
      [/4711/, { tableId: 4711 }],
      [/catalog already/, { outputs: [anExtent({ id: ids[0] ?? "", rows: 20 })] }],
      [/extentIsWellFormed/, { outputs: [anExtent({ rows: 20, checksum: "ABC" })] }],
      [/statisticsNameKnownColumns/, { outputs: [anExtent({ rows: 20, stats: [{ name: "nope", nullCount: 0 }] })] }],
    ];
    for (const [failure, part] of broken) {
      expect(await failureOf(catalog().mergeExtents({ ...sound, ...part }))).toMatch(failure);
    }
    expect((await catalog().head()).id).toBe(1);
    expect((await catalog().extents(events.id, 1)).map(({ id }) => id)).toEqual(ids);
    expect(await catalog().mergeExtents(sound)).toMatchObject({ id: 2 });
  });
}

const DAY_NS = 86_400_000_000_000n;

export function crowdedDaysContract({ catalog, table }: Subject): void {
  const crowded = async (belowBytes: number, minExtents: number, limit = 100) =>
    (await catalog().crowdedDays({ belowBytes, minExtents, limit })).map(({ dayMs, extents }) => [
      dayMs / 86_400_000,
      extents,
    ]);

  it("counts live small extents by the UTC day of their smallest `at`, the most first", async () => {
    const events = await table();
    const minima = [0n, DAY_NS - 1n, DAY_NS, -1n, -DAY_NS, -DAY_NS - 1n, -2n, 20_000n * DAY_NS];
    const extents = minima.map((minAtNs) => anExtent({ minAtNs, maxAtNs: minAtNs + 3n * DAY_NS }));
    await catalog().commit([aFlush(events, { extents })]);
    const days = [
      [-1, 3],
      [0, 2],
      [-2, 1],
      [1, 1],
      [20_000, 1],
    ];
    expect(await crowded(1_001, 1)).toEqual(days);
    expect(await crowded(1_001, 2)).toEqual(days.slice(0, 2));
    expect(await crowded(1_001, 1, 1)).toEqual(days.slice(0, 1));
    expect(await crowded(1_000, 1)).toEqual([]);
    await catalog().endExtents(events.id, [extents[3]?.id ?? "", extents[4]?.id ?? ""]);
    expect(await crowded(1_001, 2)).toEqual([[0, 2]]);
  });

  it("tells tables apart, and says what lies there", async () => {
    const events = await table();
    const { table: other } = await catalog().createTable({ database: "d", name: "t", columns: [column("at")] });
    const at = { minAtNs: DAY_NS, maxAtNs: DAY_NS };
    const small = () => anExtent({ ...at, rows: 7, sizeBytes: 400 });
    await catalog().commit([
      aFlush(events, { extents: [small(), small(), anExtent({ ...at, sizeBytes: 5_000 })] }),
      aFlush(other, { extents: [small(), small(), small()] }),
    ]);
    const day = { dayMs: 86_400_000 };
    expect(await catalog().crowdedDays({ belowBytes: 5_000, minExtents: 2, limit: 9 })).toEqual([
      { ...day, tableId: other.id, extents: 3, rows: 21, sizeBytes: 1_200 },
      { ...day, tableId: events.id, extents: 2, rows: 14, sizeBytes: 800 },
    ]);
  });
}
