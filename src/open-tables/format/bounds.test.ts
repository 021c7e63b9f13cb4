import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { ColumnType } from "../../format/types.ts";
import { boundsOf } from "./bounds.ts";

const kind = (name: Exclude<ColumnType["kind"], "vector">): ColumnType => ({ kind: name });
const hex = (bytes: Buffer | undefined): string | undefined => bytes?.toString("hex");
const both = (type: ColumnType, min: string, max: string) => {
  const { lower, upper } = boundsOf(type, { min, max });
  return [hex(lower), hex(upper)];
};

test("numbers, flags and times are little-endian", () => {
  expect(both(kind("bool"), "false", "true")).toEqual(["00", "01"]);
  expect(both(kind("int"), "-2", "258")).toEqual(["feffffff", "02010000"]);
  expect(both(kind("long"), "-9223372036854775808", "9007199254740993")).toEqual([
    "0000000000000080",
    "0100000000002000",
  ]);
  expect(both(kind("real"), "-0.5", "1e300")).toEqual(["000000000000e0bf", "9c7500883ce4377e"]);
});

test("times are the microseconds of the file, which are rounded down", () => {
  const us = (value: bigint): string => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(value);
    return bytes.toString("hex");
  };
  expect(both(kind("timestamp"), "1999", "2000")).toEqual([us(1n), us(2n)]);
  expect(both(kind("timestamp"), "-1", "-1000")).toEqual([us(-1n), us(-1n)]);
  expect(both(kind("timestamp"), "-1001", "-1")).toEqual([us(-2n), us(-1n)]);
});

test("what is no certain bound is left out", () => {
  expect(boundsOf(kind("real"), { min: "1", max: "nan" })).toEqual({ lower: Buffer.from("000000000000f03f", "hex") });
  expect(boundsOf(kind("real"), { min: "-Infinity", max: "Infinity" })).toEqual({});
  expect(boundsOf(kind("string"), {})).toEqual({});
  expect(boundsOf(kind("dynamic"), { min: "a", max: "b" })).toEqual({});
  expect(boundsOf({ kind: "vector", dimensions: 3 }, { min: "a", max: "b" })).toEqual({});
  expect(boundsOf(kind("string"), { max: "\u{10ffff}".repeat(17) })).toEqual({});
});

test("text is cut to sixteen code points, and the upper bound rounded up", () => {
  const text = (min: string, max: string) => {
    const { lower, upper } = boundsOf(kind("string"), { min, max });
    return [lower?.toString(), upper?.toString()];
  };
  expect(text("a", "sixteen letters!")).toEqual(["a", "sixteen letters!"]);
  expect(text("seventeen letters", "seventeen letters")).toEqual(["seventeen letter", "seventeen lettes"]);
  expect(text("", `${"a".repeat(15)}\u{10ffff}b`)).toEqual(["", `${"a".repeat(14)}b`]);
  // The code point after U+D7FF is no surrogate.
  expect(text("", `${"\ud7ff".repeat(16)}b`)[1]).toBe(`${"\ud7ff".repeat(15)}\ue000`);
  // An emoji is one code point.
  expect(text("😀".repeat(17), "😀".repeat(17))).toEqual(["😀".repeat(16), `${"😀".repeat(15)}😁`]);
});

test("every text lies between its bounds, as UTF-8 is sorted", () => {
  const texts = fc.string({ unit: "binary", maxLength: 40 }).filter((text) => text.isWellFormed());
  fc.assert(
    fc.property(texts, (text) => {
      const { lower, upper } = boundsOf(kind("string"), { min: text, max: text });
      expect(Buffer.compare(lower ?? Buffer.alloc(0), Buffer.from(text))).toBeLessThanOrEqual(0);
      expect(upper === undefined || Buffer.compare(Buffer.from(text), upper) <= 0).toBe(true);
    }),
  );
});
