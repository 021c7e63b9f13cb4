import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { kqlReference, withKqlReference, wordlessOperators } from "./reference.ts";

const DOC = new URL("../../../docs/kql.md", import.meta.url);

test("every name that the parser knows is supported, or refused for a reason", () => {
  const unknown = Object.entries(kqlReference()).flatMap(([kind, states]) =>
    states.flatMap((state) => ("isUnknown" in state ? `${kind}: ${state.name}` : [])),
  );
  expect(unknown).toEqual([]);
  expect(wordlessOperators()).toEqual([]);
});

test.each([
  ["operators", 36],
  ["functions", 240],
  ["aggregates", 46],
] as const)("of the %s at least %i are supported", (kind, least) => {
  const supported = kqlReference()[kind].filter((state) => !("refused" in state) && !("isUnknown" in state));
  expect(supported.length).toBeGreaterThanOrEqual(least);
});

test("the document says what is supported", () => {
  const written = readFileSync(DOC, "utf8");
  expect(written).toBe(withKqlReference(written));
});

test("a document without a place for it is refused", () => {
  expect(() => withKqlReference("# KQL\n")).toThrow("no place for what is supported");
});
