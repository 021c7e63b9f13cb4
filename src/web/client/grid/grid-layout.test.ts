import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  columnsInView,
  contentPx,
  firstWidth,
  isSelected,
  moved,
  ROW_PX,
  scrollPxOf,
  selectedRange,
  topRow,
} from "./grid-layout.ts";

const VIEW_PX = 520;

test("every row can be scrolled to, however many there are", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50_000_000 }), fc.double({ min: 0, max: 1, noNaN: true }), (rows, share) => {
      const furthest = Math.max(0, rows - VIEW_PX / ROW_PX);
      const row = Math.floor(share * furthest);
      const scrolled = scrollPxOf(row, rows, VIEW_PX);
      expect(scrolled).toBeLessThanOrEqual(contentPx(rows));
      expect(topRow(scrolled, rows, VIEW_PX)).toBeCloseTo(row, 3);
    }),
  );
  const rows = 1_000_000_000;
  expect(topRow(contentPx(rows) - VIEW_PX, rows, VIEW_PX)).toBeCloseTo(rows - VIEW_PX / ROW_PX, 3);
});

test("the columns in view are those that a part is seen of", () => {
  const widths = [100, 50, 200, 80];
  expect(columnsInView(widths, 0, 120)).toEqual({ from: 0, to: 2, fromPx: 0 });
  expect(columnsInView(widths, 100, 50)).toEqual({ from: 1, to: 2, fromPx: 100 });
  expect(columnsInView(widths, 149, 500)).toEqual({ from: 1, to: 4, fromPx: 100 });
  expect(columnsInView([], 0, 100)).toEqual({ from: 0, to: 0, fromPx: 0 });
});

test("keys move within the bounds", () => {
  const bounds = { rows: 100, columns: 3, pageRows: 20 };
  const by = (key: string, isMod = false) => moved({ row: 50, column: 1 }, { key, isMod }, bounds);
  expect(by("ArrowUp")).toEqual({ row: 49, column: 1 });
  expect(by("ArrowDown", true)).toEqual({ row: 99, column: 1 });
  expect(by("PageDown")).toEqual({ row: 70, column: 1 });
  expect(by("Home")).toEqual({ row: 50, column: 0 });
  expect(by("End", true)).toEqual({ row: 99, column: 2 });
  expect(by("x")).toBeUndefined();
  expect(moved({ row: 0, column: 0 }, { key: "ArrowUp", isMod: false }, bounds)).toEqual({ row: 0, column: 0 });
  expect(moved({ row: 0, column: 0 }, { key: "ArrowUp", isMod: false }, { ...bounds, rows: 0 })).toBeUndefined();
});

test("a selection is the rectangle between its corners, whichever came first", () => {
  const selection = { anchor: { row: 5, column: 2 }, focus: { row: 3, column: 1 } };
  expect(selectedRange(selection)).toEqual({ fromRow: 3, toRow: 6, from: 1, to: 3 });
  expect([isSelected(selection, 4, 1), isSelected(selection, 6, 1), isSelected(undefined, 4, 1)]).toEqual([
    true,
    false,
    false,
  ]);
});

test("a column is at first as wide as its texts, within bounds", () => {
  expect(firstWidth("a", ["x"])).toBe(64);
  expect(firstWidth("a", [null, "x".repeat(20)])).toBe(170);
  expect(firstWidth("a", ["x".repeat(5_000)])).toBe(360);
});
