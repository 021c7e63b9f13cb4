import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  formatMoment,
  formatTimestamp,
  momentOf,
  momentsOf,
  moved,
  rangeOf,
  rangeTitle,
  widened,
} from "./time-range.ts";

const NOW = Date.parse("2026-03-31T14:30:45.500Z");
const at = (text: string) => {
  const ms = momentOf(text, NOW, "utc");
  return ms === undefined ? undefined : new Date(ms).toISOString();
};

describe("moments", () => {
  test.each([
    ["now", "2026-03-31T14:30:45.500Z"],
    ["now-15m", "2026-03-31T14:15:45.500Z"],
    ["now-1d/d", "2026-03-30T00:00:00.000Z"],
    ["now/w", "2026-03-30T00:00:00.000Z"],
    ["now/M", "2026-03-01T00:00:00.000Z"],
    ["now-1M", "2026-02-28T14:30:45.500Z"],
    ["now-1y/y", "2025-01-01T00:00:00.000Z"],
    ["now-1h+30m/h", "2026-03-31T14:00:00.000Z"],
    ["2026-01-02", "2026-01-02T00:00:00.000Z"],
    ["2026-01-02 03:04", "2026-01-02T03:04:00.000Z"],
    ["2026-01-02T03:04:05.25+01:00", "2026-01-02T02:04:05.250Z"],
    [" now ", "2026-03-31T14:30:45.500Z"],
  ])("%s", (text, expected) => {
    expect(at(text)).toBe(expected);
  });

  test.each(["", "yesterday", "now-", "now-5q", "2026-02-30", "2026-13-01", "1500-01-01", "now-999999y", "now;DROP"])(
    "%j is none",
    (text) => {
      expect(at(text)).toBeUndefined();
    },
  );

  test("an empty or backward range is none", () => {
    expect(momentsOf({ from: "now", to: "now" }, NOW, "utc")).toBeUndefined();
    expect(momentsOf({ from: "now", to: "now-1h" }, NOW, "utc")).toBeUndefined();
    expect(momentsOf({ from: "now-1h", to: "now" }, NOW, "utc")).toEqual({ fromMs: NOW - 3_600_000, toMs: NOW });
  });

  test("any text is a moment or none, and never throws", () => {
    fc.assert(
      fc.property(fc.string(), fc.constantFrom("utc" as const, "browser" as const), (text, zone) => {
        const ms = momentOf(`now${text}`, NOW, zone) ?? momentOf(text, NOW, zone) ?? 0;
        expect(Number.isFinite(ms)).toBe(true);
      }),
    );
  });
});

test("what is shown in a zone is read as the same moment", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4e12 }), (ms) => {
      expect(momentOf(formatMoment(ms, "utc"), NOW, "utc")).toBe(ms);
    }),
  );
});

test("ranges of the address are those of the moments", () => {
  const moments = { fromMs: NOW - 1_000, toMs: NOW };
  expect(momentsOf(rangeOf(moments), 0, "browser")).toEqual(moments);
  expect(moved(moments, -1)).toEqual({ fromMs: NOW - 1_500, toMs: NOW - 500 });
  expect(widened(moments)).toEqual({ fromMs: NOW - 1_500, toMs: NOW + 500 });
});

test("titles", () => {
  expect(rangeTitle({ from: "now-1h", to: "now" }, "utc")).toBe("Last hour");
  expect(rangeTitle({ from: "2026-01-02T03:04:05Z", to: "now" }, "utc")).toBe("2026-01-02 03:04:05 to now");
});

test("times of rows keep all of their digits", () => {
  expect(formatTimestamp("2026-01-02T03:04:05.123456789Z", "utc")).toBe("2026-01-02 03:04:05.123456789");
  expect(formatTimestamp("2026-01-02T03:04:05Z", "utc")).toBe("2026-01-02 03:04:05.000");
  expect(formatTimestamp("soon", "utc")).toBe("soon");
});
