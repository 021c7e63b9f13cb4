import { expect, it } from "vitest";
import type { ScanFilter, ScanPlan } from "./catalog.ts";
import {
  aFlush,
  aLedgerEntry,
  anExtent,
  column,
  entryOf,
  failureOf,
  type Subject,
} from "./contract-fixtures.test-kit.ts";
import type { StatsTest } from "./stats-predicates.ts";

const EVERYTHING: ScanFilter = { range: {}, tests: [] };

const STATS_TESTS: readonly [string, StatsTest, string[]][] = [
  ["between", { kind: "within", column: "n", ranges: [{ min: 5n, max: 9n }] }, ["all", "none", "odd"]],
  ["at most, exact past 2^53", { kind: "within", column: "n", ranges: [{ max: -9007199254740994n }] }, ["none", "odd"]],
  [
    "at least, exact past 2^53",
    { kind: "within", column: "n", ranges: [{ min: 9007199254740993n }] },
    ["all", "none", "odd"],
  ],
  [
    "one of many",
    { kind: "within", column: "n", ranges: [{ max: -5n }, { min: 3n, max: 3n }, { min: 40n, max: 50n }] },
    ["all", "none", "odd"],
  ],
  ["nothing", { kind: "within", column: "n", ranges: [] }, []],
  ["of a bound of another type", { kind: "within", column: "n", ranges: [{ min: "x" }] }, ["all", "none", "odd"]],
  ["real", { kind: "within", column: "r", ranges: [{ min: 0.5, max: 0.5 }] }, ["all", "none"]],
  ["real past the maximum", { kind: "within", column: "r", ranges: [{ min: NaN }] }, ["none"]],
  ["bool", { kind: "within", column: "b", ranges: [{ min: 1n }] }, ["all"]],
  [
    "text in the order of bytes",
    { kind: "within", column: "s", ranges: [{ min: "\u{1f600}", max: "\u{1f600}" }] },
    ["all", "none"],
  ],
  ["text below", { kind: "within", column: "s", ranges: [{ max: "\uffee" }] }, ["none"]],
  ["text up to an open end", { kind: "within", column: "s", ranges: [{ max: "\uffef", maxIsOpen: true }] }, ["none"]],
  ["text up to a closed end", { kind: "within", column: "s", ranges: [{ max: "\uffef" }] }, ["all", "none"]],
  ["text from an open end", { kind: "within", column: "s", ranges: [{ min: "\u{1f601}", minIsOpen: true }] }, ["none"]],
  ["text from a closed end", { kind: "within", column: "s", ranges: [{ min: "\u{1f601}" }] }, ["all", "none"]],
  ["null", { kind: "null", column: "n" }, ["few", "lacking"]],
  ["not null", { kind: "not_null", column: "n" }, ["all", "none", "odd"]],
  [
    "all of",
    {
      kind: "all",
      of: [
        { kind: "not_null", column: "n" },
        { kind: "not_null", column: "s" },
      ],
    },
    ["all", "none"],
  ],
  [
    "any of",
    {
      kind: "any",
      of: [
        { kind: "null", column: "n" },
        { kind: "within", column: "b", ranges: [{ min: 1n }] },
      ],
    },
    ["all", "few", "lacking"],
  ],
  ["any of nothing", { kind: "any", of: [] }, []],
  [
    "a column that there is not",
    { kind: "within", column: "zzz", ranges: [] },
    ["all", "few", "none", "odd", "lacking"],
  ],
  ["a column without order", { kind: "not_null", column: "d" }, ["all"]],
  ["text inside", { kind: "contains", column: "s", needles: ["x"] }, ["all", "none"]],
];

export function scanContract({ catalog, table }: Subject): void {
  const scan = async (tableId: number, atSnapshot: number, filters: ScanFilter[] = [EVERYTHING]): Promise<ScanPlan> =>
    await catalog().planScan({ tableId, atSnapshot, filters });
  const found = async (tableId: number, test: StatsTest): Promise<string[]> =>
    (await scan(tableId, (await catalog().head()).id, [{ range: {}, tests: [test] }])).extents.map(({ id }) => id);

  it("gives the records that `extents` gives, with the columns of each in place of their statistics", async () => {
    const events = await table();
    const lacking = anExtent({ stats: [{ name: "at", nullCount: 0 }] });
    await catalog().commit([aFlush(events), aFlush(events, { extents: [lacking] }), aFlush(events)]);
    const { extents } = await scan(events.id, 1);
    const expected = (await catalog().extents(events.id, 1)).map(({ stats, ...extent }) =>
      Object.assign(extent, { columns: stats.map(({ name }) => name) }),
    );
    expect(extents).toEqual(expected);
    expect(extents.map(({ columns }) => columns)).toContainEqual(["at"]);
    expect(extents).toHaveLength(3);
  });

  it("sees at every snapshot what was committed, ended and forgotten, as it happens", async () => {
    const events = await table();
    const ids: string[] = [];
    const idsAt = async (snapshot: number) => (await scan(events.id, snapshot)).extents.map(({ id }) => id);
    expect(await idsAt(0)).toEqual([]);
    for (let i = 0; i < 3; i++) {
      const extent = anExtent();
      ids.push(extent.id);
      await catalog().commit([aFlush(events, { extents: [extent] })]);
      expect(await idsAt(i + 1)).toEqual(ids);
    }
    const [first = "", second = "", third = ""] = ids;
    await catalog().endExtents(events.id, [first]);
    await catalog().endExtents(events.id, [third]);
    expect([await idsAt(5), await idsAt(4), await idsAt(3)]).toEqual([[second], [second, third], ids]);
    await catalog().expireSnapshots(5);
    await catalog().forgetExtents([third]);
    expect(await idsAt(5)).toEqual([second]);
    const again = anExtent();
    await catalog().commit([aFlush(events, { extents: [again] })]);
    expect(await idsAt(6)).toEqual([second, again.id]);
    expect(await idsAt(5)).toEqual([second]);
    await catalog().expireSnapshots(6);
    await catalog().forgetExtents([first]);
    expect(await idsAt(6)).toEqual([second, again.id]);
  });

  it("keeps tables apart", async () => {
    const events = await table();
    const { table: other } = await catalog().createTable({ database: "d", name: "o", columns: events.columns });
    await catalog().commit([aFlush(events), aFlush(other), aFlush(events)]);
    expect((await scan(events.id, 1)).extents).toHaveLength(2);
    expect((await scan(other.id, 1)).extents).toHaveLength(1);
    expect(await scan(other.id + 1, 1)).toMatchObject({ extents: [], total: { extents: 0, sizeBytes: 0 } });
  });

  it("answers with more extents than fit one message, in order", async () => {
    const events = await table();
    const extents = Array.from({ length: 1_234 }, () => anExtent());
    await catalog().commit([aFlush(events, { extents })]);
    const plan = await scan(events.id, 1);
    expect(plan.extents.map(({ id }) => id)).toEqual(extents.map(({ id }) => id));
    expect(plan.total).toEqual({ extents: 1_234, sizeBytes: 1_234_000 });
  });

  it("says how much each rule left out", async () => {
    const events = await table([column("at", "timestamp"), column("n", "long")]);
    const extents = Array.from({ length: 10 }, (_, i) =>
      anExtent({
        minAtNs: BigInt(i),
        maxAtNs: BigInt(i),
        sizeBytes: 2 ** i,
        stats: [{ name: "n", nullCount: 0, min: String(i), max: String(i) }],
      }),
    );
    await catalog().commit([aFlush(events, { extents })]);
    const atLeastFour: StatsTest = { kind: "within", column: "N", ranges: [{ min: 4n }] };
    const plan = await scan(events.id, 1, [
      { range: { minNs: 2n, maxNs: 5n }, tests: [atLeastFour] },
      { range: { minNs: 9n }, tests: [] },
    ]);
    expect(plan.extents.map(({ minAtNs }) => minAtNs)).toEqual([4n, 5n, 9n]);
    expect(plan).toMatchObject({
      total: { extents: 10, sizeBytes: 1_023 },
      prunedByTime: { extents: 5, sizeBytes: 1 + 2 + 64 + 128 + 256 },
      prunedByStats: { extents: 2, sizeBytes: 4 + 8 },
      prunedByTop: { extents: 0, sizeBytes: 0 },
    });
  });

  it("leaves out what lies beyond the newest or oldest rows", async () => {
    const events = await table();
    const spans = [0n, 10n, 20n, 25n, 40n].map((minAtNs) => ({ minAtNs, maxAtNs: minAtNs + 10n }));
    await catalog().commit([aFlush(events, { extents: spans.map((span) => anExtent({ rows: 10, ...span })) })]);
    const minima = async (range: ScanFilter["range"], rows: number, newest: boolean): Promise<bigint[]> => {
      const top = { rows, newest };
      const request = { tableId: events.id, atSnapshot: 1, filters: [{ range, tests: [] }], top };
      const { extents, prunedByTop } = await catalog().planScan(request);
      expect(prunedByTop.sizeBytes).toBe(prunedByTop.extents * 1_000);
      return extents.map(({ minAtNs }) => minAtNs);
    };
    expect(await minima({}, 10, true)).toEqual([40n]);
    expect(await minima({}, 11, true)).toEqual([20n, 25n, 40n]);
    expect(await minima({}, 10, false)).toEqual([0n, 10n]);
    expect(await minima({}, 50, true)).toHaveLength(5);
    expect(await minima({}, 51, true)).toHaveLength(5);
    // What sticks out of the range may have no row in it, so it is not counted.
    expect(await minima({ maxNs: 45n }, 10, true)).toEqual([20n, 25n, 40n]);
    expect(await minima({ minNs: 5n, maxNs: 45n }, 20, false)).toEqual([0n, 10n, 20n, 25n]);
  });

  it("leaves out what statistics exclude", async () => {
    const kinds = { at: "timestamp", n: "long", r: "real", b: "bool", s: "string", d: "dynamic" } as const;
    const events = await table(Object.entries(kinds).map(([name, kind]) => column(name, kind)));
    const extents = [
      anExtent({
        id: "all",
        stats: [
          { name: "n", nullCount: 0, min: "-9007199254740993", max: "9007199254740993" },
          { name: "r", nullCount: 0, min: "-1.5", max: "1e300" },
          { name: "b", nullCount: 0, min: "false", max: "true" },
          { name: "s", nullCount: 0, min: "\uffef", max: "\u{1f601}" },
          { name: "d", nullCount: 0 },
        ],
      }),
      anExtent({
        id: "few",
        stats: [
          { name: "n", nullCount: 10 },
          { name: "b", nullCount: 1, min: "false", max: "false" },
        ],
      }),
      // Values without bounds: a text past all bounds, a real column with NaN.
      anExtent({ id: "none", stats: ["n", "r", "s"].map((name) => ({ name, nullCount: 0 })) }),
      anExtent({ id: "odd", stats: [{ name: "n", nullCount: 0, min: "no number", max: "99999999999999999999" }] }),
      anExtent({ id: "lacking", stats: [] }),
    ];
    await catalog().commit([aFlush(events, { extents })]);
    for (const [name, test, expected] of STATS_TESTS)
      expect(await found(events.id, test), `extents left by: ${name}`).toEqual(expected);
  });

  it("learns of columns that come later", async () => {
    const events = await table([column("at", "timestamp")]);
    await catalog().commit([aFlush(events)]);
    const test: StatsTest = { kind: "within", column: "late", ranges: [{ min: 5n }] };
    expect(await found(events.id, test)).toHaveLength(1);
    const late = anExtent({ stats: [{ name: "late", nullCount: 0, min: "7", max: "8" }] });
    await catalog().commit([aFlush(events, { newColumns: [column("late", "long")], extents: [late] })]);
    expect(await found(events.id, test)).toEqual([late.id]);
    const later = anExtent({ stats: [{ name: "late", nullCount: 0, min: "1", max: "2" }] });
    await catalog().commit([aFlush((await catalog().table("default", "events")) ?? events, { extents: [later] })]);
    expect(await found(events.id, test)).toEqual([late.id]);
  });
}

export function timeTravelContract({ catalog, clock, table }: Subject): void {
  it("finds the newest snapshot committed by a time", async () => {
    const events = await table();
    const startMs = (await catalog().head()).committedAtMs;
    clock().advance(100);
    await catalog().commit([aFlush(events)]);
    await catalog().commit([aFlush(events)]);
    clock().advance(100);
    await catalog().commit([aFlush(events)]);
    const idAt = async (ms: number) => (await catalog().snapshotAt(startMs + ms))?.id;
    expect(await Promise.all([-1, 0, 99, 100, 199, 200, 1e12].map(idAt))).toEqual([undefined, 0, 0, 2, 2, 3, 3]);
    expect(await catalog().snapshotAt(startMs + 100)).toEqual({ id: 2, committedAtMs: startMs + 100 });
  });

  it("makes old snapshots unreadable for good, and never the head", async () => {
    const events = await table();
    expect((await catalog().oldestSnapshot()).id).toBe(0);
    for (let i = 0; i < 4; i++) await catalog().commit([aFlush(events)]);
    expect((await catalog().expireSnapshots(2)).id).toBe(2);
    expect((await catalog().expireSnapshots(1)).id).toBe(2);
    expect((await catalog().expireSnapshots(-5)).id).toBe(2);
    expect(await catalog().oldestSnapshot()).toMatchObject({ id: 2, committedAtMs: expect.any(Number) as number });
    expect((await catalog().expireSnapshots(99)).id).toBe(4);
    expect((await catalog().head()).id).toBe(4);
    expect((await catalog().expireSnapshots(3)).id).toBe(4);
  });

  it("forgets snapshots that no table can be read at, but for the first", async () => {
    const events = await table();
    const { table: other } = await catalog().createTable({ database: "d", name: "t", columns: events.columns });
    const startMs = (await catalog().head()).committedAtMs;
    for (let i = 0; i < 9; i++) {
      clock().advance(10);
      await catalog().commit([aFlush(events, { ledger: [aLedgerEntry(`k${i}`)], staged: `s${i}` }), aFlush(other)]);
    }
    const ids = async () => (await catalog().snapshots(100)).map(({ id }) => id);
    await catalog().expireTable(events.id, 6);
    expect(await catalog().sweepSnapshots(100)).toBe(0);
    await catalog().expireSnapshots(4);
    expect(await catalog().sweepSnapshots(2)).toBe(2);
    expect(await ids()).toEqual([9, 8, 7, 6, 5, 4, 3, 0]);
    expect(await catalog().sweepSnapshots(100)).toBe(1);
    expect(await catalog().sweepSnapshots(100)).toBe(0);
    expect(await ids()).toEqual([9, 8, 7, 6, 5, 4, 0]);
    // What can be read is as it was, and so is the answer about what cannot.
    expect((await catalog().oldestSnapshot()).id).toBe(4);
    expect((await catalog().oldestSnapshot(events.id)).id).toBe(6);
    expect((await catalog().oldestSnapshot(other.id)).id).toBe(4);
    expect(await catalog().extents(other.id, 4)).toHaveLength(4);
    expect(await catalog().extents(events.id, 9)).toHaveLength(9);
    expect(await failureOf(catalog().extents(other.id, 3))).toBe("snapshot_expired");
    const idAt = async (ms: number) => (await catalog().snapshotAt(startMs + ms))?.id;
    expect(await Promise.all([-1, 0, 39, 40, 49, 90].map(idAt))).toEqual([undefined, 0, 0, 4, 4, 9]);
    expect((await catalog().lookUpKey(events.id, "k0")).entry).toEqual(entryOf("k0", 1));
    expect(await catalog().commit([aFlush(events, { staged: "s0" })])).toEqual([{ kind: "replayed", snapshotId: 1 }]);
    expect((await catalog().expireSnapshots(99)).id).toBe(9);
    expect(await catalog().sweepSnapshots(100)).toBe(5);
    await catalog().commit([aFlush(events)]);
    expect(await ids()).toEqual([10, 9, 0]);
  });
}
