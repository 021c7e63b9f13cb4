import { array, assert, constantFrom, oneof, property, string, uuid } from "fast-check";
import { expect, test } from "vitest";
import { IdTable } from "./id-table.ts";

const id = oneof(
  uuid(),
  uuid().map((text) => text.toUpperCase()),
  // As long as a UUID, and none.
  string({ unit: constantFrom("0", "a", "-", "g", "é"), minLength: 36, maxLength: 36 }),
  string({ unit: "grapheme", maxLength: 128 }),
);

test("an id has a number of its own, by which it is found again", () => {
  assert(
    property(array(id, { maxLength: 300 }), (ids) => {
      const table = new IdTable();
      const numbers = new Map<string, number>();
      for (const each of ids) {
        expect(table.find(each)).toBe(numbers.get(each) ?? -1);
        if (!numbers.has(each)) numbers.set(each, numbers.size);
        expect(table.numberOf(each)).toBe(numbers.get(each));
      }
      expect(table.count).toBe(numbers.size);
      for (const [each, number] of numbers) {
        expect(table.find(each)).toBe(number);
        expect(table.idOf(number)).toBe(each);
        for (const [other, of] of numbers) expect(table.compare(number, of) === 0).toBe(other === each);
      }
    }),
    { numRuns: 30 },
  );
});
