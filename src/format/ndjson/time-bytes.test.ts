import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newNumberToken, readNumber } from "./number-bytes.ts";
import { TimeReader } from "./time-bytes.ts";

const reader = new TimeReader();

/** Nanoseconds of the time last read. */
function nanoseconds(): bigint {
  return BigInt.asIntN(64, (BigInt(reader.high) << 32n) + BigInt(reader.low));
}

function read(text: string, before = ""): bigint | undefined {
  const source = Buffer.from(`${before}${text}"\n`);
  return reader.read(source, before.length, before.length + Buffer.byteLength(text)) ? nanoseconds() : undefined;
}

function readEpoch(text: string): bigint | undefined {
  const token = newNumberToken();
  readNumber(Buffer.from(`${text}\n`), 0, token);
  expect(token.end).toBe(text.length);
  return reader.readEpoch(token) ? nanoseconds() : undefined;
}

/** One of the characters. */
const oneOf = (characters: string) => fc.constantFrom(...characters.split(""));

const two = (value: number) => String(value).padStart(2, "0");
const MIN = -(2n ** 63n);
const MAX = 2n ** 63n - 1n;
const NS_PER_DAY = 86_400_000_000_000n;

const isLeap = (year: number) => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
const LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const lengthOf = (year: number, month: number) =>
  month === 2 && isLeap(year) ? 29 : (LENGTHS[month - 1] ?? 0); // oxfmt-ignore

/** Every day that the reader takes, counted one by one from one that is known. */
function* calendar(): Generator<{ year: number; month: number; day: number; days: number }> {
  // 1970-01-01 is day 0; 1678-01-01 lies 292 years and 70 leap days before it.
  let days = -(292 * 365 + 70);
  for (let year = 1678; year <= 2261; year++) {
    for (let month = 1; month <= 12; month++) {
      for (let day = 1; day <= lengthOf(year, month); day++) yield { year, month, day, days: days++ };
    }
  }
}

describe("dates", () => {
  it("are the days of the calendar, counted one by one", () => {
    let checked = 0;
    const wrong: string[] = [];
    for (const { year, month, day, days } of calendar()) {
      const ns = read(`${year}-${two(month)}-${two(day)}`);
      if (ns !== BigInt(days) * NS_PER_DAY) wrong.push(`${year}-${month}-${day} is ${ns}`);
      checked++;
    }
    expect([checked, wrong]).toEqual([213_301, []]);
  });

  it("that the calendar does not have are left out, whatever was read before", () => {
    for (const year of [1678, 1700, 1900, 1970, 2000, 2023, 2024, 2261]) {
      for (let month = 0; month <= 13; month++) {
        for (let day = 0; day <= 32; day++) {
          const exists = day >= 1 && day <= (month >= 1 && month <= 12 ? lengthOf(year, month) : 0);
          const text = `${year}-${two(month)}-${two(day)}T12:00:00Z`;
          // Twice: the date read before is kept.
          expect([read(text) !== undefined, read(text) !== undefined], `${text} twice`).toEqual([exists, exists]);
        }
      }
    }
  });

  it.each(["1677-12-31", "2262-01-01", "0000-01-01", "9999-12-31"])(
    "%s, near or beyond 64 bits, is left out",
    (date) => {
      expect(read(`${date}T00:00:00Z`)).toBeUndefined();
    },
  );
});

describe("times", () => {
  it("are the sum of their parts", () => {
    const parts = fc.record({
      hour: fc.integer({ min: 0, max: 23 }),
      minute: fc.integer({ min: 0, max: 59 }),
      second: fc.integer({ min: 0, max: 59 }),
      fraction: fc.array(oneOf("0123456789"), { maxLength: 9 }).map((list) => list.join("")),
      sign: fc.constantFrom("Z", "z", "", "+", "-"),
      separator: oneOf("Tt "),
      offset: fc.integer({ min: 0, max: 23 * 60 + 59 }),
      date: fc.constantFrom(
        ["1970-01-01", 0n],
        ["1969-12-31", -1n],
        ["1678-01-01", -106_650n],
        ["2261-12-31", 106_650n],
      ),
      before: fc.constantFrom("", "x", "xyz"),
    });
    fc.assert(
      fc.property(parts, ({ hour, minute, second, fraction, sign, separator, offset, date, before }) => {
        const isUtc = sign !== "+" && sign !== "-";
        const zone = isUtc ? sign : `${sign}${two(Math.floor(offset / 60))}:${two(offset % 60)}`;
        const eastMinutes = isUtc ? 0 : sign === "+" ? offset : -offset;
        const [day, days] = date;
        const text = `${day}${separator}${two(hour)}:${two(minute)}:${two(second)}${fraction === "" ? "" : `.${fraction}`}${zone}`;
        const seconds = days * 86_400n + BigInt((hour * 60 + minute - eastMinutes) * 60 + second);
        expect(read(text, before), `reading ${text}`).toBe(seconds * 1_000_000_000n + BigInt(fraction.padEnd(9, "0")));
      }),
      { numRuns: 5_000 },
    );
  });

  it.each([
    "", "2026-01-2", "2026-01-02T", "2026-01-02T03:04", "2026-02-30", "2026-01-02T03:04:60Z", "2026-01-02T24:00:00Z", "2026-01-02T03:60:00Z",
    "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05.1234567891Z", "2026-01-02_03:04:05Z", "2026-01-02T03:04:05 ",
    "2026-01-02  3:04:05Z", "2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05+23:60", "2026-01-02T03:04:05+0100",
    "2026-01-02T03:04:05+01:0", "2026-01-02T03:04:05+01:000", "2026-01-02T03:04:05+01-00", "2026-01-02T03:04:05ZZ",
    "2026-01-02T03:04:05*01:00", "2026/01-02T03:04:05Z", "2026-01/02T03:04:05Z", "2026-01-02T03.04:05Z",
    "2026-01-02T03:04.05Z", "2026-01-02T03:04:05,5Z", "2O26-01-02T03:04:05Z", "2026-0a-02T03:04:05Z",
    "2026-01-0:T03:04:05Z", "2026-01-02T0/:04:05Z", "2026-01-02T03:0 :05Z", "2026-01-02T03:04: 5Z", "+026-01-02T03:04:05Z",
    "2026-01-02T03:04:05.12a4Z", "2026-01-02T03:04:05+0a:00", "2026-01-02T03:04:05+01:a0", "2026-01-02T03:04:05.123 ",
  ])("leaves %j to the slow way", (text) => expect(read(text)).toBeUndefined()); // oxfmt-ignore

  it("with a byte that is wrong, anywhere, are left out", () => {
    const text = "2026-01-02T03:04:05.678+01:30";
    expect(read(text)).toBeDefined();
    for (let at = 0; at < text.length; at++) {
      for (const wrong of ["/", ":", "a", " ", "\u0000", "-", "Z"]) {
        if (wrong === text[at] || (at === 23 && wrong === "-") || (at === 10 && wrong === " ")) continue;
        // A fraction may end anywhere in `Z`, if nothing follows.
        const changed = text.slice(0, at) + wrong + text.slice(at + 1);
        expect(read(changed), `reading ${changed}`).toBeUndefined();
      }
    }
  });
});

/** The unit of a number by its size, as the product has it: below 10^11 s, below 10^14 ms, below 10^17 µs, else ns. */
function expectedEpoch(text: string): bigint | undefined {
  const [, sign, whole = "", fraction = ""] = /^(-?)([0-9]+)(?:\.([0-9]+))?$/.exec(text) ?? [];
  const size = BigInt(whole);
  const unit = size < 10n ** 11n ? 9 : size < 10n ** 14n ? 6 : size < 10n ** 17n ? 3 : 0;
  const ns = size * 10n ** BigInt(unit) + BigInt(fraction.slice(0, unit).padEnd(unit, "0") || "0");
  const signed = sign === "-" ? -ns : ns;
  return signed >= MIN && signed <= MAX ? signed : undefined;
}

describe("numbers as times", () => {
  it("are exact, or left to the slow way", () => {
    const edges = [10n ** 11n, 10n ** 14n, 10n ** 17n, 9_223_372_036n, 9_223_372_037n, 9_223_372_036_854n];
    const whole = fc.oneof(
      fc.bigInt({ min: 0n, max: 10n ** 18n }),
      fc.bigInt({ min: 0n, max: 10n ** 10n }),
      fc.tuple(fc.constantFrom(...edges), fc.bigInt({ min: -2n, max: 2n })).map(([edge, by]) => edge + by),
    );
    const fraction = fc.array(oneOf("01234567899"), { maxLength: 12 }).map((list) => list.join(""));
    let fast = 0;
    const runs = 10_000;
    fc.assert(
      fc.property(fc.constantFrom("", "-"), whole, fraction, (sign, integer, part) => {
        const text = `${sign}${integer}${part === "" ? "" : `.${part}`}`;
        const ns = readEpoch(text);
        if (ns === undefined) return;
        fast++;
        expect(ns, `reading ${text}`).toBe(expectedEpoch(text));
      }),
      { numRuns: runs },
    );
    expect(fast).toBeGreaterThan(runs / 10);
  });

  it.each([
    "0",
    "-0",
    "1767225600",
    "1767225600.25",
    "-1.5",
    "1767225600123",
    "99999999999",
    "100000000000",
    "100000000000000",
    "9223372035",
    "0.000000001",
  ])("reads %s itself or refuses what has no 64 bits", (text) => {
    const expected = expectedEpoch(text);
    expect(readEpoch(text)).toBe(expected);
  });

  it.each(["1e9", "1.7e9", "1767225600.1234567891", "1767225600123.5", "9223372036854775807", "9223372037"])(
    "leaves %s to the slow way",
    (text) => expect(readEpoch(text)).toBeUndefined(),
  );
});
