import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { exactReal, newNumberToken, plainInteger, readNumber, type NumberToken } from "./number-bytes.ts";

const JSON_NUMBER = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/;

function read(text: string, before = ""): NumberToken {
  const token = newNumberToken();
  // What a token read before left behind must not show.
  readNumber(Buffer.from("-12.5e7\n"), 0, token);
  readNumber(Buffer.from(`${before}${text}\n`), before.length, token);
  return token;
}

/** One of the characters. */
const oneOf = (characters: string) => fc.constantFrom(...characters.split(""));

/** Whether two doubles are one, sign of zero included. */
const same = (a: number, b: number) => Object.is(a, b);

const digits = (most: number) =>
  fc.array(oneOf("012345678909"), { minLength: 1, maxLength: most }).map((list) => list.join(""));

const token = fc
  .tuple(
    fc.constantFrom("", "-"),
    fc.oneof(
      fc.constant("0"),
      fc.tuple(oneOf("123456789"), digits(24)).map((parts) => parts.join("")),
    ),
    fc.oneof(fc.constant(""), digits(24).map((part) => `.${part}`)), // oxfmt-ignore
    fc.oneof(
      { weight: 3, arbitrary: fc.constant("") },
      {
        weight: 1,
        arbitrary: fc
          .tuple(fc.constantFrom("e", "E"), fc.constantFrom("", "+", "-"), fc.integer({ min: 0, max: 340 }))
          .map((parts) => parts.join("")),
      },
    ),
  )
  .map((parts) => parts.join(""));

describe("a number", () => {
  it("ends where JSON says, for any bytes", () => {
    const text = fc.array(oneOf("0011299.eE+--x ,]"), { maxLength: 12 }).map((list) => list.join(""));
    fc.assert(
      fc.property(text, fc.constantFrom("", "7", "["), (source, before) => {
        const match = JSON_NUMBER.exec(source);
        const { end } = read(source, before);
        // The expression settles for `1` of `1.x` and `01`; the reader, which has seen more, takes nothing.
        const [number = "", , fraction, power] = match ?? [];
        const rest = source.slice(number.length);
        const goesOn = power === undefined && (fraction === undefined ? /^[.eE0-9]/ : /^[eE]/).test(rest);
        const stops = match !== null && !goesOn;
        expect(end).toBe(stops ? before.length + number.length : -1);
      }),
      { numRuns: 5_000 },
    );
  });

  it("is the double that it is written as, or left to the slow way", () => {
    let fast = 0;
    const runs = 10_000;
    fc.assert(
      fc.property(token, (text) => {
        const value = exactReal(read(text));
        if (value === undefined) return;
        fast++;
        expect(same(value, Number(text)), `${text} is ${value}`).toBe(true);
      }),
      { numRuns: runs },
    );
    expect(fast).toBeGreaterThan(runs / 20);
  });

  it("is the double that it is written as whatever the digits, at and around every power of ten", () => {
    for (let power = -25; power <= 25; power++) {
      for (const significand of [
        "1",
        "9",
        "123456789012345",
        "999999999999999",
        "900719925474099",
        "4503599627370497",
      ]) {
        for (const text of [`${significand}e${power}`, `-${significand}E${power}`, `${significand}.0e${power}`]) {
          const value = exactReal(read(text));
          expect(same(value ?? Number(text), Number(text)), `${text} is ${value}`).toBe(true);
          const isPlain = significand.length + (text.includes(".") ? 1 : 0) <= 15 && Math.abs(power) <= 21;
          expect(value !== undefined || !isPlain, `${text} is left to the slow way`).toBe(true);
        }
      }
    }
  });

  it.each([
    ["0", 0], ["-0", -0], ["0.1", 0.1], ["4.35", 4.35], ["999999999999999", 999999999999999], ["1e22", 1e22],
    ["1e-22", 1e-22], ["0.00000000000001", 1e-14], ["123456789012345e22", 123456789012345e22], ["1.5e3", 1500],
  ])("reads %s itself", (text, value) => expect(same(exactReal(read(text)) ?? Number.NaN, value)).toBe(true)); // oxfmt-ignore

  // More than one rounding would be needed: halfway cases, subnormals, more digits than a double holds.
  it.each([
    "1e23", "1e-23", "9007199254740993", "9007199254740991.5", "5e-324", "2.4703282292062327e-324", "1.7976931348623157e308",
    "1e309", "0.30000000000000004", "2.2250738585072011e-308", "1000000000000000", "123456789012345.6",
  ])("leaves %s to the slow way", (text) => expect(exactReal(read(text))).toBeUndefined()); // oxfmt-ignore

  it("is a plain integer exactly when it is written as one, with at most 15 digits", () => {
    const written = fc.oneof(token, fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map(String));
    fc.assert(
      fc.property(written, (text) => {
        const value = plainInteger(read(text));
        const isPlain = /^-?[0-9]{1,15}$/.test(text);
        expect(value === undefined ? undefined : BigInt(value)).toBe(isPlain ? BigInt(text) : undefined);
      }),
      { numRuns: 5_000 },
    );
  });
});
