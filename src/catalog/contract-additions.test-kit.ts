import { describe, expect, it } from "vitest";
import { aFlush, anExtent, committed, failureOf, type Subject } from "./contract-fixtures.test-kit.ts";

export function additionsContract({ catalog, table }: Subject): void {
  /** Commits flushes of so many extents, each flush in a snapshot of its own. */
  const grown = async (...counts: number[]) => {
    const events = await table();
    const commits = [];
    for (const count of counts) {
      const extents = Array.from({ length: count }, () => anExtent());
      const [outcome] = await catalog().commit([aFlush(events, { extents })]);
      commits.push({ snapshot: committed(outcome).snapshot.id, ids: extents.map(({ id }) => id) });
    }
    return { events, commits };
  };
  const additions = async (
    tableId: number,
    from: number,
    { upTo, limit = 100 }: { upTo?: number; limit?: number } = {},
  ) => {
    const head = upTo ?? (await catalog().head()).id;
    const { extents, upTo: end } = await catalog().additions({ tableId, from, upTo: head, limit });
    return { ids: extents.map(({ id }) => id), upTo: end };
  };

  it("are the extents of later commits, in their order, with their columns", async () => {
    const { events, commits } = await grown(2, 1, 3);
    expect(await additions(events.id, 2)).toEqual({ ids: commits.slice(1).flatMap(({ ids }) => ids), upTo: 3 });
    expect(await additions(events.id, 1, { upTo: 1 })).toEqual({ ids: commits[0]?.ids, upTo: 1 });
    expect(await additions(events.id, 4)).toEqual({ ids: [], upTo: 3 });
    const { extents } = await catalog().additions({ tableId: events.id, from: 2, upTo: 2, limit: 1 });
    expect(extents).toMatchObject([{ beginSnapshot: 2, rows: 10, columns: ["at"] }]);
  });

  it("come by whole snapshots, also where that passes the limit", async () => {
    const { events, commits } = await grown(2, 1, 3);
    expect(await additions(events.id, 1, { limit: 1 })).toEqual({ ids: commits[0]?.ids, upTo: 1 });
    expect(await additions(events.id, 1, { limit: 3 })).toEqual({
      ids: commits.slice(0, 2).flatMap(({ ids }) => ids),
      upTo: 2,
    });
    expect(await additions(events.id, 3, { limit: 2 })).toEqual({ ids: commits[2]?.ids, upTo: 3 });
  });

  it("are those of the table alone", async () => {
    const { events, commits } = await grown(1);
    const { table: other } = await catalog().createTable({ database: "d", name: "t", columns: events.columns });
    await catalog().commit([aFlush(other)]);
    expect(await additions(events.id, 1)).toEqual({ ids: commits[0]?.ids, upTo: 2 });
  });

  it("are still there when a merge has replaced them, and what the merge made is none", async () => {
    const { events, commits } = await grown(2, 1);
    const inputs = commits.flatMap(({ ids }) => ids);
    const merge = { tableId: events.id, schemaVersion: 1, inputs, outputs: [anExtent({ rows: 30 })] };
    expect(await catalog().mergeExtents(merge)).toMatchObject({ id: 3 });
    const [outcome] = await catalog().commit([aFlush(events, { extents: [anExtent({ id: "after" })] })]);
    expect(committed(outcome).snapshot.id).toBe(4);
    expect(await additions(events.id, 1)).toEqual({ ids: [...inputs, "after"], upTo: 4 });
    expect(await additions(events.id, 3)).toEqual({ ids: ["after"], upTo: 4 });
    // A merge of what a merge made, and one of a single extent.
    const outputs = merge.outputs.map(({ id }) => id);
    const again = { ...merge, inputs: outputs, outputs: [anExtent({ rows: 30 })] };
    expect(await catalog().mergeExtents(again)).toMatchObject({ id: 5 });
    expect(await additions(events.id, 1)).toEqual({ ids: [...inputs, "after"], upTo: 5 });
  });

  it("are there when retention has ended them", async () => {
    const { events, commits } = await grown(1, 1);
    await catalog().endExtents(events.id, commits[0]?.ids ?? []);
    expect(await additions(events.id, 1)).toEqual({ ids: commits.flatMap(({ ids }) => ids), upTo: 3 });
  });

  describe("after a deletion of rows", () => {
    const deleted = async () => {
      const { events, commits } = await grown(1, 1);
      const inputs = commits[0]?.ids ?? [];
      const groups = [{ inputs, outputs: [anExtent({ rows: 9 })] }];
      await catalog().deleteRows({ tableId: events.id, schemaVersion: 1, groups, rows: 1 });
      return { events, commits };
    };

    it("are not what the deletion wrote, and what it did not touch", async () => {
      const { events, commits } = await deleted();
      expect(await additions(events.id, 2)).toEqual({ ids: commits[1]?.ids, upTo: 3 });
    });

    it("are refused where rows of them were deleted", async () => {
      const { events } = await deleted();
      expect(await failureOf(additions(events.id, 1))).toBe("snapshot_expired");
    });
  });

  it("are refused once the extents of the snapshot before are not kept", async () => {
    const { events, commits } = await grown(1, 1, 1);
    await catalog().endExtents(events.id, commits[1]?.ids ?? []);
    await catalog().expireTable(events.id, 2);
    expect(await failureOf(additions(events.id, 2))).toBe("snapshot_expired");
    expect(await additions(events.id, 3)).toEqual({ ids: commits[2]?.ids, upTo: 4 });
    await catalog().expireSnapshots(4);
    expect(await failureOf(additions(events.id, 4))).toBe("snapshot_expired");
    expect(await additions(events.id, 5)).toEqual({ ids: [], upTo: 4 });
  });

  it("know what ended after they were asked for first", async () => {
    const { events, commits } = await grown(1, 1);
    await additions(events.id, 1);
    const inputs = commits.flatMap(({ ids }) => ids);
    await catalog().mergeExtents({ tableId: events.id, schemaVersion: 1, inputs, outputs: [anExtent({ rows: 20 })] });
    expect(await additions(events.id, 1)).toEqual({ ids: inputs, upTo: 3 });
    await catalog().expireTable(events.id, 3);
    await catalog().forgetExtents(inputs);
    expect(await additions(events.id, 4)).toEqual({ ids: [], upTo: 3 });
  });
}
