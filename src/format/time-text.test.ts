import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rfc3339ToNs } from "./time-text.ts";

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
