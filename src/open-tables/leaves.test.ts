import * as fc from "fast-check";
import { expect, test } from "vitest";
import { uuidV7Source } from "../core/ids.ts";
import { systemClock } from "../core/clock.ts";
import { systemRandom } from "../core/random.ts";
import { leavesOf, type Placed } from "./leaves.ts";

const newId = uuidV7Source(systemClock, systemRandom);
const DAY_NS = 86_400_000_000_000n;
const at = (minAtNs: bigint): Placed => ({ id: newId(), minAtNs });
const idsOf = (leaves: readonly (readonly Placed[])[]): string[][] => leaves.map((leaf) => leaf.map(({ id }) => id));

test("every file is in one manifest, none of which is too large, whatever the order of the files", () => {
  const times = fc.array(fc.oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.constantFrom(0n, 1n, -1n)));
  fc.assert(
    fc.property(times, fc.integer({ min: 1, max: 5 }), (all, most) => {
      const files = all.map(at);
      const leaves = leavesOf(files, most);
      expect(leaves.every(({ length }) => length > 0 && length <= most)).toBe(true);
      expect(new Set(leaves.flat().map(({ id }) => id)).size).toBe(files.length);
      expect(idsOf(leavesOf(files.toReversed(), most))).toEqual(idsOf(leaves));
      const inOrder = leaves.flat().map(({ minAtNs }) => minAtNs);
      expect(inOrder).toEqual(inOrder.toSorted((a, b) => (a < b ? -1 : Number(a > b))));
    }),
  );
});

test("a merge of a day's files changes two manifests at most", () => {
  // A hundred days of a hundred files each.
  const from = 20_000n * DAY_NS;
  const files = Array.from({ length: 10_000 }, (_, i) => at(from + (BigInt(i) * DAY_NS) / 100n));
  const before = new Set(idsOf(leavesOf(files, 1_000)).map((ids) => ids.join()));
  expect(before.size).toBeGreaterThanOrEqual(10);
  expect(before.size).toBeLessThan(32);
  for (const day of [0, 17, 55, 99]) {
    const merged = [...files.slice(0, day * 100), at(files[day * 100]?.minAtNs ?? 0n), ...files.slice((day + 1) * 100)];
    const changed = idsOf(leavesOf(merged, 1_000)).filter((ids) => !before.has(ids.join()));
    expect(changed.length).toBeLessThanOrEqual(2);
  }
});

test("files that begin at one time are told apart by their ids", () => {
  const files = Array.from({ length: 100 }, () => at(5n));
  expect(leavesOf(files, 7).every(({ length }) => length <= 7)).toBe(true);
});
