import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { epochToNs } from "./decimal.ts";
import { rfc3339ToNs, timeTextToNs } from "./time-text.ts";

const two = (value: number) => String(value).padStart(2, "0");

describe("RFC 3339", () => {
  it("agrees with Date for every instant, offset and fraction", () => {
    const arbitrary = fc.record({
      ms: fc
        .integer({ min: Date.UTC(1678, 0, 1), max: Date.UTC(2262, 0, 1) })
        .map((ms) => ms - (((ms % 1000) + 1000) % 1000)),
      offset: fc.integer({ min: -(23 * 60 + 59), max: 23 * 60 + 59 }),
      digits: fc.integer({ min: 0, max: 12 }),
      fraction: fc.bigInt({ min: 0n, max: 10n ** 12n - 1n }),
      separator: fc.constantFrom("T", "t", " "),
    });
    fc.assert(
      fc.property(arbitrary, ({ ms, offset, digits, fraction, separator }) => {
        const local = new Date(ms + offset * 60_000).toISOString();
        const part = fraction.toString().padStart(12, "0").slice(0, digits);
        const size = Math.abs(offset);
        const zone = offset === 0 ? "z" : `${offset < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
        const text = `${local.slice(0, 10)}${separator}${local.slice(11, 19)}${digits > 0 ? "." : ""}${part}${zone}`;
        expect(rfc3339ToNs(text)).toBe(BigInt(ms) * 1_000_000n + BigInt(part.slice(0, 9).padEnd(9, "0")));
      }),
      { numRuns: 2_000 },
    );
  });

  it("takes exactly the days that the calendar has", () => {
    for (const year of [1900, 2000, 2023, 2024]) {
      for (let month = 0; month <= 13; month++) {
        for (let day = 0; day <= 32; day++) {
          const date = new Date(Date.UTC(year, month - 1, day));
          const exists =
            date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
          const ns = rfc3339ToNs(`${year}-${two(month)}-${two(day)}T00:00:00Z`);
          expect(ns).toBe(exists ? BigInt(date.getTime()) * 1_000_000n : undefined);
        }
      }
    }
  });

  it.each([
    ["2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"],
    ["2016-12-31T15:59:60.5-08:00", "2017-01-01T00:00:00.5Z"],
    ["2024-01-01T00:00:00-00:00", "2024-01-01T00:00:00Z"],
  ])("reads %s as %s", (text, same) => {
    expect(rfc3339ToNs(text)).toBeDefined();
    expect(rfc3339ToNs(text)).toBe(rfc3339ToNs(same));
  });

  it("covers exactly 64 bits of nanoseconds", () => {
    expect(rfc3339ToNs("2262-04-11T23:47:16.854775807Z")).toBe(2n ** 63n - 1n);
    expect(rfc3339ToNs("2262-04-11T23:47:16.854775808Z")).toBeUndefined();
    expect(rfc3339ToNs("1677-09-21T00:12:43.145224192Z")).toBe(-(2n ** 63n));
    expect(rfc3339ToNs("1677-09-21T00:12:43.145224191Z")).toBeUndefined();
    expect(rfc3339ToNs("0000-01-01T00:00:00Z")).toBeUndefined();
    expect(rfc3339ToNs("9999-12-31T23:59:59Z")).toBeUndefined();
  });

  it.each([
    "",
    "2024-01-01",
    "2024-01-01T00:00:00",
    "2024-01-01T00:00Z",
    "2024-01-01T24:00:00Z",
    "2024-01-01T00:60:00Z",
    "2024-01-01T00:00:61Z",
    "2024-01-01T00:00:00.Z",
    "2024-01-01T00:00:00,5Z",
    "2024-01-01T00:00:00+24:00",
    "2024-01-01T00:00:00+01:60",
    "2024-01-01T00:00:00+0100",
    "2024-01-01T00:00:00 Z",
    " 2024-01-01T00:00:00Z",
    "2024-01-01T00:00:00Z\n",
    "24-01-01T00:00:00Z",
    "+002024-01-01T00:00:00Z",
    "２024-01-01T00:00:00Z",
    "1700000000",
  ])("refuses %j", (text) => expect(rfc3339ToNs(text)).toBeUndefined());
});

const AT_NS = 1_767_323_045_000_000_000n;
const HOUR_NS = 3_600_000_000_000n;

describe("a time in data", () => {
  it.each([
    ["2026-01-02T03:04:05Z", AT_NS],
    ["2026-01-02T03:04:05", AT_NS],
    ["2026-01-02 03:04:05", AT_NS],
    ["2026-01-02t03:04:05z", AT_NS],
    ["2026-01-02T04:04:05+01:00", AT_NS],
    ["2026-01-02 02:34:05-00:30", AT_NS],
    ["2026-01-02T03:04:05.5", AT_NS + 500_000_000n],
    ["2026-01-02 03:04:05.123456789", AT_NS + 123_456_789n],
    [`2026-01-02T03:04:05.${"9".repeat(100_000)}`, AT_NS + 999_999_999n],
    ["2026-01-02", AT_NS - 3n * HOUR_NS - 245_000_000_000n],
    ["2024-02-29", 1_709_164_800_000_000_000n],
    ["1970-01-01", 0n],
    ["1969-12-31T23:59:59.999999999", -1n],
    ["2016-12-31T23:59:60", 1_483_228_800_000_000_000n],
    ["2262-04-11T23:47:16.854775807", 2n ** 63n - 1n],
    ["1677-09-21T00:12:43.145224192", -(2n ** 63n)],
    ["1767323045", AT_NS],
    ["1767323045000", AT_NS],
    ["1767323045000000", AT_NS],
    ["1767323045000000001", AT_NS + 1n],
    ["1767323045.25", AT_NS + 250_000_000n],
    ["1.767323045e9", AT_NS],
    ["-1", -1_000_000_000n],
    ["-0", 0n],
    ["-1767323045000", -AT_NS],
    ["-9223372036854775808", -(2n ** 63n)],
    ["20260102", 20_260_102_000_000_000n],
  ])("%.60s is read", (text, ns) => expect(timeTextToNs(text)).toBe(ns));

  it.each([
    "",
    " ",
    "yesterday",
    "now",
    "2026-01-02T",
    "2026-01-02T03:04",
    "2026-01-02T03:04:05.",
    "2026-01-02T24:00:00",
    "2026-01-02 23:60:00",
    "2026-01-02T03:04:61",
    "2026-01-02T3:04:05",
    "2026-02-29",
    "2026-02-30",
    "2026-02-30T00:00:00",
    "2026-04-31",
    "1900-02-29",
    "2026-13-01",
    "2026-00-01",
    "2026-01-00",
    "0000-01-01",
    "9999-12-31",
    "9999-12-31T23:59:59",
    "2262-04-11T23:47:16.854775808",
    "1677-09-21T00:12:43.145224191",
    "2026-01-02Z",
    "2026-01-02+01:00",
    " 2026-01-02",
    "2026-01-02 ",
    "2026-01-02T03:04:05 ",
    "2026-01-02T03:04:05\n",
    "2026-01-02  03:04:05",
    "2026-01-02T03:04:05 UTC",
    "2026-01-02T03:04:05 Z",
    "2026-01-02T03:04:05+0100",
    "2026-01-02T03:04:05+01",
    "2026/01/02",
    "01/02/2026",
    "Jan 2, 2026",
    "２026-01-02",
    "1767323045 ",
    "+1767323045",
    "01767323045",
    "1767323045.",
    ".5",
    "1e",
    "0x10",
    "1_000",
    "NaN",
    "Infinity",
    "9223372036854775808",
    "-9223372036854775809",
    "1e400",
    "9".repeat(100_000),
  ])("%.60j is none", (text) => expect(timeTextToNs(text)).toBeUndefined());

  it("without an offset is that time in UTC, and with one what RFC 3339 makes of it", () => {
    const two = (most: number) => fc.integer({ min: 0, max: most }).map((value) => String(value).padStart(2, "0"));
    const parts = fc.record({
      year: fc.oneof(fc.integer({ min: 1677, max: 2262 }), fc.integer({ min: 0, max: 9999 })),
      rest: fc.tuple(two(13), two(32), two(24), two(60), two(61)),
      separator: fc.constantFrom("T", "t", " "),
      fraction: fc.constantFrom("", ".1", ".000000001", ".12345678987654321"),
    });
    fc.assert(
      fc.property(parts, ({ year, rest: [month, day, hour, minute, second], separator, fraction }) => {
        const date = `${String(year).padStart(4, "0")}-${month}-${day}`;
        const text = `${date}${separator}${hour}:${minute}:${second}${fraction}`;
        expect(rfc3339ToNs(text)).toBeUndefined();
        expect(rfc3339ToNs(date)).toBeUndefined();
        expect(timeTextToNs(text)).toBe(rfc3339ToNs(`${text}Z`));
        expect(timeTextToNs(`${text}-07:30`)).toBe(rfc3339ToNs(`${text}-07:30`));
        expect(timeTextToNs(date)).toBe(rfc3339ToNs(`${date}T00:00:00Z`));
      }),
      { numRuns: 3_000 },
    );
  });

  it("as a number in quotes is that number", () => {
    const number = fc.oneof(
      fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map(String),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
      fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 19n }), fc.nat()).map(([whole, part]) => `-${whole}.${part}`),
    );
    fc.assert(
      fc.property(number, (text) => {
        expect(timeTextToNs(text)).toBe(epochToNs(text));
      }),
      { numRuns: 3_000 },
    );
  });

  it("is told apart from any other text without an error", () => {
    const character = fc.constantFrom(..."0123456789-:.TtZz+ eE".split(""));
    const text = fc.oneof(fc.string({ unit: character, maxLength: 40 }), fc.string({ unit: "binary", maxLength: 40 }));
    fc.assert(
      fc.property(text, (any) => {
        const ns = timeTextToNs(any);
        expect(ns).toBe(ns === undefined ? undefined : BigInt.asIntN(64, ns));
      }),
      { numRuns: 5_000 },
    );
  });
});
