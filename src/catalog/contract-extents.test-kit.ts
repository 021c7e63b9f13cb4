import { expect, it } from "vitest";
import type { ColumnStats } from "../format/types.ts";
import type { NewExtent } from "./catalog.ts";
import { aFlush, anExtent, column, type Subject } from "./contract-fixtures.test-kit.ts";

export function extentsContract({ catalog, table }: Subject): void {
  it("gives back what was committed, exact past 2^53", async () => {
    const events = await table();
    const extents = [
      anExtent({ minAtNs: -(2n ** 63n), maxAtNs: 2n ** 63n - 1n, rows: Number.MAX_SAFE_INTEGER }),
      anExtent({ minAtNs: 2n ** 53n + 1n, maxAtNs: 2n ** 53n + 1n, format: "parquet", formatVersion: 7 }),
      anExtent({ key: `p/${"k".repeat(4_096)}.tlm`, minAtNs: -1n, maxAtNs: 0n, sizeBytes: Number.MAX_SAFE_INTEGER }),
    ];
    for (const extent of extents) await catalog().commit([aFlush(events, { extents: [extent] })]);
    const expected = extents.map((extent, i) => ({
      ...extent,
      tableId: events.id,
      schemaVersion: 1,
      beginSnapshot: i + 1,
    }));
    expect(await catalog().extents(events.id, 3)).toEqual(expected);
    // Totals past 2^53 are not exact, and not asked for here: the first and third are taken out again.
    const gone = await catalog().endExtents(events.id, [extents[0]?.id ?? "", extents[2]?.id ?? ""]);
    expect(gone.map(({ rows }) => rows)).toEqual([Number.MAX_SAFE_INTEGER, 10]);
  });

  it("knows of which columns a file has nanoseconds as well", async () => {
    const events = await table([column("at", "timestamp"), column("a"), column("seen", "timestamp")]);
    const stats = ["at", "seen"].map((name) => ({ name, nullCount: 0 }));
    const format = { format: "parquet", formatVersion: 2 } as const;
    const extents = [
      anExtent({ ...format, stats }),
      anExtent({ ...format, stats, nanosecondColumns: ["SEEN"] }),
      anExtent({ ...format, stats, nanosecondColumns: ["at", "seen"] }),
    ];
    await catalog().commit([aFlush(events, { extents })]);
    const idOf = (name: string) => events.columns.find((one) => one.name === name)?.id;
    const ids = [undefined, [idOf("seen")], [idOf("at"), idOf("seen")]];
    const found = await catalog().extents(events.id, 1);
    expect(found.map(({ nanosecondColumnIds }) => nanosecondColumnIds)).toEqual(ids);
    const { extents: planned } = await catalog().planScan({
      tableId: events.id,
      atSnapshot: 1,
      filters: [{ range: {}, tests: [] }],
    });
    expect(planned.map(({ nanosecondColumnIds }) => nanosecondColumnIds)).toEqual(ids);
    await catalog().verify();
  });

  it("finds by time, bounds included, whatever the width of the extents", async () => {
    const events = await table();
    const spans: [bigint, bigint][] = [
      [10n, 10n],
      [0n, 5n],
      [5n, 20n],
      [19n, 19n],
      [20n, 1_000n],
      [-1_000_000n, 1_000_000n],
      [-50n, -40n],
      [-(2n ** 63n), 2n ** 63n - 1n],
    ];
    const extents = spans.map(([minAtNs, maxAtNs]) => anExtent({ minAtNs, maxAtNs }));
    await catalog().commit([aFlush(events, { extents })]);
    const bounds = [
      undefined,
      -(2n ** 64n),
      -(2n ** 63n),
      -45n,
      0n,
      5n,
      6n,
      10n,
      19n,
      20n,
      1_001n,
      2n ** 63n - 1n,
      2n ** 64n,
    ];
    for (const minNs of bounds) {
      for (const maxNs of bounds) {
        const range = { ...(minNs !== undefined && { minNs }), ...(maxNs !== undefined && { maxNs }) };
        const [lo, hi] = [minNs ?? -(2n ** 65n), maxNs ?? 2n ** 65n];
        const expected = extents.filter(({ minAtNs, maxAtNs }) => lo <= hi && minAtNs <= hi && maxAtNs >= lo);
        const found = await catalog().extents(events.id, 1, range);
        expect(
          found.map(({ id }) => id),
          `${minNs}..${maxNs}`,
        ).toEqual(expected.map(({ id }) => id));
      }
    }
  });

  it("keeps tables apart", async () => {
    const events = await table();
    const { table: other } = await catalog().createTable({
      database: "default",
      name: "other",
      columns: [column("at", "timestamp")],
    });
    await catalog().commit([aFlush(events), aFlush(other), aFlush(other)]);
    expect(await catalog().extents(events.id, 1)).toHaveLength(1);
    expect(await catalog().extents(other.id, 1)).toHaveLength(2);
    expect(await catalog().tableStats(other.id)).toEqual({ rows: 20, extents: 2, sizeBytes: 2_000 });
  });

  it("answers with more extents than fit one message, in order", async () => {
    const events = await table();
    const extents = Array.from({ length: 2_345 }, () => anExtent());
    await catalog().commit([aFlush(events, { extents })]);
    const found = await catalog().extents(events.id, 1);
    expect(found.map(({ id }) => id)).toEqual(extents.map(({ id }) => id));
  });
}

export function statisticsContract({ catalog, table }: Subject): void {
  const STATS: ColumnStats[] = [
    { name: "at", nullCount: 0, distinct: 10, min: "-9223372036854775808", max: "9223372036854775807" },
    { name: "body", nullCount: 10 },
    { name: "text", nullCount: 1, min: "", max: "\0\u0001\u001f\u007f\u0000" },
    { name: "odd", nullCount: 2, distinct: 1, min: "\ud800", max: '\u{10ffff}"\\\n' },
    { name: "half", nullCount: 3, min: "only a minimum" },
    { name: "__proto__", nullCount: 4, max: "null" },
    { name: "uncounted", nullCount: 0, distinct: Number.MAX_SAFE_INTEGER },
  ];

  const commitStats = async () => {
    const events = await table(STATS.map(({ name }) => column(name)));
    await catalog().commit([aFlush(events, { extents: [anExtent({ stats: STATS })] })]);
    return events;
  };

  it("keeps NUL, control characters, empty text and lone surrogates", async () => {
    const events = await commitStats();
    expect((await catalog().extents(events.id, 1))[0]?.stats).toEqual(STATS);
  });

  it("gives the statistics of the named columns only", async () => {
    const events = await commitStats();
    const read = async (names: string[]) => (await catalog().extents(events.id, 1, {}, names))[0]?.stats;
    expect(await read([])).toEqual([]);
    expect(await read(["ODD", "at", "unknown"])).toEqual([STATS[0], STATS[3]]);
    expect(await read(["__proto__"])).toEqual([STATS[5]]);
  });

  it("keeps extents apart that have different columns", async () => {
    const events = await table([column("a"), column("b")]);
    const extents = [withStats("a"), withStats("b", "a"), withStats(), withStats("a")];
    await catalog().commit([aFlush(events, { extents })]);
    expect((await catalog().extents(events.id, 1)).map(({ stats }) => stats)).toEqual(extents.map((e) => e.stats));
    expect((await catalog().extents(events.id, 1, {}, ["b"])).map(({ stats }) => stats.length)).toEqual([0, 1, 0, 0]);
  });

  it("names the columns as the table spells them", async () => {
    const events = await table([column("Name")]);
    await catalog().commit([aFlush(events, { extents: [anExtent({ stats: [{ name: "nAME", nullCount: 0 }] })] })]);
    expect((await catalog().extents(events.id, 1))[0]?.stats).toEqual([{ name: "Name", nullCount: 0 }]);
  });
}

function withStats(...names: string[]): NewExtent {
  return anExtent({ stats: names.map((name, nullCount) => ({ name, nullCount })) });
}
export function deletionContract({ catalog, clock, table }: Subject): void {
  const threeExtents = async () => {
    const events = await table();
    const extents = [anExtent(), anExtent(), anExtent()];
    await catalog().commit([aFlush(events, { extents })]);
    return { events, ids: extents.map(({ id }) => id) };
  };

  it("ends extents from a new snapshot on; older snapshots still read them", async () => {
    const { events, ids } = await threeExtents();
    clock().advance(1_000);
    const ended = await catalog().endExtents(events.id, [ids[0] ?? "", ids[2] ?? "", ids[0] ?? "", "unknown"]);
    const head = await catalog().head();
    expect(head).toEqual({ id: 2, committedAtMs: clock().nowMs() });
    expect(ended.map(({ id }) => id)).toEqual([ids[0], ids[2]]);
    expect((await catalog().snapshots(10)).map(({ id }) => id)).toEqual([2, 1, 0]);
    expect(await catalog().snapshots(1)).toEqual([head]);
    expect(ended[0]).toMatchObject({ beginSnapshot: 1, endSnapshot: 2, deletedAtMs: clock().nowMs() });
    expect((await catalog().extents(events.id, 2)).map(({ id }) => id)).toEqual([ids[1]]);
    expect((await catalog().extents(events.id, 1)).map(({ id }) => id)).toEqual(ids);
    expect(await catalog().extents(events.id, 0)).toEqual([]);
    expect(await catalog().tableStats(events.id)).toEqual({ rows: 10, extents: 1, sizeBytes: 1_000 });
  });

  it("makes no snapshot when nothing dies", async () => {
    const { events, ids } = await threeExtents();
    const { table: other } = await catalog().createTable({ database: "d", name: "t", columns: [] });
    await catalog().endExtents(events.id, [ids[0] ?? ""]);
    expect(await catalog().endExtents(events.id, [ids[0] ?? "", "unknown"])).toEqual([]);
    expect(await catalog().endExtents(other.id, ids)).toEqual([]);
    expect(await catalog().endExtents(events.id, [])).toEqual([]);
    expect((await catalog().head()).id).toBe(2);
  });

  it("lists the dead strictly before a time, of one table, without statistics", async () => {
    const { events, ids } = await threeExtents();
    await catalog().endExtents(events.id, [ids[1] ?? ""]);
    const firstMs = clock().nowMs();
    clock().advance(10);
    await catalog().endExtents(events.id, [ids[0] ?? ""]);
    const deadBefore = async (ms: number) => (await catalog().deadExtents(events.id, ms)).map(({ id }) => id);
    expect(await deadBefore(firstMs)).toEqual([]);
    expect(await deadBefore(firstMs + 1)).toEqual([ids[1]]);
    expect(await deadBefore(firstMs + 11)).toEqual([ids[1], ids[0]]);
    expect(await catalog().deadExtents(events.id + 1, firstMs + 11)).toEqual([]);
    expect((await catalog().deadExtents(events.id, firstMs + 1))[0]).not.toHaveProperty("stats");
  });

  it("forgets the dead, and refuses everything when one is alive", async () => {
    const { events, ids } = await threeExtents();
    await catalog().endExtents(events.id, ids.slice(0, 2));
    await catalog().expireSnapshots(2);
    await expect(catalog().forgetExtents(ids)).rejects.toThrow(ids[2]);
    expect(await catalog().deadExtents(events.id, Number.MAX_SAFE_INTEGER)).toHaveLength(2);
    const forgotten = await catalog().forgetExtents([...ids.slice(0, 2), "unknown"]);
    expect(forgotten.toSorted()).toEqual(ids.slice(0, 2));
    expect((await catalog().extents(events.id, 2)).map(({ id }) => id)).toEqual([ids[2]]);
    expect(await catalog().deadExtents(events.id, Number.MAX_SAFE_INTEGER)).toEqual([]);
    expect(await catalog().forgetExtents(ids.slice(0, 2))).toEqual([]);
    expect(await catalog().tableStats(events.id)).toMatchObject({ extents: 1 });
  });

  it("does not forget what a readable snapshot sees", async () => {
    const { events, ids } = await threeExtents();
    const { table: other } = await catalog().createTable({ database: "d", name: "t", columns: [] });
    await catalog().endExtents(events.id, ids.slice(0, 1));
    await catalog().endExtents(events.id, ids.slice(1, 2));
    await expect(catalog().forgetExtents(ids.slice(0, 1))).rejects.toThrow("readableExtentsAreNotForgotten");
    await catalog().expireSnapshots(2);
    await expect(catalog().forgetExtents(ids.slice(0, 2))).rejects.toThrow(ids[1]);
    expect((await catalog().extents(events.id, 2)).map(({ id }) => id)).toEqual(ids.slice(1));
    await catalog().forgetExtents(ids.slice(0, 1));
    // The floor of another table says nothing, its own does.
    await catalog().expireTable(other.id, 3);
    await expect(catalog().forgetExtents(ids.slice(1, 2))).rejects.toThrow("readableExtentsAreNotForgotten");
    await catalog().expireTable(events.id, 3);
    await catalog().forgetExtents(ids.slice(1, 2));
    expect(await catalog().deadExtents(events.id, Number.MAX_SAFE_INTEGER)).toEqual([]);
  });

  it("lists as many of the dead as asked for, in the order of their end snapshots", async () => {
    const { events, ids } = await threeExtents();
    for (const id of ids.toReversed()) await catalog().endExtents(events.id, [id]);
    const first = async (limit: number) => {
      const dead = await catalog().deadExtents(events.id, Number.MAX_SAFE_INTEGER, limit);
      return dead.map(({ endSnapshot }) => endSnapshot);
    };
    expect([await first(1), await first(2), await first(9)]).toEqual([[2], [2, 3], [2, 3, 4]]);
  });

  it("refuses a live one however many dead come before it", async () => {
    const events = await table();
    const extents = Array.from({ length: 5_000 }, () => anExtent());
    const ids = extents.map(({ id }) => id);
    await catalog().commit([aFlush(events, { extents })]);
    await catalog().endExtents(events.id, ids.slice(0, -1));
    await catalog().expireSnapshots(2);
    await expect(catalog().forgetExtents(ids)).rejects.toThrow(ids.at(-1));
    expect(await catalog().deadExtents(events.id, Number.MAX_SAFE_INTEGER)).toHaveLength(4_999);
    await catalog().forgetExtents(ids.slice(0, -1));
    expect(await catalog().deadExtents(events.id, Number.MAX_SAFE_INTEGER)).toEqual([]);
  });
}
