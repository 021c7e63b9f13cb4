import { expect, it } from "vitest";
import { aFlush, anExtent, committed, type Subject } from "./contract-fixtures.test-kit.ts";

/** Which snapshots changed the files that other programs can read. */
export function fileChangesContract({ catalog, table }: Subject): void {
  const parquet = (formatVersion = 2) => anExtent({ format: "parquet", formatVersion });

  it("are the snapshots with which publishable files came or went", async () => {
    const events = await table();
    const { table: other } = await catalog().createTable({ database: "d", name: "other", columns: events.columns });
    const [first, second, fresh, old] = [parquet(), parquet(), anExtent(), parquet(1)];
    const commit = async (...extents: ReturnType<typeof anExtent>[]) => {
      const [outcome] = await catalog().commit([aFlush(events, { extents })]);
      return committed(outcome).snapshot;
    };
    const one = await commit(first, second, fresh);
    await commit(anExtent());
    await commit(old);
    await catalog().commit([aFlush(other, { extents: [parquet()] })]);
    const merged = await catalog().mergeExtents({
      tableId: events.id,
      schemaVersion: events.schemaVersion,
      inputs: [first.id, fresh.id],
      outputs: [{ ...parquet(), rows: first.rows + fresh.rows }],
    });
    await catalog().endExtents(events.id, [old.id]);
    await catalog().endExtents(events.id, [second.id]);
    const changes = await catalog().fileChanges(events.id, -1);
    expect(changes).toEqual([
      { ...one, added: 2, removed: 0 },
      { ...merged, added: 1, removed: 1 },
      { id: 7, committedAtMs: changes[2]?.committedAtMs, added: 0, removed: 1 },
    ]);
    expect(await catalog().fileChanges(events.id, one.id)).toEqual(changes.slice(1));
    expect(await catalog().fileChanges(events.id, 7)).toEqual([]);
    expect(await catalog().fileChanges(4711, -1)).toEqual([]);
  });

  it("are told of any file, for several tables, with their rows", async () => {
    const events = await table();
    const { table: other } = await catalog().createTable({ database: "d", name: "other", columns: events.columns });
    const [first, second] = [anExtent(), parquet()];
    await catalog().commit([aFlush(events, { extents: [first, second] })]);
    await catalog().commit([aFlush(other, { extents: [anExtent()] })]);
    const output = { ...parquet(), rows: first.rows + second.rows };
    const merge = { tableId: events.id, schemaVersion: events.schemaVersion, inputs: [first.id, second.id] };
    await catalog().mergeExtents({ ...merge, outputs: [output] });
    await catalog().endExtents(events.id, [output.id]);
    const none = { added: 0, removed: 0, rowsAdded: 0, rowsRemoved: 0 };
    const all = [
      { ...none, snapshot: 4, tableId: events.id, removed: 1, rowsRemoved: output.rows },
      { snapshot: 3, tableId: events.id, added: 1, removed: 2, rowsAdded: output.rows, rowsRemoved: output.rows },
      { ...none, snapshot: 2, tableId: other.id, added: 1, rowsAdded: first.rows },
      { ...none, snapshot: 1, tableId: events.id, added: 2, rowsAdded: output.rows },
    ];
    expect(await catalog().tableChanges([events.id, other.id], 0)).toEqual(all);
    expect(await catalog().tableChanges([events.id], 3)).toEqual(all.slice(0, 2));
    expect(await catalog().tableChanges([4711], 0)).toEqual([]);
    expect(await catalog().tableChanges([], 0)).toEqual([]);
  });

  it("are those besides that are asked for", async () => {
    const events = await table();
    await catalog().commit([aFlush(events, { extents: [anExtent()] })]);
    await catalog().commit([aFlush(events, { extents: [parquet()] })]);
    const asked = await catalog().fileChanges(events.id, 0, [1, 2, 4711]);
    expect(asked.map(({ id, added }) => [id, added])).toEqual([
      [1, 0],
      [2, 1],
    ]);
    expect((await catalog().fileChanges(events.id, 1, [1])).map(({ id }) => id)).toEqual([2]);
  });
}
