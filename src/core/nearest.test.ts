import { expect, test } from "vitest";
import { nearest } from "./nearest.ts";

const KNOWN = ["ENGINE_FLUSH_MAX_ROWS", "ENGINE_FLUSH_MAX_BYTES", "ENGINE_HOME", "events", "eventlog"];

test.for([
  ["ENGINE_FLUSH_MAX_ROW", "ENGINE_FLUSH_MAX_ROWS"],
  ["ENGINE_FLUHS_MAX_ROWS", "ENGINE_FLUSH_MAX_ROWS"],
  ["engine_home", "ENGINE_HOME"],
  ["evnets", "events"],
  ["event", "events"],
  ["eventlogs", "eventlog"],
] as const)("%s is taken for %s", ([name, meant]) => {
  expect(nearest(name, KNOWN)).toBe(meant);
});

test("nothing is suggested for a name that is like none of them", () => {
  expect(nearest("postgres", KNOWN)).toBeUndefined();
  expect(nearest("", KNOWN)).toBeUndefined();
  expect(nearest("events", [])).toBeUndefined();
});

test("a very long name costs nothing", () => {
  expect(nearest("e".repeat(1_000_000), KNOWN)).toBeUndefined();
});

test("the closest wins, and the first of equals", () => {
  expect(nearest("abcd", ["abce", "abcd1", "abcd"])).toBe("abcd");
  expect(nearest("abcx", ["abca", "abcb"])).toBe("abca");
});
