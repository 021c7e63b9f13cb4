import { expect, it } from "vitest";
import { mixed } from "../format/filter/hash.ts";
import { DistinctCounter } from "./distinct-counter.ts";

/** What is counted of so many different hashes, zero among them, each seen several times. */
function counted(different: number): number {
  const counter = new DistinctCounter();
  // `mixed` is one-to-one, and leaves zero alone.
  for (let i = 0; i < different * 3; i++) counter.add(mixed(i % different));
  return counter.count;
}

it.each([0, 1, 2, 100, 1_023, 1_024])("counts %i exactly", (different) => {
  expect(counted(different)).toBe(different);
});

it.each([1_025, 3_000, 10_000, 20_000, 100_000, 3_000_000])("estimates %i within a twentieth", (different) => {
  expect(Math.abs(counted(different) / different - 1)).toBeLessThan(0.05);
});
