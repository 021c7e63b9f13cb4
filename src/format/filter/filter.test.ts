import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { drawnRandom, drawnSeed } from "../../core/drawn-seed.test-kit.ts";
import { seededRandom } from "../../core/random.ts";
import { addHash, MAX_BLOCKS } from "./block-bloom.ts";
import { emptyFilter, filterBytes, mayHold, sealFilter } from "./filter.ts";
import { textsOf } from "./filter.test-kit.ts";
import { buildGramFilter, GRAM_BYTES, GramFilterBuilder } from "./gram-filter.ts";
import { hashRange, mixed } from "./hash.ts";
import { probeNeedles, probeValues } from "./probes.ts";
import { buildValueFilter, valueFilterBytes } from "./value-filter.ts";

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc.string({ minLength: 250, maxLength: 1_100 }),
  fc.constantFrom("", "\0", "\0\0\0\0", "abc", "abcd", "é", "🚀", "東京都", "a".repeat(300)),
);
const texts = fc.array(text, { minLength: 1, maxLength: 120 });

function mayHoldValues(filter: Uint8Array, values: readonly string[]): boolean {
  const probe = probeValues(values);
  return probe === undefined || mayHold(filter, probe);
}

function mayHoldNeedles(filter: Uint8Array | undefined, needles: readonly string[]): boolean {
  const probe = probeNeedles(needles);
  return probe === undefined || filter === undefined || mayHold(filter, probe);
}

const SEED = drawnSeed();

function hexIds(count: number, seed: number): string[] {
  const random = seededRandom(seed);
  const word = () =>
    Math.floor(random.next() * 2 ** 32)
      .toString(16)
      .padStart(8, "0");
  return Array.from({ length: count }, () => word() + word() + word() + word());
}

/** The part of absent values that the filter of the present ones lets pass. */
function passing(present: readonly string[], absent: readonly string[], distinct = present.length): number {
  const filter = buildValueFilter(textsOf(present), present.length, distinct);
  return absent.filter((value) => mayHoldValues(filter, [value])).length / absent.length;
}

describe("filters of values", () => {
  it("never say that a value is missing which is there", () => {
    fc.assert(
      fc.property(texts, fc.nat(150), (values, distinct) => {
        const filter = buildValueFilter(textsOf(values), values.length, distinct);
        for (const value of values) expect(mayHoldValues(filter, ["some other", value])).toBe(true);
      }),
    );
  });

  it("never do so after they were halved", () => {
    const random = drawnRandom();
    for (const different of [1, 40, 300, 900, 2_500, 8_000]) {
      const values = Array.from({ length: 8_000 }, () => `user ${Math.floor(random.next() * different)}`);
      const filter = buildValueFilter(textsOf(values), values.length, different);
      expect(values.every((value) => mayHoldValues(filter, [value]))).toBe(true);
      const isSmaller = filter.length < valueFilterBytes(values.length) / 3;
      expect(isSmaller).toBe(different <= 900);
    }
  });

  it.each<[string, (count: number, seed: number) => string[]]>([
    ["random ids", hexIds],
    ["numbers in order", (count, seed) => Array.from({ length: count }, (_, i) => String(seed * 1_000_000 + i))],
    [
      "UUIDv7",
      (count, seed) => hexIds(count, seed).map((hex) => `0190a000-0000-7${hex.slice(0, 3)}-${hex.slice(3, 19)}`),
    ],
    ["paths", (count, seed) => Array.from({ length: count }, (_, i) => `/api/users/${seed * 77_777 + i * 3}/orders`)],
    [
      "long texts alike",
      (count, seed) => hexIds(count, seed).map((hex) => `${"x".repeat(300)}${hex}${"y".repeat(300)}`),
    ],
  ])("let about 0.8 %% of absent %s pass", (_, make) => {
    const rate = passing(make(8_000, SEED + 1), make(20_000, SEED + 2));
    expect(rate).toBeGreaterThan(0.003);
    expect(rate).toBeLessThan(0.013);
  });

  it.each([1_500, 60_000, 190_000])("let as few pass when %i were added", (count) => {
    expect(passing(hexIds(count, SEED + 1), hexIds(20_000, SEED + 2))).toBeLessThan(0.013);
  });

  it("let few pass when values repeat, whatever the estimate of them", () => {
    const ids = hexIds(2_000, SEED + 1);
    const values = Array.from({ length: 16_000 }, (_, i) => ids[(i * 7) % ids.length] ?? "");
    for (const estimate of [300, 2_000, 16_000])
      expect(passing(values, hexIds(20_000, SEED + 2), estimate)).toBeLessThan(0.02);
  });

  it("take 11 bits a value", () => {
    expect(buildValueFilter(textsOf(hexIds(8_000, SEED + 1)), 8_000, 8_000).length).toBe(valueFilterBytes(8_000));
    expect(valueFilterBytes(8_000) * 8).toBeLessThan(8_000 * 11.1);
    expect(valueFilterBytes(1e9)).toBe(filterBytes(MAX_BLOCKS));
  });

  it("tell an empty value from none at all", () => {
    const ids = hexIds(1_000, SEED + 1);
    expect(mayHoldValues(buildValueFilter(textsOf([...ids, ""]), 1_001, 1_001), [""])).toBe(true);
    expect(mayHoldValues(buildValueFilter(textsOf(ids), 1_000, 1_000), [""])).toBe(false);
  });

  it("are asked for any of a list, and not for lists that are too long", () => {
    const ids = hexIds(1_000, SEED + 1);
    const filter = buildValueFilter(textsOf(ids), 1_000, 1_000);
    expect(mayHoldValues(filter, ["gone", "away", ids[7] ?? ""])).toBe(true);
    expect(mayHoldValues(filter, ["gone", "away"])).toBe(false);
    expect(mayHoldValues(filter, [])).toBe(false);
    expect(probeValues(hexIds(1_025, SEED + 2))).toBeUndefined();
  });
});

describe("filters of grams", () => {
  it("never say that a needle is missing which is there", () => {
    fc.assert(
      fc.property(texts, fc.nat(), fc.nat(), fc.nat(), (values, which, from, length) => {
        const filter = buildGramFilter(textsOf(values));
        const value = values[which % values.length] ?? "";
        const start = from % (value.length + 1);
        const needle = value.slice(start, start + 1 + (length % 400));
        // Half a character is in no text of UTF-8, and nobody can ask for one.
        expect(!needle.isWellFormed() || mayHoldNeedles(filter, [needle, value])).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it("find needles inside of words and across them, and tell what is in none", () => {
    const values = ["connection timeout after 30s", "naïve Zürich 東京", "", "abc"];
    const filter = buildGramFilter(textsOf(values));
    const asked = (needle: string): boolean => mayHoldNeedles(filter, [needle]);
    expect(["timeout", "time", "n tim", "30s", "東京", "ürich", "e Z"].map(asked)).not.toContain(false);
    expect(["refused", "Timeout", "timeouts", "東京都", "urich"].map(asked)).not.toContain(true);
    // The end of one value and the beginning of the next are no text.
    expect(asked("30snaïve")).toBe(false);
    expect(mayHoldNeedles(filter, ["timeout", "refused"])).toBe(false);
  });

  it("say nothing about needles of fewer than four bytes", () => {
    expect(probeNeedles(["", "abc", "é", "東"])).toBeUndefined();
    expect(probeNeedles(["abc", "abcd"])?.anyOf[0]).toHaveLength(1);
    expect(probeNeedles(["x".repeat(1_000_000)])?.anyOf[0]).toHaveLength(1);
    expect(probeNeedles([hexIds(3_000, SEED + 1).join("")])?.anyOf[0]?.length).toBeLessThanOrEqual(256);
  });

  it("have exactly the grams of all texts, however they lie in them", () => {
    // Few letters make the same sequences come again in all places.
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "\0", "é"), maxLength: 30 });
    fc.assert(
      fc.property(fc.array(fc.oneof(letters, text), { minLength: 1, maxLength: 60 }), (values) => {
        const grams = new Set([0]);
        for (const bytes of values.map((value) => Buffer.from(value))) {
          for (let at = 0; at + GRAM_BYTES <= bytes.length; at++) grams.add(mixed(bytes.readInt32LE(at)));
        }
        const blocks = Math.ceil((grams.size * 8) / 256);
        const filter = emptyFilter("grams", blocks);
        for (const gram of grams) addHash(filter.words, blocks, gram);
        expect(buildGramFilter(textsOf(values))).toEqual(sealFilter(filter.bytes, blocks));
      }),
    );
  });

  it("have those of bytes that are no text, whatever doubles they are", () => {
    const values = ["0000000000000000", "0000000000000080", "ffffffffffffffff", "010000000000f87f", "020000000000f87f"];
    const filter = buildGramFilter(textsOf(values.map((hex) => Buffer.from(hex, "hex")))) ?? new Uint8Array(0);
    for (const hex of values) {
      const bytes = Buffer.from(hex, "hex");
      const grams = [0, 1, 2, 3, 4].map((at) => mixed(bytes.readInt32LE(at)));
      expect(mayHold(filter, { kind: "grams", anyOf: [grams] })).toBe(true);
    }
    expect(mayHold(filter, { kind: "grams", anyOf: [[mixed(0x03030303)]] })).toBe(false);
  });

  it("come with a hash of each text, which is the same when there are too many grams", () => {
    const base = "request handled in time for user with cache miss, ";
    const marked = (at: readonly number[]): string => {
      const bytes = Buffer.from(base);
      for (const i of at) bytes[i] = 0x23;
      return bytes.toString();
    };
    // Of as many texts, one time in nine two have one hash of 32 bits: not of these.
    const different = new Set([...hexIds(10_000, 2), ...hexIds(50, 3).map((id) => id.slice(0, 7))]);
    // Numbers that follow each other, where windows end and where they do not.
    for (let i = 0; i < 20_000; i++) different.add(`${"a".repeat(60 + (i % 5))}${String(i).padStart(8, "0")}`);
    // Different in length, in one byte, and in two.
    for (let i = 0; i < base.length; i++) {
      different.add(base.slice(0, i));
      for (let j = i; j < base.length; j++) different.add(marked([i, j]));
    }
    const hashesBy = (builder: GramFilterBuilder): number[] =>
      Array.from(different, (value) => {
        const bytes = Buffer.from(`..${value}..`);
        return builder.add(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), 2, bytes.length - 2);
      });
    const builder = new GramFilterBuilder(1 << 20);
    const hashes = hashesBy(builder);
    expect(builder.isFull).toBe(false);
    expect(new Set(hashes).size).toBe(different.size);
    const small = new GramFilterBuilder(1 << 6);
    expect(hashesBy(small)).toEqual(hashes);
    expect([small.isFull, small.finish()]).toEqual([true, undefined]);
  });

  it("are not made of text with too many different grams", () => {
    expect(
      buildGramFilter(textsOf(hexIds(20_000, SEED + 1).map((id) => Buffer.from(id, "hex").toString("latin1")))),
    ).toBe(undefined);
    expect(buildGramFilter(textsOf(["", "abc"]))?.length).toBe(filterBytes(1));
  });
});

describe("stored filters", () => {
  const ids = hexIds(1_000, SEED + 1);
  const filter = buildValueFilter(textsOf(ids), 1_000, 1_000);
  const absent = probeValues(["absent"]) ?? { kind: "values", anyOf: [] };

  it("are asked wherever they lie in memory", () => {
    for (let shift = 0; shift < 8; shift++) {
      const moved = new Uint8Array(filter.length + shift);
      moved.set(filter, shift);
      expect(mayHold(moved.subarray(shift), absent)).toBe(false);
      expect(ids.every((id) => mayHoldValues(moved.subarray(shift), [id]))).toBe(true);
    }
  });

  it("may hold anything when a bit of them is wrong", () => {
    fc.assert(
      fc.property(fc.nat(filter.length * 8 - 1), (bit) => {
        const damaged = filter.slice();
        damaged[bit >>> 3] = (damaged[bit >>> 3] ?? 0) ^ (1 << (bit & 7));
        expect(mayHold(damaged, absent)).toBe(true);
      }),
    );
  });

  it("may hold anything when they are cut short, too long, or something else", () => {
    for (let length = 0; length < filter.length; length++) {
      if (!mayHold(filter.subarray(0, length), absent)) throw new Error(`${length} bytes`);
    }
    expect(mayHold(new Uint8Array([...filter, 0]), absent)).toBe(true);
    expect(mayHold(new Uint8Array(filterBytes(4)), absent)).toBe(true);
    expect(mayHold(filter, { ...absent, kind: "grams" })).toBe(true);
    const { bytes } = emptyFilter("values", 2);
    bytes[0] = 2;
    expect(mayHold(sealFilter(bytes, 2), absent)).toBe(true);
    expect(mayHold(sealFilter(emptyFilter("values", 2).bytes, 2), absent)).toBe(false);
  });

  it("are hashed by MurmurHash3, whose values are known", () => {
    const hash = (value: string): number => {
      const bytes = new TextEncoder().encode(value);
      return hashRange(new DataView(bytes.buffer), 0, bytes.length) >>> 0;
    };
    expect(hash("")).toBe(0);
    expect(hash("test")).toBe(0xba6bd213);
    expect(hash("Hello, world!")).toBe(0xc0363e43);
    expect(hash("The quick brown fox jumps over the lazy dog")).toBe(0x2e4ff723);
  });

  it("have the bytes they always had: those that are stored are asked by later versions", () => {
    const small = buildValueFilter(textsOf(["a", "bc", "été", ""]), 4, 4);
    expect(Buffer.from(small).toString("base64")).toMatchInlineSnapshot(
      `"AQEAAAEAAAABAAAAAQAAAAEAAAABAAAAAQAAAAEAAAABAAAAIEAAAAAAgEAEAQAACAAAIAQAACACAAAEAgEAAABEAAAEAAAAAQAAAAgAAAAAAEAAAgAAAACAAAAAAAAQAAAAAgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAADCzBEu"`,
    );
  });
});
