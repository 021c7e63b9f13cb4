import { expect, test } from "vitest";
import type { ColumnSpec } from "../../format/types.ts";
import type { Mention } from "../resolve/needs.ts";
import type { Comparison, Predicate } from "../resolve/predicates.ts";
import { timeBounds } from "./time-bounds.ts";

const COLUMNS: ColumnSpec[] = [
  { name: "At", type: { kind: "timestamp" } },
  { name: "seen", type: { kind: "timestamp" } },
  { name: "n", type: { kind: "long" } },
];

function mention(range: Mention["range"], ...predicates: Predicate[]): Mention {
  return { range, predicates };
}

function compare(column: string, operator: Comparison, ns: bigint): Predicate {
  return { kind: "compare", column, operator, value: { kind: "instant", ns } };
}

test("a table is read within what all of its mentions need", () => {
  expect(timeBounds([mention({ minNs: 5n, maxNs: 9n }), mention({ minNs: 3n })], COLUMNS)).toEqual([
    { column: "At", minNs: 3n, maxNs: undefined },
  ]);
  expect(timeBounds([mention({ minNs: 5n }), mention({ maxNs: 9n })], COLUMNS)).toEqual([]);
  expect(timeBounds([mention({ minNs: 5n }), mention({})], COLUMNS)).toEqual([]);
  expect(timeBounds([], COLUMNS)).toEqual([]);
});

test("columns besides at are bounded by predicates", () => {
  const all = [compare("SEEN", ">", 10n), compare("seen", "<=", 30n), compare("seen", "<", 25n)];
  expect(timeBounds([mention({}, ...all)], COLUMNS)).toEqual([{ column: "seen", minNs: 11n, maxNs: 24n }]);
  expect(timeBounds([mention({ minNs: 7n }, compare("at", ">=", 9n), compare("n", ">", 1n))], COLUMNS)).toEqual([
    { column: "At", minNs: 9n, maxNs: undefined },
  ]);
});

test("several ranges count as one, and alternatives as none", () => {
  const far = [compare("seen", "=", 10n), compare("seen", "=", 90n)];
  expect(timeBounds([mention({}, { kind: "or", of: far })], COLUMNS)).toEqual([]);
  const values = [90n, 10n].map((ns) => ({ kind: "instant", ns }) as const);
  expect(timeBounds([mention({}, { kind: "in", column: "seen", values })], COLUMNS)).toEqual([
    { column: "seen", minNs: 10n, maxNs: 90n },
  ]);
  expect(timeBounds([mention({}, compare("seen", "<>", 10n))], COLUMNS)).toEqual([]);
});
