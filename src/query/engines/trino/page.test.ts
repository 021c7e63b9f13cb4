import { array, assert, bigInt, constantFrom, double, oneof, property, string, type Arbitrary } from "fast-check";
import { expect, test } from "vitest";
import { readPage } from "./page.ts";

/** A value as an engine may write it, and as it is read. */
type Written = { text: string; read: unknown };

const rowsIn = (data: string): unknown => readPage(`{"id":"q","stats":{"state":"FINISHED"},"data":${data}}`).data;

const integer: Arbitrary<Written> = bigInt({ min: -(2n ** 127n), max: 2n ** 127n }).map((value) => ({
  text: String(value),
  read: Number.isSafeInteger(Number(value)) ? Number(value) : String(value),
}));
const fraction: Arbitrary<Written> = double({ min: -1, max: 1, noNaN: true, minExcluded: true, maxExcluded: true })
  .filter((value) => value !== 0)
  .map((value) => ({ text: String(value), read: value }));
const text: Arbitrary<Written> = string().map((value) => ({ text: JSON.stringify(value), read: value }));
const space = constantFrom("", " ", "\n", "\t", "\r\n", "  ");

const listOf = (items: readonly Written[], gap: string): Written => ({
  text: `[${gap}${items.map((item) => item.text).join(`${gap},${gap}`)}${gap}]`,
  read: items.map((item) => item.read),
});
const mapOf = (values: readonly Written[], gap: string): Written => ({
  text: `{${values.map((value, i) => `${gap}"${i}"${gap}:${gap}${value.text}${gap}`).join(",")}}`,
  read: Object.fromEntries(values.map((value, i) => [String(i), value.read])),
});
const nested = (of: Arbitrary<Written>): Arbitrary<Written> => {
  const items = array(of, { maxLength: 4 });
  return oneof(
    of,
    items.chain((all) => space.map((gap) => listOf(all, gap))),
    items.chain((all) => space.map((gap) => mapOf(all, gap))),
  );
};

test("integers keep all their digits wherever they stand, whatever is around them", () => {
  // Alone in its page, so that no other number is why it is read exactly.
  for (const values of [integer, oneof(integer, fraction, text)]) {
    const row = array(nested(nested(values)), { minLength: 1, maxLength: 4 });
    const rows = array(row, { minLength: 1, maxLength: 2 });
    assert(
      property(rows, space, (all, gap) => {
        const { text: data, read } = listOf(
          all.map((values) => listOf(values, gap)),
          gap,
        );
        expect(rowsIn(data)).toEqual(read);
      }),
    );
  }
});

test.each([
  ["[[9007199254740993]]", [["9007199254740993"]]],
  ["[[-9007199254740993]]", [["-9007199254740993"]]],
  ["[[1,9007199254740993]]", [[1, "9007199254740993"]]],
  ["[[ \n-9007199254740993 ]]", [["-9007199254740993"]]],
  ['[[{"a":[[0.1,-9007199254740993]]}]]', [[{ a: [[0.1, "-9007199254740993"]] }]]],
  ['[[{"a" : 9007199254740993}]]', [[{ a: "9007199254740993" }]]],
  ["[[0.1234567890123456,-0.6543210987654321]]", [[0.1234567890123456, -0.6543210987654321]]],
])("%s", (data, read) => {
  expect(rowsIn(data)).toEqual(read);
});
