import { expect, test } from "vitest";
import type { ColumnStats } from "../format/types.ts";
import { addMisfits, decodeStats, encodeStats, MISFITS_END, pickStats } from "./stats-encoding.ts";

const STATS: ColumnStats[] = [
  { name: "a", nullCount: 0, distinct: 7, min: "1", max: "9" },
  { name: "b", nullCount: 3, misfits: 2 },
  { name: "c", nullCount: 0, distinct: 1, max: "z" },
];
const NAMES = STATS.map(({ name }) => name);

test("statistics come back as they were given", () => {
  const { names, values } = encodeStats(STATS);
  expect(JSON.parse(names)).toEqual(NAMES);
  expect(decodeStats(NAMES, values)).toEqual(STATS);
  expect(decodeStats(["c", "a"], pickStats(values, [2, 0]))).toEqual([STATS[2], STATS[0]]);
  expect(decodeStats(["b"], pickStats(values, [1]))).toEqual([STATS[1]]);
  expect(decodeStats([], encodeStats([]).values)).toEqual([]);
});

test("those with misfits, and only those, end so that they can be found", () => {
  const { values } = encodeStats(STATS);
  expect(values.endsWith(MISFITS_END)).toBe(true);
  expect(pickStats(values, [1]).endsWith(MISFITS_END)).toBe(true);
  const hostile: ColumnStats[] = [{ name: "}]", nullCount: 0, min: "}]", max: "}]", distinct: 1 }];
  for (const text of [pickStats(values, [0, 2]), encodeStats(hostile).values, encodeStats([]).values, "[[],[],[]]"]) {
    expect(text.endsWith(MISFITS_END)).toBe(false);
  }
});

test("misfits add up by column id, whatever their positions", () => {
  const sum = new Map<number, number>();
  addMisfits(sum, [7, 3, 9], '{"1":2,"2":5}');
  addMisfits(sum, [3], '{"0":1,"4":8}');
  expect([...sum]).toEqual([
    [3, 3],
    [9, 5],
  ]);
});

test("those of before there were distinct estimates are read without them", () => {
  const values = JSON.stringify([
    [0, 3, 0],
    ["1", null, null],
    ["9", null, "z"],
  ]);
  const expected: ColumnStats[] = [
    { name: "a", nullCount: 0, min: "1", max: "9" },
    { name: "b", nullCount: 3 },
    { name: "c", nullCount: 0, max: "z" },
  ];
  expect(decodeStats(NAMES, values)).toEqual(expected);
  expect(decodeStats(["b", "a"], pickStats(values, [1, 0]))).toEqual([expected[1], expected[0]]);
});

test.for([["[[0],[],[],[null]]"], ['[[0],[],[],["7"]]'], ["[[0],[],[],[]]"], ["[[0],[],[],[[7]]]"]])(
  "%s has no distinct estimate",
  ([values]) => {
    expect(decodeStats(["a"], String(values))).toEqual([{ name: "a", nullCount: 0 }]);
  },
);
