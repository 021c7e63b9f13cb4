import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compactJson } from "./compact.ts";
import { jsonValue } from "./json.test-kit.ts";

const compact = (text: string) => compactJson(text, 0, text.length);

/** Numbers of a JSON text in the order in which the reviver meets them, as their source. */
function numberTokens(text: string): string[] {
  const tokens: string[] = [];
  const revive = (_key: string, value: unknown, context: { source?: string }) => {
    if (typeof value === "number") tokens.push(context.source ?? "");
    return value;
  };
  JSON.parse(text, revive as (key: string, value: unknown) => unknown);
  return tokens;
}

describe("compact JSON", () => {
  it("is what the tree it was written from says", () => {
    fc.assert(
      fc.property(jsonValue, ({ source, compact: expected }) => {
        expect(compact(source)).toBe(expected);
      }),
      { numRuns: 3_000 },
    );
  });

  it("means to JSON.parse what its source means, down to the digits of numbers", () => {
    fc.assert(
      fc.property(jsonValue, ({ source }) => {
        expect(JSON.parse(compact(source))).toEqual(JSON.parse(source));
        expect(numberTokens(compact(source))).toEqual(numberTokens(source));
      }),
      { numRuns: 1_000 },
    );
  });

  it("is JSON.stringify's where that loses nothing", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const value: unknown = JSON.parse(text);
        const plain = JSON.stringify(value);
        fc.pre(!/"-?\d+":/.test(plain) && !text.includes("-0"));
        expect(compact(JSON.stringify(value, undefined, 2))).toBe(plain);
        expect(compact(plain)).toBe(plain);
      }),
    );
  });

  it.each([
    ['{"2":1, "1":2}', '{"2":1,"1":2}'],
    ['{"__proto__": {"x":1}}', '{"__proto__":{"x":1}}'],
    ['{"a":1,"b":2,"a":3}', '{"a":3,"b":2}'],
    ['{"a":{"x":1,"x":2},"a":{"y":1,"y":{"z":1,"z":2}}}', '{"a":{"y":{"z":2}}}'],
    ['{"a":1,"\\u0061":2}', '{"a":2}'],
    ['[{"a":[1,2],"a":[ 3 ]},{"a":4}]', '[{"a":[3]},{"a":4}]'],
    ["[1.0, 1e5, -0, 12345678901234567890]", "[1.0,1e5,-0,12345678901234567890]"],
    ['"\\/"', '"/"'],
    ['"\\u000A"', '"\\n"'],
    ['"\\u001F"', '"\\u001f"'],
    ["[ ]", "[]"],
    ["{ }", "{}"],
  ])("writes %s as %s", (source, expected) => expect(compact(source)).toBe(expected));

  it("takes time linear in the length, however deep, wide or repeated", () => {
    const inner = JSON.stringify("x".repeat(4_000_000));
    const dead = `${'{"a":0,"a": {"b":'.repeat(499)}${inner}${',"b":0},"c":1}'.repeat(499)}`;
    const live = `${'{"a":0,"a": {"b":0,"b":'.repeat(499)}${inner}${'},"c":1}'.repeat(499)}`;
    const deep = `${"[ ".repeat(999)}${inner}${" ]".repeat(999)}`;
    const twice = `{"a":${inner}${`,"a":${inner}`.repeat(9)},"b":[${"1, ".repeat(100_000)}1]}`;
    expect(compact(dead)).toBe('{"a":{"b":0},"c":1}');
    expect(compact(live)).toBe(`${'{"a":{"b":'.repeat(499)}${inner}${'},"c":1}'.repeat(499)}`);
    expect(compact(deep).length).toBe(inner.length + 2 * 999);
    expect(compact(twice).length).toBe(inner.length + 2 * 100_001 + 12);
  }, 4_000);
});
