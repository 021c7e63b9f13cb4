import { expect, test } from "vitest";
import { arrayOf, library, type LanguageSymbol } from "../bind/library.ts";
import { AGGREGATES } from "./aggregates.ts";

const names = arrayOf<LanguageSymbol>(library().Aggregates.All).map(({ Name }) => Name ?? "");

test("every aggregate of the library is supported or refused, and there are no others", () => {
  expect(Object.keys(AGGREGATES).toSorted()).toEqual(names.toSorted());
});

test("only sketches and what is internal are refused", () => {
  const refused = Object.entries(AGGREGATES).flatMap(([name, rule]) => (rule && "refused" in rule ? [name] : []));
  expect(refused.toSorted()).toEqual([
    "hll",
    "hll_if",
    "hll_merge",
    "merge_tdigest",
    "passthrough",
    "tdigest",
    "tdigest_merge",
  ]);
});
