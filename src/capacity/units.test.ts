import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytesText, parseBytes, parsePerSecond, parseSeconds, secondsText, threeDigits } from "./units.ts";

describe("texts with units", () => {
  it.each([
    ["340 B", 340],
    ["1 MB", 1e6],
    ["1MiB", 2 ** 20],
    ["64 KiB", 65_536],
    ["1.5 GB", 1.5e9],
    ["10_000 B", 1e4],
  ])("reads the size %s", (text, bytes) => expect(parseBytes(text)).toBe(bytes));

  it.each([
    ["200 ms", 0.2],
    ["30 s", 30],
    ["5 min", 300],
    ["1 h", 3_600],
    ["90 d", 7_776_000],
  ])("reads the time %s", (text, seconds) => expect(parseSeconds(text)).toBeCloseTo(seconds, 9));

  it.each([
    ["200/s", 200],
    ["147_000/s", 147_000],
    ["30/min", 0.5],
    ["3600 / h", 1],
  ])("reads the rate %s", (text, perSecond) => expect(parsePerSecond(text)).toBe(perSecond));

  it.each([
    "340",
    "-1 B",
    "1 mb",
    "1 m",
    "B",
    "",
    "1e3 B",
    "1 MB/s",
    "__proto__",
    "1 constructor",
    "NaN B",
    "1 toString",
  ])("refuses %j, and says what it would take", (text) => {
    expect(() => parseBytes(text)).toThrow(/is not a size such as 340 B/);
    expect(() => parseSeconds(text)).toThrow(/is not a time such as/);
  });

  it.each(["200", "200 s", "-1/s", "1/toString", "/s", "1/ms"])("refuses the rate %j", (text) =>
    expect(() => parsePerSecond(text)).toThrow(/is not a rate such as/),
  );

  it("never makes a negative or endless amount of any text", () => {
    const outcome = (parse: (text: string) => number, text: string): unknown => {
      try {
        return parse(text) >= 0;
      } catch (error) {
        return String(error).includes("is not a");
      }
    };
    fc.assert(
      fc.property(fc.string(), (text) => {
        for (const parse of [parseBytes, parseSeconds, parsePerSecond]) expect(outcome(parse, text)).toBe(true);
      }),
    );
  });

  it("shows no more digits than a prediction has", () => {
    expect([threeDigits(1_234_567), threeDigits(0.012345), threeDigits(Infinity)]).toEqual([
      "1,230,000",
      "0.0123",
      "∞",
    ]);
    expect([bytesText(1.234e12), bytesText(340)]).toEqual(["1.23 TB", "340 B"]);
    expect([secondsText(0.0123), secondsText(90), secondsText(600)]).toEqual(["12.3 ms", "90 s", "10 min"]);
  });
});
