import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { ColumnRecord, NewExtent } from "../catalog/catalog.ts";
import { anExtent } from "../catalog/contract-fixtures.test-kit.ts";
import { shareMisfits } from "./share-misfits.ts";

const COLUMNS: readonly ColumnRecord[] = [
  { id: 1, name: "at", type: { kind: "timestamp" } },
  { id: 7, name: "Latency", type: { kind: "long" } },
];

const output = (rows: number, nullCount: number): NewExtent =>
  anExtent({
    rows,
    stats: [
      { name: "at", nullCount: 0 },
      { name: "latency", nullCount },
    ],
  });

const sharesOf = (outputs: readonly NewExtent[], misfits: Record<number, number>) => {
  const counts = new Map(Object.entries(misfits).map(([id, count]) => [Number(id), count]));
  return shareMisfits(outputs, COLUMNS, counts).map(({ stats }) => stats.map((own) => own.misfits ?? 0));
};

test("misfits go to the files that have room for them, the first ones first", () => {
  expect(sharesOf([output(10, 3), output(10, 9)], { 7: 5, 1: 12 })).toEqual([
    [10, 3],
    [2, 2],
  ]);
  expect(sharesOf([output(10, 3)], {})).toEqual([[0, 0]]);
});

test("what the rows that are left have no room for is gone with those that were deleted", () => {
  expect(sharesOf([output(4, 2), output(1, 0)], { 7: 5, 1: 9, 99: 3 })).toEqual([
    [4, 2],
    [1, 0],
  ]);
});

test("a merge keeps the sum, however its rows fall into files", () => {
  const file = fc.tuple(fc.nat(50), fc.nat(50)).map(([nulls, values]) => ({ rows: nulls + values + 1, nulls }));
  fc.assert(
    fc.property(fc.array(file, { minLength: 1 }), fc.double({ min: 0, max: 1, noNaN: true }), (files, part) => {
      const misfits = Math.floor(files.reduce((sum, { nulls }) => sum + nulls, 0) * part);
      const shares = sharesOf(
        files.map(({ rows, nulls }) => output(rows, nulls)),
        { 7: misfits },
      );
      expect(shares.reduce((sum, [, own = 0]) => sum + own, 0)).toBe(misfits);
    }),
  );
});
