import { expect, it } from "vitest";
import { IdRanges, defaultRanges, isMapped } from "./id-ranges.ts";

const FIRST = 0x7000_0000;
const COUNT = 65_536;

it("gives each machine a range of its own, and no range to two", () => {
  const ranges = new IdRanges({ first: FIRST, count: 5, home: "/a" });
  const taken = [1, 2, 3, 4].map(() => ranges.take());
  expect(taken.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4].map((range) => FIRST + range * COUNT));
  expect(() => ranges.take()).toThrow("all 4 ranges of ids are taken by sandboxes");
  expect(taken).not.toContain(ranges.shared);
});

it("gives a range out again after its machine was removed, and not at once where there are others", () => {
  const ranges = new IdRanges({ first: FIRST, count: 5, home: "/a" });
  const first = ranges.take();
  ranges.release(first);
  const next = [ranges.take(), ranges.take(), ranges.take()];
  expect(next).not.toContain(first);
  expect(ranges.take()).toBe(first);
});

it("gives nobody a range that a machine has which was made earlier", () => {
  const ranges = new IdRanges({ first: FIRST, count: 3, home: "/a" });
  ranges.keep(FIRST + COUNT);
  expect(ranges.take()).toBe(FIRST + 2 * COUNT);
  expect(() => ranges.take()).toThrow("all 2 ranges");
  ranges.release(FIRST + COUNT);
  expect(ranges.take()).toBe(FIRST + COUNT);
});

it("begins elsewhere for each node", () => {
  const homes = Array.from({ length: 20 }, (_, index) => `/home/${index}`);
  const firsts = homes.map((home) => new IdRanges({ first: FIRST, count: 4096, home }).take());
  expect(new Set(firsts).size).toBeGreaterThan(15);
});

it("has one range for all where it was given no more", () => {
  const ranges = new IdRanges({ first: 100_000, count: 1, home: "/a" });
  expect([ranges.take(), ranges.take(), ranges.shared]).toEqual([100_000, 100_000, 100_000]);
});

it("has as many ranges by itself as nobody else has, and no ids that somebody may have", () => {
  expect(FIRST + defaultRanges(FIRST) * COUNT).toBe(2 ** 31);
  expect(defaultRanges(100_000)).toBe(1);
});

it("knows which ids a process may give out", () => {
  const whole = "         0          0 4294967295\n";
  expect(isMapped(whole, FIRST, 2 ** 31)).toBe(true);
  expect(isMapped(whole, 4_294_900_000, 4_294_900_000 + COUNT)).toBe(true);
  expect(isMapped(whole, 4_294_950_000, 4_294_950_000 + COUNT)).toBe(false);
  const parts = "0 1000 1\n131072 900000 65536\n65536 500000 65536\n";
  expect(isMapped(parts, 65_536, 196_608)).toBe(true);
  expect(isMapped(parts, 65_536, 196_609)).toBe(false);
  expect(isMapped(parts, 2, 65_536)).toBe(false);
  expect(isMapped("", 65_536, 131_072)).toBe(false);
});
