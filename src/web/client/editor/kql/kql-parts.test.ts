import * as fc from "fast-check";
import { expect, test } from "vitest";
import { statementsOf } from "../../pages/query/statements.ts";
import { partAt, partsOf } from "./kql-parts.ts";

test("parts are the statements that the query page runs", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "|", "\n", " ", "\t", "//", ";") });
  fc.assert(
    fc.property(text, (given) => {
      const parts = partsOf(given, true);
      expect(parts.map((part) => part.text).join("")).toBe(given);
      expect(parts.map((part) => part.text.trim()).filter((part) => part !== "")).toEqual(
        statementsOf(given, "kql").map((statement) => statement.text),
      );
    }),
  );
});

test("the part of a place is the one that it is in", () => {
  const parts = partsOf("one\n\ntwo", true);
  expect([0, 3, 5, 8].map((at) => partAt(parts, at).text)).toEqual(["one\n\n", "one\n\n", "two", "two"]);
  expect(partsOf("one\n\ntwo", false)).toEqual([{ from: 0, text: "one\n\ntwo" }]);
});
