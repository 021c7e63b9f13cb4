import { expect, test } from "vitest";
import { mayHavePrototypeKey, prototypeKeyIn } from "./prototype-keys.ts";

const found = (text: string) => (mayHavePrototypeKey(text) ? prototypeKeyIn(JSON.parse(text)) : undefined);

test.each([
  ['{"__proto__":1}', "__proto__"],
  ['{"a":{"b":[1,{"__proto__":{}}]}}', "a.b.1.__proto__"],
  [String.raw`{"\u005f_proto__":1}`, "__proto__"],
  [String.raw`{"a":{"__\u0070roto__":1}}`, "a.__proto__"],
  ['[{"__proto__":null}]', "0.__proto__"],
])("%s has the key", (text, place) => {
  expect(found(text)).toBe(place);
});

test.each([
  '{"a":"__proto__"}',
  '"__proto__"',
  '{"__proto":1,"_proto_":2,"proto":3}',
  '{"constructor":1}',
  "{}",
  "null",
])("%s has not", (text) => {
  expect(found(text)).toBeUndefined();
});

test("depth and length are the sender's choice", () => {
  const deep = `${'{"a":'.repeat(100_000)}{"__proto__":1}${"}".repeat(100_000)}`;
  const place = found(deep);
  expect(place).toMatch(/^….*a\.a\.__proto__$/);
  expect(place?.length).toBeLessThan(250);
  expect(found(`[${'"__proto__",'.repeat(100_000)}1]`)).toBeUndefined();
});
