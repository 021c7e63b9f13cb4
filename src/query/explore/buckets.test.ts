import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { rfc3339ToNs, nsToRfc3339 } from "../../format/time-text.ts";
import { bucketsOf } from "./buckets.ts";

const at = (text: string): bigint => rfc3339ToNs(text) ?? 0n;
const shown = (from: string, to: string, most: number) => {
  const { stepNs, firstNs, count } = bucketsOf({ fromNs: at(from), toNs: at(to) }, most);
  return [Number(stepNs) / 1e9, nsToRfc3339(firstNs).replace(".000000000", ""), count];
};

describe("buckets", () => {
  test.each([
    ["2026-01-05T10:00:03Z", "2026-01-05T11:00:00Z", 60, [60, "2026-01-05T10:00:00Z", 60]],
    ["2026-01-05T10:00:00Z", "2026-01-05T10:00:00.000000001Z", 60, [1e-9, "2026-01-05T10:00:00Z", 1]],
    ["2026-01-05T10:00:00Z", "2026-01-05T10:00:00.000001Z", 10, [1e-7, "2026-01-05T10:00:00Z", 10]],
    ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", 31, [86_400, "2026-01-01T00:00:00Z", 31]],
    // 2026-01-05 is a Monday.
    ["2026-01-07T00:00:00Z", "2026-02-07T00:00:00Z", 10, [604_800, "2026-01-05T00:00:00Z", 5]],
    ["1969-12-31T23:59:59Z", "1970-01-01T00:00:01Z", 2, [1, "1969-12-31T23:59:59Z", 2]],
  ] as const)("%s to %s in %d", (from, to, most, expected) => {
    expect(shown(from, to, most)).toEqual(expected);
  });

  test("cover any range, with no more buckets than were asked for, and none that is beside it", () => {
    const moment = fc.bigInt({ min: -(2n ** 63n) + 1n, max: 2n ** 63n - 1n });
    fc.assert(
      fc.property(moment, moment, fc.integer({ min: 1, max: 1_000 }), (a, b, most) => {
        fc.pre(a !== b);
        const [fromNs, toNs] = a < b ? [a, b] : [b, a];
        const { stepNs, firstNs, count } = bucketsOf({ fromNs, toNs }, most);
        expect(count).toBeLessThanOrEqual(most);
        expect(firstNs <= fromNs && fromNs < firstNs + stepNs).toBe(true);
        const lastNs = firstNs + BigInt(count - 1) * stepNs;
        expect(lastNs < toNs && toNs <= lastNs + stepNs).toBe(true);
      }),
    );
  });
});
