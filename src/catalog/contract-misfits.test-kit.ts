import { expect, it } from "vitest";
import type { ColumnStats } from "../format/types.ts";
import { aFlush, anExtent, column, type Subject } from "./contract-fixtures.test-kit.ts";

/** Values that did not fit their column: what extents' statistics say of them, and what they add up to. */
export function misfitsContract({ catalog, table }: Subject): void {
  const AT: ColumnStats = { name: "at", nullCount: 0, misfits: 1 };
  const stats = (name: string, misfits?: number): ColumnStats => ({
    name,
    nullCount: 9,
    ...(misfits !== undefined && { misfits }),
  });
  const COLUMNS = [column("at", "timestamp"), column("a", "long"), column("b", "real"), column("}]")];

  it("come back with the statistics, of all columns or of some", async () => {
    const events = await table(COLUMNS);
    const own = [AT, stats("a"), { ...stats("b", 3), min: "}]", max: "}]" }];
    await catalog().commit([aFlush(events, { extents: [anExtent({ stats: own }), anExtent()] })]);
    expect((await catalog().extents(events.id, 1)).map((extent) => extent.stats[2])).toEqual([own[2], undefined]);
    expect((await catalog().extents(events.id, 1, {}, ["B"]))[0]?.stats).toEqual([own[2]]);
  });

  it("add up over the extents that are alive, of the table alone", async () => {
    const events = await table(COLUMNS);
    const { table: other } = await catalog().createTable({ database: "d", name: "other", columns: COLUMNS });
    const extents = [
      // What bounds texts may hold anything.
      anExtent({ stats: [AT, stats("b", 2), { ...stats("}]"), min: "\0", max: "\ud800" }] }),
      anExtent({ stats: [stats("b", 3), stats("a", 4)] }),
      anExtent({ stats: [{ ...stats("}]"), min: "}]", max: "}]" }] }),
    ];
    await catalog().commit([aFlush(events, { extents })]);
    await catalog().commit([aFlush(other, { extents: [anExtent({ stats: [stats("a", 100)] })] })]);
    const ids = new Map(events.columns.map(({ id, name }) => [id, name]));
    const found = async (...of: [(readonly string[])?]) => {
      const misfits = await catalog().misfits(events.id, ...of);
      return [...misfits].map(([id, count]) => `${ids.get(id)} ${count}`).toSorted();
    };
    expect(await found()).toEqual(["a 4", "at 1", "b 5"]);
    expect(await found([extents[0]?.id ?? "", extents[2]?.id ?? "", "unknown", "\0"])).toEqual(["at 1", "b 2"]);
    expect(await found([])).toEqual([]);
    await catalog().endExtents(events.id, [extents[1]?.id ?? ""]);
    expect(await found()).toEqual(["at 1", "b 2"]);
    expect(await found([extents[1]?.id ?? ""])).toEqual([]);
    expect(await catalog().misfits(4711)).toEqual(new Map());
  });
}
