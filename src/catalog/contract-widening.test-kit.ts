import { expect, it } from "vitest";
import { formatColumnType, type ColumnSpec } from "../format/types.ts";
import type { FlushCommit, NewExtent, TableRecord } from "./catalog.ts";
import { aFlush, anExtent, column, committed, failureOf, type Subject } from "./contract-fixtures.test-kit.ts";
import { columnAt, unwidenedIn } from "./widening.ts";

/** Inferred `long` columns that become `real`: see `widening.ts`. */
export function wideningContract({ catalog }: Subject): void {
  const AT = column("at", "timestamp");
  const TOOK: ColumnSpec = { name: "took", type: { kind: "long" }, inferred: true };
  const LARGEST = 2n ** 53n;

  const newTable = async (columns: ColumnSpec[] = [AT, TOOK]): Promise<TableRecord> =>
    (await catalog().createTable({ database: "d", name: "t", columns })).table;
  const holding = (min: bigint, max: bigint): NewExtent => {
    const { stats } = anExtent();
    return anExtent({ stats: [...stats, { name: "took", nullCount: 0, min: String(min), max: String(max) }] });
  };
  const commit = async (table: TableRecord, overrides: Partial<FlushCommit>) =>
    (await catalog().commit([aFlush(table, overrides)]))[0];
  const typesOf = (table: TableRecord) => table.columns.map(({ name, type }) => `${name} ${formatColumnType(type)}`);
  const SOME = { tests: [], range: {} };

  it("are widened once, under a version of their own, and known to have been", async () => {
    const table = await newTable();
    committed(await commit(table, { extents: [holding(-LARGEST, LARGEST)] }));
    const generation = await catalog().schemaGeneration();
    const wider = await catalog().widenColumns(table.id, ["TOOK"]);
    expect(typesOf(wider)).toEqual(["at timestamp", "took real"]);
    expect(wider.schemaVersion).toBe(table.schemaVersion + 1);
    expect(wider.columns[1]).toMatchObject({ inferred: true, widened: { version: 2, snapshot: 2 } });
    expect(await catalog().schemaGeneration()).not.toBe(generation);
    expect(await catalog().table("d", "t")).toEqual(wider);
    expect(await catalog().widenColumns(table.id, ["took"])).toEqual(wider);
    const [extent] = await catalog().extents(table.id, 1);
    expect(unwidenedIn(wider, extent?.schemaVersion ?? 0)).toEqual(["took"]);
    expect(unwidenedIn(wider, wider.schemaVersion)).toEqual([]);
    expect(wider.columns.map((one) => formatColumnType(columnAt(one, 1).type))).toEqual(["timestamp", "long"]);
  });

  it("stay what they are when an extent that is alive or readable has a value beyond 2^53", async () => {
    const table = await newTable();
    const far = holding(0n, LARGEST + 1n);
    committed(await commit(table, { extents: [holding(1n, 2n), far] }));
    expect(await catalog().widenColumns(table.id, ["took"])).toEqual(table);
    // Dead, but an older snapshot shows it.
    await catalog().endExtents(table.id, [far.id]);
    expect(await catalog().widenColumns(table.id, ["took"])).toEqual(table);
    await catalog().expireSnapshots(2);
    expect(typesOf(await catalog().widenColumns(table.id, ["took"]))).toEqual(["at timestamp", "took real"]);
  });

  it("are no others: declared ones, other types, unknown names", async () => {
    const declared = column("count", "long");
    const text: ColumnSpec = { name: "text", type: { kind: "string" }, inferred: true };
    const table = await newTable([AT, declared, text]);
    expect(await catalog().widenColumns(table.id, ["count", "text", "at", "nothing"])).toEqual(table);
    expect(await failureOf(catalog().widenColumns(4711, ["took"]))).toBe("table_not_found");
  });

  it("take late flushes under their own version, but none with values that are no doubles", async () => {
    const table = await newTable();
    await catalog().widenColumns(table.id, ["took"]);
    const late = holding(5n, 6n);
    expect(committed(await commit(table, { extents: [late] }))).toMatchObject({ schemaVersion: 2 });
    const [stored] = await catalog().extents(table.id, 1);
    expect(stored).toMatchObject({ id: late.id, schemaVersion: 1 });
    expect(await commit(table, { extents: [holding(0n, LARGEST + 1n)] })).toEqual({ kind: "schema_conflict" });
    expect(await commit(table, { extents: [holding(-LARGEST - 1n, 0n)] })).toEqual({ kind: "schema_conflict" });
  });

  it("take no late flush that brings columns besides, for its extents would be of a later version", async () => {
    const table = await newTable();
    await catalog().widenColumns(table.id, ["took"]);
    const newColumns = [column("plain")];
    expect(await commit(table, { newColumns, extents: [holding(1n, 1n)] })).toEqual({ kind: "schema_conflict" });
    // Without the column it is of any version.
    committed(await commit(table, { newColumns, extents: [anExtent()] }));
  });

  it("conflict with the same column brought as the other type, in whatever order", async () => {
    const table = await newTable([AT]);
    committed(await commit(table, { newColumns: [TOOK], extents: [holding(1n, 1n)] }));
    const real: ColumnSpec = { ...TOOK, type: { kind: "real" } };
    expect(await commit(table, { newColumns: [real], extents: [anExtent()] })).toEqual({ kind: "schema_conflict" });
    await catalog().widenColumns(table.id, ["took"]);
    expect(await commit(table, { newColumns: [TOOK], extents: [holding(1n, 1n)] })).toEqual({
      kind: "schema_conflict",
    });
    committed(await commit(table, { newColumns: [real], extents: [anExtent()] }));
  });

  it("prune extents of both types by numbers of either", async () => {
    const table = await newTable();
    const whole = holding(1n, 10n);
    committed(await commit(table, { extents: [whole] }));
    const within = async (test: { min: number; max: number }, atSnapshot: number) => {
      const tests = [{ kind: "within" as const, column: "took", ranges: [test] }];
      const plan = await catalog().planScan({ tableId: table.id, atSnapshot, filters: [{ ...SOME, tests }] });
      return plan.extents.map(({ id }) => id);
    };
    // The index has the statistics as integers by now.
    await catalog().planScan({
      tableId: table.id,
      atSnapshot: 1,
      filters: [{ ...SOME, tests: [{ kind: "within", column: "took", ranges: [{ min: 1n }] }] }],
    });
    const wider = await catalog().widenColumns(table.id, ["took"]);
    const { stats } = anExtent();
    const broken = anExtent({ stats: [...stats, { name: "took", nullCount: 0, min: "0.25", max: "0.5" }] });
    committed(await commit(wider, { extents: [broken] }));
    expect(await within({ min: 0.3, max: 0.4 }, 2)).toEqual([broken.id]);
    expect(await within({ min: 9.5, max: 11.5 }, 2)).toEqual([whole.id]);
    expect(await within({ min: 0.5, max: 1 }, 2)).toEqual([whole.id, broken.id]);
    expect(await within({ min: 10.5, max: 11.5 }, 2)).toEqual([]);
  });
}
