import * as fc from "fast-check";
import { expect, test } from "vitest";
import { hasFinerTimes } from "./parquet-times.ts";

/** As a column of an extent has them: NULL takes the place of a value, and may be anything. */
function columnOf(times: readonly (bigint | null)[], underNull = 1n) {
  const values = new Uint8Array(BigInt64Array.from(times, (ns) => ns ?? underNull).buffer);
  const nullCount = times.filter((ns) => ns === null).length;
  const validity = new Uint8Array(Math.ceil(times.length / 8));
  for (const [row, ns] of times.entries())
    if (ns !== null) validity[row >> 3] = (validity[row >> 3] ?? 0) | (1 << (row & 7));
  return { nullCount, validity: nullCount === 0 ? new Uint8Array(0) : validity, values };
}

const MAX = 2n ** 63n - 1n;

test("times are as fine as they are, before 1970 too", () => {
  const time = fc.oneof(fc.bigInt({ min: -MAX, max: MAX }), fc.constantFrom(MAX, -MAX, 0n, -1n, 1_000n, -8n));
  fc.assert(
    fc.property(fc.array(fc.option(time), { maxLength: 40 }), fc.boolean(), (times, areWhole) => {
      const all = areWhole ? times.map((ns) => (ns === null ? null : ns - (ns % 1_000n))) : times;
      const isFiner = all.some((ns) => ns !== null && ns % 1_000n !== 0n);
      expect(hasFinerTimes(columnOf(all), all.length)).toBe(isFiner);
    }),
  );
});

test("infinity is no number of microseconds", () => {
  expect(hasFinerTimes(columnOf([0n, MAX]), 2)).toBe(true);
  expect(hasFinerTimes(columnOf([0n, -MAX]), 2)).toBe(true);
});
