import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeTlm } from "../tlm.ts";
import { decodeTlm, type Value } from "../tlm-decode.ts";
import { parseColumnType, type ColumnSpec, type ColumnStats } from "../types.ts";
import { ColumnSet } from "./column-set.ts";
import { appendValue } from "./column.test-kit.ts";
import { createColumn, type AnyColumn } from "./create.ts";
import { lowerBound, upperBound } from "./text-bounds.ts";

const TYPES = ["bool", "int", "long", "real", "string", "timestamp", "dynamic", "vector(3)"];

function spec(name: string, type: string): ColumnSpec {
  const parsed = parseColumnType(type);
  if (parsed === undefined) throw new Error(type);
  return { name, type: parsed };
}

const TABLE = [spec("at", "timestamp"), ...TYPES.map((type) => spec(type, type))];

/** A value for whatever type, derived from a number. */
function append(column: AnyColumn, seed: number): void {
  switch (column.storage) {
    case "bool":
      return column.appendBool(seed % 2 === 0);
    case "int":
      return column.appendInt(seed);
    case "long":
      return seed % 3 === 0 ? column.appendWords(-1, seed) : column.appendLong(BigInt(seed) * 10_000_000_000n);
    case "real":
      return column.appendReal(seed / 7);
    case "text":
      if (seed % 2 === 0) return column.appendText(`${"é😀a".repeat(seed % 40)}${seed}`);
      return column.appendBytes(new TextEncoder().encode("x".repeat(seed % 90)), 0, seed % 90);
    case "vector":
      return column.appendVector(Float32Array.of(seed, -seed, 0.5));
  }
}

/** One row: for each of some columns a seed, undefined for NULL. */
type RowSeeds = (number | undefined)[];

function write(set: ColumnSet, rows: readonly RowSeeds[]): void {
  for (const row of rows) {
    set.time.appendLong(BigInt(set.rows));
    row.forEach((seed, i) => {
      const column = set.columns[i + 1];
      if (column === undefined || seed === undefined) return;
      column.padTo(set.rows);
      append(column, seed);
    });
    set.rows++;
  }
}

const seeds = fc.option(fc.integer({ min: 0, max: 2 ** 31 - 1 }), { nil: undefined, freq: 2 });
const rows = fc.array(fc.array(seeds, { maxLength: TABLE.length - 1 }), { maxLength: 150 });

const utf8 = (text: string) => new TextEncoder().encode(text);
const order = (a: string, b: string) => Buffer.compare(utf8(a), utf8(b));

describe("savepoints", () => {
  it("leave no trace of what was rolled back", () => {
    fc.assert(
      fc.property(rows, rows, rows, (before, dropped, after) => {
        const touched = new ColumnSet(TABLE);
        write(touched, before);
        touched.mark();
        touched.addColumn(spec("new", "string"));
        write(
          touched,
          dropped.map((row) => [...row, 1]),
        );
        touched.rollback();
        const untouched = new ColumnSet(TABLE);
        write(untouched, before);
        expect(touched.find("NEW")).toBe(-1);
        for (const set of [touched, untouched]) write(set, after);
        expect(touched.columns.map((column) => column.stats(touched.rows))).toEqual(
          untouched.columns.map((column) => column.stats(untouched.rows)),
        );
        expect(touched.newColumns).toEqual([]);
        expect(Buffer.compare(encodeTlm(touched), encodeTlm(untouched))).toBe(0);
      }),
      { numRuns: 60 },
    );
  });
});

describe("growth", () => {
  // Padding makes buffers of odd sizes; each must keep room for validity and values alike.
  it.each(TYPES)("keeps every row of %s after a gap of any size", (type) => {
    for (let gap = 0; gap < 260; gap += 3) {
      const column = createColumn(spec("c", type));
      column.padTo(gap);
      for (let i = 0; i < 300; i++) append(column, i);
      const missing = Array.from({ length: 300 }, (_, i) => gap + i).filter((row) => !column.isValid(row));
      expect([column.rows, column.nullCount, missing]).toEqual([gap + 300, gap, []]);
      expect(column.isValid(gap - 1) || column.isValid(column.rows)).toBe(false);
    }
  });

  it("keeps text of every length around the sizes that are treated apart", () => {
    const texts = [0, 1, 47, 48, 49, 4_095, 4_096, 4_097, 100_000].flatMap((n) => [
      "a".repeat(n),
      "ß".repeat(n),
      "😀".repeat(n),
    ]);
    const set = new ColumnSet([spec("at", "timestamp"), spec("s", "string")]);
    for (const text of texts) {
      set.time.appendLong(0n);
      const column = set.columns[1];
      if (column?.storage === "text") column.appendText(text);
      set.rows++;
    }
    expect(decodeTlm(encodeTlm(set)).columns[1]?.values).toEqual(texts);
  });
});

describe("column set", () => {
  it("finds names exactly, then without regard to ASCII case", () => {
    const set = new ColumnSet([spec("At", "timestamp"), spec("É", "string"), spec("user", "string")]);
    expect([set.find("At"), set.find("AT"), set.find("USER"), set.find("é"), set.find("nope")]).toEqual([
      0, 0, 2, -1, -1,
    ]);
    expect(set.timeIndex).toBe(0);
  });

  it("does not take a table without a time column", () => {
    expect(() => new ColumnSet([spec("label", "string")])).toThrow("'at'");
    expect(() => new ColumnSet([spec("at", "string")])).toThrow("'at'");
  });

  it("stops at 2,000 columns", () => {
    const set = new ColumnSet([
      spec("at", "timestamp"),
      ...Array.from({ length: 1_998 }, (_, i) => spec(`c${i}`, "int")),
    ]);
    expect(set.addColumn(spec("last", "string"))).toBe(1_999);
    expect(set.addColumn(spec("beyond", "string"))).toBe(-1);
    expect(set.find("beyond")).toBe(-1);
  });
});

/** Statistics of column `c`. */
function bounds(nullCount: number, distinct?: number, min?: string, max?: string): ColumnStats {
  const stats: ColumnStats = { name: "c", nullCount };
  if (distinct !== undefined) stats.distinct = distinct;
  if (min !== undefined) stats.min = min;
  if (max !== undefined) stats.max = max;
  return stats;
}

describe("statistics", () => {
  it.each<[string, Value[], ColumnStats]>([
    [
      "long",
      [-5n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 32n - 1n, null],
      bounds(3, 4, `${-(2n ** 63n)}`, `${2n ** 63n - 1n}`),
    ],
    ["timestamp", [1n, null, -1n], bounds(3, 2, "-1", "1")],
    ["int", [null, 3, 10, 9], bounds(3, 3, "3", "10")],
    ["real", [-1e-7, 1e21, -0], bounds(2, 3, "-1e-7", "1e+21")],
    ["bool", [true, null], bounds(3, 1, "true", "true")],
    ["bool", [true, false], bounds(2, 2, "false", "true")],
    ["string", ["b", "", "😀", "\uffff", null], bounds(3, 4, "", "😀")],
    ["string", ["\u0000"], bounds(2, 1, "\u0000", "\u0000")],
    ["string", [null], bounds(3)],
    ["string", [], bounds(2)],
    ["dynamic", ["1"], bounds(2, 1)],
    ["vector(3)", [[1, 2, 3]], bounds(2, 1)],
  ])(
    "of a %s column bound values by their own order, and count different ones, and nulls to the end",
    (type, values, expected) => {
      const column = createColumn(spec("c", type));
      for (const value of values) appendValue(column, value);
      expect(column.stats(values.length + 2)).toEqual(expected);
    },
  );

  // Halves at and around their sign bits, so that neighbours often differ in one half only.
  const half = fc.constantFrom(0n, 1n, 2n ** 31n - 1n, 2n ** 31n, 2n ** 32n - 1n);
  const long = fc.tuple(half, half).map(([high, low]) => BigInt.asIntN(64, high * 2n ** 32n + low));

  it("compares longs as integers, whatever the halves", () => {
    fc.assert(
      fc.property(fc.array(long, { minLength: 1 }), (values) => {
        const column = createColumn(spec("c", "long"));
        if (column.storage !== "long") throw new Error("not a long column");
        for (const value of values) column.appendWords(Number(value >> 32n), Number(value & 0xffff_ffffn));
        const sorted = values.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
        expect(column.range()).toEqual({ min: sorted[0], max: sorted.at(-1) });
      }),
    );
  });

  const text = fc.string({ unit: "binary", maxLength: 12 }).filter((value) => value.isWellFormed());

  it("of text are the least and the greatest by their bytes, however much they have in common", () => {
    const shared = fc.constantFrom("", "GET ", "GET /api/items/", "same prefix of more than eight");
    const text = fc.tuple(
      shared,
      fc.string({ unit: fc.constantFrom("a", "b", "\u0000", "é", "\u{1f989}"), maxLength: 6 }),
    );
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 20 }), (pairs) => {
        const values = pairs.map(([prefix, rest]) => Buffer.from(prefix + rest));
        const column = createColumn(spec("c", "string"));
        if (column.storage !== "text") throw new Error("no text column");
        for (const value of values) column.appendBytes(value, 0, value.length);
        const sorted = values.toSorted((a, b) => Buffer.compare(a, b)).map(String);
        expect(column.stats(values.length)).toMatchObject({ min: sorted[0], max: sorted.at(-1) });
      }),
      { numRuns: 500 },
    );
  });

  it("cut text to valid bounds of few bytes", () => {
    fc.assert(
      fc.property(
        text,
        fc.integer({ min: 4, max: 20 }),
        fc.string({ unit: "binary", maxLength: 3 }),
        (value, limit, tail) => {
          const low = lowerBound(utf8(value), limit);
          const high = upperBound(utf8(value), limit);
          expect(Buffer.byteLength(low)).toBeLessThanOrEqual(limit);
          expect(order(low, value)).toBeLessThanOrEqual(0);
          if (high === undefined) return;
          expect(high.isWellFormed()).toBe(true);
          expect(Buffer.byteLength(high)).toBeLessThanOrEqual(limit);
          expect(order(high, value)).toBeGreaterThanOrEqual(0);
          const longer = value + tail;
          const isCut = Buffer.byteLength(value) > limit && longer.isWellFormed();
          expect(isCut ? order(high, longer) : 1).toBeGreaterThan(0);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it.each([
    ["a".repeat(65), `${"a".repeat(63)}b`],
    ["a".repeat(64), "a".repeat(64)],
    [`${"a".repeat(63)}\u007fx`, `${"a".repeat(62)}b`],
    [`${"a".repeat(61)}\ud7ffx`, `${"a".repeat(61)}\ue000`],
    [`${"a".repeat(63)}éx`, `${"a".repeat(62)}b`],
    ["\u{10ffff}".repeat(17), undefined],
    [`b${"\u{10ffff}".repeat(16)}`, "c"],
  ])("round %j up", (value, bound) => expect(upperBound(utf8(value), 64)).toBe(bound));
});

describe("a row that is taken back", () => {
  it.each(TYPES)("leaves no trace in a column of %s", (type) => {
    for (const before of [0, 1, 7, 8, 63, 64, 65]) {
      for (const gap of [0, 1, 9]) {
        const [touched, untouched] = [createColumn(spec("c", type)), createColumn(spec("c", type))];
        for (const column of [touched, untouched]) for (let i = 0; i < before; i++) append(column, i);
        touched.padTo(before + gap);
        append(touched, 1_000_003);
        touched.dropRow(before + gap);
        expect([touched.rows, touched.nullCount, touched.isValid(before + gap)]).toEqual([before + gap, gap, false]);
        // Nothing there to take back: nothing happens.
        touched.dropRow(before + gap);
        touched.dropRow(before + gap + 5);
        for (const column of [touched, untouched]) {
          column.padTo(before + gap + 1);
          append(column, 5);
          column.padTo(before + gap + 9);
        }
        const rows = before + gap + 9;
        expect(touched.stats(rows)).toEqual(untouched.stats(rows));
        expect(touched.validityBytes(0, rows)).toEqual(untouched.validityBytes(0, rows));
        expect(buffersOf(touched, rows)).toEqual(buffersOf(untouched, rows));
      }
    }
  });

  it("does not take its columns' place in the extent", () => {
    const set = new ColumnSet([spec("at", "timestamp"), spec("l", "long"), spec("s", "string")], 250_000);
    for (let i = 0; i < 10_000; i++) {
      for (const column of set.columns.slice(1)) {
        set.ready(column);
        // Now and then the value turns out not to fit when the column is ready for it.
        if (i % 3 === 0) append(column, i);
        set.takeBack(column);
        set.takeBack(column);
      }
      set.ready(set.time);
      set.time.appendLong(1n);
      set.endRow();
    }
    expect([set.rows, ...set.columns.map((column) => column.hasValues)]).toEqual([10_000, true, false, false]);
  });

  it("nor does what was rolled back", () => {
    const set = new ColumnSet([spec("at", "timestamp"), spec("l", "long")], 100 * 1_024);
    for (let i = 0; i < 5_000; i++) {
      set.mark();
      for (const column of set.columns.slice(1)) {
        set.ready(column);
        append(column, i);
      }
      set.ready(set.time);
      set.time.appendLong(1n);
      set.endRow();
      set.rollback();
      set.ready(set.time);
      set.time.appendLong(1n);
      set.endRow();
    }
    expect(set.rows).toBe(5_000);
  });

  it("does not count against the extent for a value that never comes", () => {
    const set = new ColumnSet([spec("at", "timestamp"), spec("l", "long")], 100 * 1_024);
    const [, long] = set.columns;
    if (long === undefined) throw new Error("no column");
    for (let i = 0; i < 5_000; i++) {
      set.ready(long);
      set.ready(set.time);
      set.time.appendLong(1n);
      set.endRow();
    }
    expect([set.rows, long.hasValues]).toEqual([5_000, false]);
  });
});

/** All that an extent takes of a column. */
function buffersOf(column: AnyColumn, rows: number): unknown[] {
  if (column.storage === "text") return [column.offsets(0, rows), column.bytes()];
  return [column.values(0, rows)];
}

describe("text written in place", () => {
  it("is the same as text appended, whatever the room that was asked for", () => {
    const values = fc.array(fc.tuple(fc.string({ unit: "grapheme", maxLength: 90 }), fc.nat(600), fc.nat(4)), {
      maxLength: 40,
    });
    fc.assert(
      fc.property(values, (list) => {
        const [inPlace, appended] = [createColumn(spec("c", "string")), createColumn(spec("c", "string"))];
        if (inPlace.storage !== "text" || appended.storage !== "text") throw new Error("no text column");
        for (const [value, more, kind] of list) {
          const bytes = utf8(value);
          const { target, from } = inPlace.room(bytes.length + more);
          expect(target.length).toBeGreaterThanOrEqual(from + bytes.length + more);
          target.set(bytes, from);
          if (kind === 0) {
            // Given up: what was written there must not show.
            target.fill(0x7a, from, from + bytes.length + more);
            inPlace.appendText(value);
          } else {
            inPlace.endText(from + bytes.length);
          }
          if (kind === 1) {
            inPlace.dropRow(inPlace.rows - 1);
            inPlace.appendBytes(bytes, 0, bytes.length);
          }
          appended.appendText(value);
        }
        expect(buffersOf(inPlace, list.length)).toEqual(buffersOf(appended, list.length));
        expect(inPlace.stats(list.length)).toEqual(appended.stats(list.length));
      }),
      { numRuns: 300 },
    );
  });

  it("ends at the quote, or at what it does not take, for every length and place", () => {
    const column = createColumn(spec("c", "string"));
    if (column.storage !== "text") throw new Error("no text column");
    const values: string[] = [];
    for (let length = 0; length < 70; length++) {
      for (const [stop, isTaken] of [
        ['"', true],
        ["\\", false],
        ["\u001f", false],
        ["\n", false],
        ["\u0000", false],
      ] as const) {
        const value = "!\u007f#é~".repeat(20).slice(0, length);
        const source = Buffer.from(`${"x".repeat(length % 5)}${value}${stop}"\\\n${"y".repeat(8)}`);
        const start = length % 5;
        const end = start + Buffer.byteLength(value);
        const view = new DataView(source.buffer, source.byteOffset, source.byteLength);
        expect(column.appendQuoted(view, start), `${length} ${JSON.stringify(stop)}`).toBe(isTaken ? end : -1);
        if (isTaken) values.push(value);
        expect(column.rows).toBe(values.length);
      }
    }
    expect(Buffer.from(column.bytes()).toString("utf8")).toBe(values.join(""));
  });

  it("is taken where it is UTF-8, for every length and place", () => {
    const column = createColumn(spec("c", "string"));
    if (column.storage !== "text") throw new Error("no text column");
    const values: string[] = [];
    for (const length of [...Array(70).keys(), 255, 256, 257, 5_000]) {
      for (const [place, taken] of [
        ["", true],
        ["\u0000\n", true],
        ["\u{1f989}", true],
        [Buffer.from([0xff]), false],
        [Buffer.from([0xc3]), false],
      ] as const) {
        const at = (length * 7) % (length + 1);
        const value = Buffer.concat([Buffer.alloc(at, "a"), Buffer.from(place), Buffer.alloc(length - at, "b")]);
        const source = Buffer.concat([Buffer.alloc(length % 3, 0xff), value, Buffer.from([0xff])]);
        const view = new DataView(source.buffer, source.byteOffset, source.byteLength);
        const start = length % 3;
        expect(column.appendUtf8(view, start, start + value.length), `${length} ${String(place)}`).toBe(taken);
        if (taken) values.push(value.toString());
        expect(column.rows).toBe(values.length);
      }
    }
    expect(Buffer.from(column.bytes()).toString("utf8")).toBe(values.join(""));
  });

  it("is the hexadecimal digits of bytes", () => {
    const column = createColumn(spec("c", "string"));
    if (column.storage !== "text") throw new Error("no text column");
    const source = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    for (let start = 0; start < 256; start += 5) column.appendHex(source, start, 256);
    const texts = Array.from({ length: 52 }, (_, i) => source.subarray(i * 5).toString("hex"));
    expect(Buffer.from(column.bytes()).toString("utf8")).toBe(texts.join(""));
  });
});
