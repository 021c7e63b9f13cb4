import * as fc from "fast-check";
import { expect, test } from "vitest";
import { fitted } from "./answer.ts";
import { MCP_LIMITS } from "./limits.ts";

test("what fits stays as it is", () => {
  const result = { items: [1, 2], name: "x" };
  expect(fitted(result, ["items"])).toEqual({ value: result, text: JSON.stringify(result) });
});

test("lists lose their ends, those named last first", () => {
  const item = "x".repeat(1_000);
  const best = Array.from({ length: 20 }, () => item);
  const { value } = fitted({ best, rest: Array.from({ length: 100 }, () => item) }, ["best", "rest"]);
  expect(value).toMatchObject({ best, truncated: true });
  expect((value["rest"] as unknown[]).length).toBeGreaterThan(20);
});

test("whatever a tool answers fits, and the text is the structured result", () => {
  const text = fc.oneof(
    fc.string(),
    fc.constantFrom("\u0000", "é", "\ud83d\ude00", "x").chain((part) => fc.nat(60_000).map((n) => part.repeat(n))),
  );
  const leaf = fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null));
  const item = fc.oneof(leaf, fc.array(leaf, { maxLength: 20 }), fc.dictionary(fc.string(), leaf, { maxKeys: 20 }));
  const result = fc.record({ a: fc.array(item, { maxLength: 50 }), b: fc.array(item, { maxLength: 50 }), c: item });
  fc.assert(
    fc.property(result, (value) => {
      const answer = fitted(value, ["a", "b"]);
      expect(Buffer.byteLength(answer.text)).toBeLessThanOrEqual(MCP_LIMITS.textBytes);
      expect(JSON.parse(answer.text)).toEqual(JSON.parse(JSON.stringify(answer.value)));
    }),
    { numRuns: 60 },
  );
});

test("one value with a million parts fits, too", () => {
  const numbers = Array.from({ length: 1_000_000 }, (_, i) => i);
  const deep = Object.fromEntries(numbers.slice(0, 100_000).map((i) => [`key ${i}`, { i }]));
  for (const value of [
    { rows: [[numbers]] },
    { rows: [], memory: { props: { numbers } } },
    { memory: { props: deep } },
  ]) {
    expect(Buffer.byteLength(fitted(value, ["rows"]).text)).toBeLessThanOrEqual(MCP_LIMITS.textBytes);
  }
});
