import { array, assert, double, jsonValue, maxSafeInteger, oneof, property, record } from "fast-check";
import { expect, test } from "vitest";
import { jsonNumbers } from "./json-numbers.ts";

test("the numbers are those of JSON.parse, whatever stands beside them", () => {
  const number = oneof(maxSafeInteger(), double({ noNaN: true, noDefaultInfinity: true }));
  const object = record({ a: number, weight: number, props: jsonValue(), b: jsonValue() }, { requiredKeys: [] });
  assert(
    property(object, array(jsonValue()), (values, other) => {
      const json = JSON.stringify({ src: '"a":1', ...values, other });
      const parsed = JSON.parse(json) as Record<string, unknown>;
      const found = new Float64Array(2);
      jsonNumbers(json, ["a", "weight"], found);
      const wanted = ["a", "weight"].map((name) => (typeof parsed[name] === "number" ? parsed[name] : Number.NaN));
      expect([...found]).toEqual(wanted);
    }),
  );
  const found = new Float64Array(2);
  jsonNumbers('{"a":9007199254740993,"weight":9999999999999999}', ["a", "weight"], found);
  expect([...found]).toEqual([Number("9007199254740993"), Number("9999999999999999")]);
});
