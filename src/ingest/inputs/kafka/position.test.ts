import { expect, test } from "vitest";
import { drawnRandom } from "../../../core/drawn-seed.test-kit.ts";
import { covers, formatPosition, joinRanges, parsePosition, rangesFrom } from "./position.ts";

test("positions read as they were written", () => {
  expect(parsePosition("0")).toEqual({ next: 0, pending: [] });
  const text = "1200 letters 1101,1150-1152";
  const position = parsePosition(text);
  expect(position).toEqual({
    next: 1_200,
    pending: [
      { first: 1_101, last: 1_101 },
      { first: 1_150, last: 1_152 },
    ],
  });
  expect(position && formatPosition(position)).toBe(text);
});

test.each([
  "",
  "-1",
  "1.5",
  "abc",
  "1 ",
  "1 letters",
  "1 letters ",
  "9 letters 5-4",
  "9 letters 5,5",
  "9 letters 5,3",
  "9 letters 9",
  "9 letters 1-9",
  "99999999999999999",
  "9007199254740993",
  "1\n",
])("%j is none", (text) => {
  expect(parsePosition(text)).toBeUndefined();
});

test("ranges are sets of offsets", () => {
  const random = drawnRandom();
  const pick = (below: number) => Math.floor(random.next() * below);
  for (let round = 0; round < 200; round++) {
    const made = Array.from({ length: pick(8) }, () => {
      const first = pick(40);
      return { first, last: first + pick(5) };
    });
    const set = new Set(
      made.flatMap(({ first, last }) => Array.from({ length: last - first + 1 }, (_, i) => first + i)),
    );
    const ranges = joinRanges(made);
    const from = pick(45);
    for (let offset = 0; offset < 50; offset++) {
      expect(covers(ranges, offset)).toBe(set.has(offset));
      expect(covers(rangesFrom(ranges, from), offset)).toBe(offset >= from && set.has(offset));
    }
    const position = { next: 100, pending: ranges };
    expect(parsePosition(formatPosition(position))).toEqual(position);
  }
});
