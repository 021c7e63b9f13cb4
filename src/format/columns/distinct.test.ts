import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seededRandom } from "../../core/random.ts";
import type { Value } from "../tlm-decode.ts";
import { parseColumnType } from "../types.ts";
import { isBitSet, selectBits } from "./bits.ts";
import { appendValue } from "./column.test-kit.ts";
import { createColumn } from "./create.ts";
import { SAMPLE_VALUES } from "./distinct.ts";

/** Different values of each type for different numbers. */
const MAKERS: Readonly<Record<string, (n: number) => Value>> = {
  int: (n) => n - 1_000,
  long: (n) => BigInt(n) * 2n ** 32n + 7n,
  timestamp: (n) => 1_700_000_000_000_000_000n + BigInt(n),
  real: (n) => n / 8 - 100,
  string: (n) => `value ${n}`,
  dynamic: (n) => `{"n":${n}}`,
  "vector(3)": (n) => [n, 0.5, -n],
};
const TYPES = Object.keys(MAKERS);

/** The estimate for a column of these values. */
function distinctOf(type: string, values: readonly Value[], rows = values.length): number | undefined {
  const parsed = parseColumnType(type);
  if (parsed === undefined) throw new Error(type);
  const column = createColumn({ name: "c", type: parsed });
  for (const value of values) appendValue(column, value);
  return column.stats(rows).distinct;
}

function valuesOf(type: string, numbers: readonly (number | null)[]): Value[] {
  const make = MAKERS[type];
  if (make === undefined) throw new Error(type);
  return numbers.map((n) => (n === null ? null : make(n)));
}

function count(rows: number, numberOf: (row: number) => number | null): (number | null)[] {
  return Array.from({ length: rows }, (_, row) => numberOf(row));
}

describe("few values", () => {
  const numbers = fc.array(fc.option(fc.nat(300), { freq: 3 }), { maxLength: SAMPLE_VALUES });

  it.each(TYPES)("of %s are counted, nulls not", (type) => {
    fc.assert(
      fc.property(numbers, (list) => {
        const expected = new Set(list.filter((n) => n !== null)).size;
        expect(distinctOf(type, valuesOf(type, list), list.length + 3)).toBe(expected === 0 ? undefined : expected);
      }),
      { numRuns: 60 },
    );
  });

  it.each(TYPES)("of %s are counted however many rows have none", (type) => {
    const list = count(70_000, (row) => (row % 300 === 299 ? row % 7 : null));
    expect(distinctOf(type, valuesOf(type, list))).toBe(7);
  });

  it("of bool are counted however rare the other one is", () => {
    expect(distinctOf("bool", [true, null])).toBe(1);
    expect(distinctOf("bool", [false])).toBe(1);
    expect(distinctOf("bool", [...Array.from({ length: 9_999 }, () => true), false])).toBe(2);
    expect(distinctOf("bool", [null, null])).toBeUndefined();
  });

  it("are different when one byte of a text is, whichever and however long it is", () => {
    for (let length = 1; length < SAMPLE_VALUES; length++) {
      const base = "a".repeat(length);
      const changed = Array.from({ length }, (_, i) => `${base.slice(0, i)}b${base.slice(i + 1)}`);
      expect(distinctOf("string", [base, ...changed, base].slice(0, SAMPLE_VALUES))).toBe(length + 1);
    }
  });

  it("are different when only their number of zero bytes is", () => {
    const zeroes = Array.from({ length: 100 }, (_, length) => "\0".repeat(length));
    expect(distinctOf("string", zeroes)).toBe(100);
  });

  it("of long text are told apart by length, beginning and end", () => {
    const long = "é".repeat(5_000);
    expect(distinctOf("string", [long, `${long}x`, `x${long}`, `${long.slice(1)}x`, long])).toBe(4);
    expect(
      distinctOf(
        "string",
        Array.from({ length: 1_000 }, () => long),
      ),
    ).toBe(1);
    expect(distinctOf("string", ["a".repeat(256), `${"a".repeat(255)}b`, "a".repeat(257)])).toBe(3);
  });

  it("are one when they are equal as numbers, and two when only one half of 64 bits is", () => {
    expect(distinctOf("real", [0, -0])).toBe(1);
    expect(distinctOf("long", [1n, 2n ** 32n + 1n, 2n ** 32n])).toBe(3);
    expect(distinctOf("long", [-1n, 2n ** 32n - 1n, -(2n ** 63n), 2n ** 63n - 1n])).toBe(4);
  });
});

describe("many values", () => {
  const ROWS = [SAMPLE_VALUES + 1, 1_000, 3_700, 20_000];

  it.each(TYPES)("of %s that are all different are known for it", (type) => {
    for (const rows of ROWS) {
      expect(
        distinctOf(
          type,
          valuesOf(
            type,
            count(rows, (row) => row),
          ),
        ),
      ).toBe(rows);
      const half = valuesOf(
        type,
        count(rows * 2, (row) => (row % 2 === 0 ? row : null)),
      );
      expect(distinctOf(type, half)).toBe(rows);
    }
  });

  it.each(TYPES)("of %s that are all equal are known for it", (type) => {
    for (const rows of ROWS)
      expect(
        distinctOf(
          type,
          valuesOf(
            type,
            count(rows, () => 5),
          ),
        ),
      ).toBe(1);
  });

  it("are never estimated below one or above their number", () => {
    const column = fc.record({
      rows: fc.integer({ min: 1, max: 3_000 }),
      different: fc.integer({ min: 1, max: 3_000 }),
      exponent: fc.integer({ min: 1, max: 6 }),
      nulls: fc.integer({ min: 0, max: 3 }),
      seed: fc.nat(),
    });
    fc.assert(
      fc.property(column, ({ rows, different, exponent, nulls, seed }) => {
        const random = seededRandom(seed);
        const list = count(rows, () =>
          random.next() * 4 < nulls ? null : Math.floor(random.next() ** exponent * different),
        );
        const values = list.filter((n) => n !== null).length;
        // No value, no estimate: `undefined` is then taken for what it should be.
        const estimate = distinctOf("int", valuesOf("int", list)) ?? (values === 0 ? 0 : Number.NaN);
        expect(Number.isInteger(estimate)).toBe(true);
        expect(estimate).toBeGreaterThanOrEqual(Math.min(1, values));
        expect(estimate).toBeLessThanOrEqual(values);
      }),
      { numRuns: 200 },
    );
  });

  // An estimate is of a sample: one draw in eight would miss a factor by a little.
  const random = seededRandom(42);
  const below = (bound: number) => Math.floor(random.next() * bound);
  it.each<[string, number, (row: number) => number]>([
    ["8 at random", 1.01, () => below(8)],
    ["64 at random", 1.15, () => below(64)],
    ["500 at random", 1.4, () => below(500)],
    ["3,000 at random", 1.5, () => below(3_000)],
    ["100,000 at random", 1.5, () => below(100_000)],
    ["64 in turn", 1.15, (row) => row % 64],
    ["1,000 in turn", 1.5, (row) => row % 1_000],
    ["runs of 4", 2, (row) => row >> 2],
    ["runs of 14", 1.5, (row) => Math.floor(row / 14)],
    ["half of them one", 1.5, (row) => (row % 2 === 0 ? 0 : row)],
  ])("%s are estimated within a factor of %d", (_, factor, numberOf) => {
    const list = count(3_700, numberOf);
    const estimate = distinctOf("long", valuesOf("long", list)) ?? 0;
    const ratio = estimate / new Set(list).size;
    expect(Math.max(ratio, 1 / ratio)).toBeLessThan(factor);
  });

  it("give the same estimate where rows without one lie between them", () => {
    const numbers = count(5_000, () => below(700));
    const spread = numbers.flatMap((n, i) => [...Array.from({ length: i % 19 }, () => null), n]);
    const dense = distinctOf("string", valuesOf("string", numbers));
    expect(distinctOf("string", valuesOf("string", [null, null, ...spread]), spread.length + 99)).toBe(dense);
  });
});

describe("the bit of a rank", () => {
  it("is the one with so many set bits before it", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fc.array(fc.nat(320)), (bits, wanted) => {
        const set = Array.from({ length: bits.length * 8 }, (_, i) => i).filter((i) => isBitSet(bits, i));
        const ranks = Int32Array.from(new Set(wanted.filter((rank) => rank < set.length))).sort();
        const expected = Array.from(ranks, (rank) => set[rank]);
        selectBits(bits, ranks);
        expect([...ranks]).toEqual(expected);
      }),
    );
  });
});
