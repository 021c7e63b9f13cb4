import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newRow, readRow, textOf, tokenOf } from "./json-row.ts";
import { jsonObject, jsonValue } from "./json.test-kit.ts";
import { RowRefused } from "./row-refused.ts";

function fieldsOf(text: string): [string, string, string][] {
  const row = newRow();
  readRow(text, row);
  return Array.from({ length: row.count }, (_, i) => [row.keys[i] ?? "", row.kinds[i] ?? "", tokenOf(row, i)]);
}

function refusalOf(text: string): string | undefined {
  try {
    readRow(text, newRow());
  } catch (error) {
    if (error instanceof RowRefused) return error.message;
    throw error;
  }
  return undefined;
}

const parses = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const arrays = (levels: number) => `{"a":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

describe("fields of a row", () => {
  it("are those that JSON.parse finds, in the order of the source", () => {
    fc.assert(
      fc.property(jsonObject, ({ source, compact }) => {
        const parsed = Object.entries(JSON.parse(source) as object);
        const fields = fieldsOf(source);
        expect(new Map(fields.map(([key, , token]) => [key, JSON.parse(token) as unknown]))).toEqual(new Map(parsed));
        expect(fields.map(([key]) => key)).toEqual(fieldsOf(compact).map(([key]) => key));
      }),
      { numRuns: 2_000 },
    );
  });

  it("are told apart by kind", () => {
    const fields = fieldsOf('{"a":null,"b":true,"c":false,"d":-1.5e3,"e":"x","f":[1,{"}":"]"}],"g":{}} ');
    expect(fields.map(([, kind]) => kind)).toEqual(["null", "bool", "bool", "number", "string", "array", "object"]);
    expect(fields.map(([, , token]) => token)).toEqual([
      "null",
      "true",
      "false",
      "-1.5e3",
      '"x"',
      '[1,{"}":"]"}]',
      "{}",
    ]);
  });

  it("come once per key, with the last value at the first place", () => {
    expect(fieldsOf('{"a":1,"b":2,"a":3,"\\u0062":4,"c":5}')).toEqual([
      ["a", "number", "3"],
      ["b", "number", "4"],
      ["c", "number", "5"],
    ]);
    expect(fieldsOf('{"__proto__":1,"":2,"__proto__":3}')).toEqual([
      ["__proto__", "number", "3"],
      ["", "number", "2"],
    ]);
  });

  it("decode escapes in keys and strings", () => {
    const row = newRow();
    readRow('{"\\u00e9\\"":"\\ud83d\\ude00\\\\"}', row);
    expect([row.keys[0], textOf(row, 0)]).toEqual(['é"', "😀\\"]);
  });

  it("leave nothing of a longer row behind", () => {
    const row = newRow();
    readRow('{"a":1,"b":2}', row);
    readRow('{"c":3}', row);
    expect([row.count, row.keys[0]]).toEqual([1, "c"]);
  });
});

describe("what is taken", () => {
  it("is exactly what JSON.parse takes as an object", () => {
    // Valid text, damaged in one place: a character taken out, put in, or the end cut off.
    const damage = fc.tuple(
      jsonValue,
      fc.nat(),
      fc.constantFrom("", "}", "]", ",", '"', "\\", "0", "-", ".", "e", "\u0001", "\u00a0", "\ufeff", "n"),
    );
    fc.assert(
      fc.property(damage, fc.constantFrom("cut", "insert", "replace", "keep"), ([{ source }, where, what], how) => {
        const at = where % (source.length + 1);
        const rest = how === "insert" ? source.slice(at) : how === "replace" ? source.slice(at + 1) : "";
        const text = how === "keep" ? source : source.slice(0, at) + (how === "cut" ? "" : what) + rest;
        fc.pre(text.isWellFormed() && !/\\u[dD][89a-fA-F]/.test(text));
        const value = parses(text);
        const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
        expect(refusalOf(text) === undefined).toBe(isObject);
      }),
      { numRuns: 5_000 },
    );
  });

  it("has surrogate escapes in pairs only", () => {
    const unit = fc.constantFrom("\\ud800", "\\uDBFF", "\\udc00", "\\uDFFF", "\\u0041", "x", "\\\\", "😀", "\\n");
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 6 }), fc.boolean(), (units, asKey) => {
        const string = `"${units.join("")}"`;
        const text = asKey ? `{${string}:1}` : `{"a":[${string}]}`;
        expect(refusalOf(text) === undefined).toBe((JSON.parse(string) as string).isWellFormed());
      }),
      { numRuns: 2_000 },
    );
    expect(refusalOf('{"a":"\\ud800"}')).toContain("surrogate");
    expect(refusalOf('{"a":"\\ud800","a":1}')).toContain("surrogate");
    expect(refusalOf('{"a":"\\\\ud800"}')).toBeUndefined();
  });

  it("has at most 1,000 levels, the row included", () => {
    for (const make of [arrays, objects]) {
      expect(refusalOf(make(1_000))).toBeUndefined();
      expect(refusalOf(make(1_001))).toContain("1000 levels");
    }
    expect(refusalOf(`{"a":"${"[".repeat(5_000)}"}`)).toBeUndefined();
    expect(refusalOf(`{"a":[${"[],".repeat(2_000)}[]]}`)).toBeUndefined();
    expect(refusalOf(`{"a":${"[".repeat(10_000_000)}`)).toContain("1000 levels");
  });
});

describe("refusals", () => {
  it.each([
    ["[1]", "an array, not an object"],
    ["null", "null, not an object"],
    ["12", "a number, not an object"],
    ['"x"', "a string, not an object"],
    ["true", "a boolean, not an object"],
    ['{"a":1', "cut off"],
    ['{"a":"x', "cut off"],
    ['{"a":', "cut off"],
    ["{", "cut off"],
    ['{"a":1.', "cut off"],
    ['{"a":1}{"b":2}', "at character 8"],
    ['{"a":1}\r{"b":2}', "at character 9"],
    ['\uFEFF{"a":1}', "byte order mark"],
    ['{"a":\u0000}', "U+0000 at character 6"],
    ['{"a":"\u0000"}', "U+0000 at character 7"],
    ['{"a":"\u001f"}', "U+001F at character 7"],
    ['{"a":"\t"}', "control character"],
    ["{a:1}", "at character 2"],
    ['{"a":01}', "at character 7"],
    ['{"a":NaN}', "not valid JSON"],
    ['{"a":1,}', "at character 8"],
  ])("of %j say %s", (text, reason) => {
    expect(refusalOf(text)).toContain(reason);
    expect(refusalOf(text)).not.toMatch(/line 1/);
  });
});
