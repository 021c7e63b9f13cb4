import { expect, it } from "vitest";
import type { ColumnSpec } from "../format/types.ts";
import type { NewExtent } from "./catalog.ts";
import { aFlush, anExtent, column, type Subject } from "./contract-fixtures.test-kit.ts";
import { columnsInQuestion, isPublished, unpublishedTotals } from "./publishable.ts";

const DAY_NS = 86_400_000_000_000n;
const TOOK: ColumnSpec = { name: "took", type: { kind: "long" }, inferred: true };
/** The time in ids that begin with 0190a000-0000. */
const MADE_MS = 0x0190a0000000;

/** Days with extents that other programs cannot read. */
export function unpublishedDaysContract({ catalog }: Subject): void {
  const at = (day: bigint, overrides: Partial<NewExtent> = {}) =>
    anExtent({ minAtNs: day * DAY_NS, maxAtNs: day * DAY_NS + 1n, ...overrides });
  const parquet = { format: "parquet", formatVersion: 2 } as const;
  const stats = { stats: [...anExtent().stats, { name: "took", nullCount: 0, min: "1", max: "2" }] };
  const newTable = async (name: string) =>
    (await catalog().createTable({ database: "d", name, columns: [column("at", "timestamp"), TOOK] })).table;
  const commit = async (table: Awaited<ReturnType<typeof newTable>>, ...extents: NewExtent[]) => {
    await catalog().commit([aFlush(table, { extents })]);
  };

  it("have what was never Parquet of version 2, by day, table, size and snapshot", async () => {
    const [one, other] = [await newTable("one"), await newTable("other")];
    await commit(one, at(-1n), at(3n, parquet), at(3n, { ...parquet, formatVersion: 1, sizeBytes: 5_000 }));
    await commit(other, at(3n, { rows: 7 }));
    await commit(one, at(3n), at(3n, { sizeBytes: 9_000 }));
    const days = async (request: Parameters<ReturnType<typeof catalog>["unpublishedDays"]>[0]) =>
      (await catalog().unpublishedDays(request)).map(({ tableId, dayMs, extents, rows, sizeBytes, ...rest }) => [
        tableId === one.id ? "one" : "other",
        dayMs / 86_400_000,
        [extents, rows, sizeBytes],
        rest.firstSnapshot,
        rest.sinceMs,
      ]);
    expect(await days({})).toEqual([
      ["one", -1, [1, 10, 1_000], 1, MADE_MS],
      ["one", 3, [3, 30, 15_000], 1, MADE_MS],
      ["other", 3, [1, 7, 1_000], 2, MADE_MS],
    ]);
    expect(await days({ belowBytes: 5_000 })).toContainEqual(["one", 3, [2, 20, 10_000], 3, MADE_MS]);
    expect(await days({ tableId: one.id, upTo: 2 })).toEqual([
      ["one", -1, [1, 10, 1_000], 1, MADE_MS],
      ["one", 3, [1, 10, 5_000], 1, MADE_MS],
    ]);
    expect(await unpublishedTotals(catalog(), one.id)).toEqual({ extents: 4, rows: 40, sizeBytes: 16_000 });
    await catalog().dropTable(one.id);
    expect(await unpublishedTotals(catalog(), one.id)).toEqual({ extents: 0, rows: 0, sizeBytes: 0 });
  });

  it("have files with whole numbers in a column that is real since, and not those without the column", async () => {
    const table = await newTable("t");
    await commit(table, at(1n, { ...parquet, ...stats }), at(2n, parquet), at(3n, stats));
    expect((await catalog().unpublishedDays({})).map(({ dayMs }) => dayMs / 86_400_000)).toEqual([3]);
    const wider = await catalog().widenColumns(table.id, ["took"]);
    // A late one, sealed before; and one of the table as it is.
    await commit(table, at(4n, { ...parquet, ...stats }));
    await commit(wider, at(5n, { ...parquet, ...stats }));
    const head = await catalog().head();
    const extents = await catalog().extents(table.id, head.id, {}, columnsInQuestion(wider));
    const waiting = extents.filter((extent) => !isPublished(wider, head.id, extent));
    const daysOf = (all: readonly { minAtNs: bigint }[]) => all.map(({ minAtNs }) => Number(minAtNs / DAY_NS));
    expect(daysOf(waiting)).toEqual([1, 3, 4]);
    for (const request of [{}, { tableId: table.id }]) {
      const days = await catalog().unpublishedDays(request);
      expect(days.map(({ dayMs, extents: count }) => [dayMs / 86_400_000, count])).toEqual([
        [1, 1],
        [3, 1],
        [4, 1],
      ]);
    }
  });
}
