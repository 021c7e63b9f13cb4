import { expect, test } from "vitest";
import { LargeTexts } from "./large-texts.ts";

test("the last ones are known, by database and text", () => {
  const texts = new LargeTexts(2);
  const [a, b, c] = [
    { database: "d", text: "a" },
    { database: "d", text: "b" },
    { database: "d", text: "c" },
  ] as const;
  expect(texts.has(a)).toBe(false);
  texts.add(a);
  texts.add(b);
  texts.add(a);
  texts.add(c);
  expect([a, b, c].map((one) => texts.has(one))).toEqual([true, false, true]);
  expect(texts.has({ ...a, database: "other" })).toBe(false);
  texts.delete(a);
  texts.delete(b);
  expect([a, b, c].map((one) => texts.has(one))).toEqual([false, false, true]);
});
