import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { epochToNs, toFinite, toInt32, toInt64 } from "./decimal.ts";

const MAX = 2n ** 63n - 1n;
const MIN = -(2n ** 63n);

/** `sign × digits × 10^power`, written in one of the ways that JSON allows. */
const token = fc
  .record({
    negative: fc.boolean(),
    digits: fc.oneof(fc.bigInt({ min: 0n, max: 10n ** 22n }), fc.bigInt({ min: 0n, max: 99n })),
    power: fc.integer({ min: -25, max: 25 }),
    style: fc.constantFrom("plain", "exponent", "point"),
  })
  .map(({ negative, digits, power, style }) => {
    const sign = negative ? "-" : "";
    const n = negative ? -digits : digits;
    if (style === "point" && power < 0) return { text: `${sign}${digits}.${"0".repeat(-power)}e${power}`, n, power };
    if (style === "plain" && power >= 0) return { text: `${sign}${digits}${"0".repeat(power)}`, n, power };
    return { text: `${sign}${digits}${power < 0 ? "E" : "e+"}${power}`, n, power };
  });

/** The value as a fraction of two integers. */
function asFraction({ n, power }: { n: bigint; power: number }): [bigint, bigint] {
  return power >= 0 ? [n * 10n ** BigInt(power), 1n] : [n, 10n ** BigInt(-power)];
}

describe("integers", () => {
  it("takes exactly the integral numbers that fit, however they are written", () => {
    fc.assert(
      fc.property(token, (number) => {
        const [over, under] = asFraction(number);
        const exact = over % under === 0n ? over / under : undefined;
        const fits = (min: bigint, max: bigint) => exact !== undefined && exact >= min && exact <= max;
        expect(toInt64(number.text)).toBe(fits(MIN, MAX) ? exact : undefined);
        expect(toInt32(number.text)).toBe(fits(-(2n ** 31n), 2n ** 31n - 1n) ? Number(exact) : undefined);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ["9223372036854775807", MAX],
    ["-9223372036854775808", MIN],
    ["9223372036854775808", undefined],
    ["-9223372036854775809", undefined],
    ["9007199254740993", 9007199254740993n],
    ["9.223372036854775807e18", MAX],
    ["1e3", 1000n],
    ["3.0", 3n],
    ["-0", 0n],
    ["-0.0", 0n],
    ["0e-5", 0n],
    ["0e999999999999999999999", 0n],
    ["1e999999999999999999999", undefined],
    ["1e-999999999999999999999", undefined],
    ["0.5", undefined],
    ["15e-1", undefined],
    ["150e-1", 15n],
  ])("reads %s as a long", (text, value) => expect(toInt64(text)).toBe(value));

  it.each([
    ["2147483647", 2147483647],
    ["2147483648", undefined],
    ["-2147483648", -2147483648],
    ["-2147483649", undefined],
    ["2147483647.0", 2147483647],
    ["-0", 0],
    ["1.5", undefined],
  ])("reads %s as an int", (text, value) => expect(toInt32(text)).toBe(value));
});

it("does not take a real that overflows", () => {
  expect(toFinite("1e308")).toBe(1e308);
  expect(toFinite("1e309")).toBeUndefined();
  expect(toFinite("-1e309")).toBeUndefined();
  expect(toFinite("1e-400")).toBe(0);
});

describe("numbers as times", () => {
  it.each([
    ["0", 0n],
    ["1700000000", 1_700_000_000_000_000_000n],
    ["1.7e9", 1_700_000_000_000_000_000n],
    ["1700000000.123456789", 1_700_000_000_123_456_789n],
    ["1700000000.1234567899", 1_700_000_000_123_456_789n],
    ["1700000000123", 1_700_000_000_123_000_000n],
    ["1700000000123.5", 1_700_000_000_123_500_000n],
    ["1700000000123456", 1_700_000_000_123_456_000n],
    ["1700000000123456789", 1_700_000_000_123_456_789n],
    ["-1.5", -1_500_000_000n],
    ["-0.0000000001", 0n],
    ["9223372036", 9_223_372_036_000_000_000n],
    ["9223372037", undefined],
    ["99999999999", undefined],
    ["100000000000", 100_000_000_000_000_000n],
    ["99999999999999", undefined],
    ["9223372036854", 9_223_372_036_854_000_000n],
    ["100000000000000", 100_000_000_000_000_000n],
    ["99999999999999999", undefined],
    ["100000000000000000", 100_000_000_000_000_000n],
    ["9223372036854775807", MAX],
    ["9223372036854775808", undefined],
    ["1e400", undefined],
    ["1e-400", 0n],
  ])("reads %s", (text, ns) => expect(epochToNs(text)).toBe(ns));

  it("agrees with rational arithmetic", () => {
    fc.assert(
      fc.property(token, (number) => {
        const [over, under] = asFraction(number);
        const size = over < 0n ? -over : over;
        const unit = [10n ** 11n, 10n ** 14n, 10n ** 17n].findIndex((limit) => size < limit * under);
        const ns = (over * ([10n ** 9n, 10n ** 6n, 10n ** 3n][unit] ?? 1n)) / under;
        expect(epochToNs(number.text)).toBe(ns >= MIN && ns <= MAX ? ns : undefined);
      }),
      { numRuns: 2_000 },
    );
  });
});
