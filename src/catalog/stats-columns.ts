import { grown } from "../format/columns/growth.ts";
import type { ColumnStats, ColumnType } from "../format/types.ts";
import { INT64_MAX, INT64_MIN } from "./int64.ts";
import type { StatsTest, StatValue, ValueRange } from "./stats-predicates.ts";

/**
 * Statistics of one column over many extents, in typed arrays, and tests compiled to read them: no object per extent,
 * and no parsing after the first time.
 */
export interface StatsColumn {
  /** Whether the row's statistics are here. */
  knows(row: number): boolean;
  /** Statistics of an extent of `rowCount` rows; undefined says that it lacks the column: its rows are all NULL. */
  set(row: number, rowCount: number, stats: ColumnStats | undefined): void;
  hasNulls(row: number): boolean;
  hasValues(row: number): boolean;
  /** Tests whether a value may lie in one of the ranges, which ascend and do not overlap. */
  within(ranges: readonly ValueRange[]): RowTest;
  grow(rows: number): void;
  readonly sizeBytes: number;
}

export function statsColumn(type: ColumnType, rows: number): StatsColumn {
  switch (type.kind) {
    case "bool":
    case "int":
    case "long":
    case "timestamp":
      return new BoundedColumn(rows, INTEGERS);
    case "real":
      return new BoundedColumn(rows, REALS);
    case "string":
      return new BoundedColumn(rows, TEXTS);
    case "dynamic":
    case "vector":
      return new BoundedColumn(rows, UNORDERED);
  }
}

/** Whether the extent in that row may have rows that pass. */
export type RowTest = (row: number) => boolean;

/** A test as a function; `columnOf` gives the statistics of a column, and what it does not know passes. */
export function compileTest(test: StatsTest, columnOf: (name: string) => StatsColumn | undefined): RowTest {
  if (test.kind === "all" || test.kind === "any") {
    const parts = test.of.map((part) => compileTest(part, columnOf));
    return test.kind === "all" ? (row) => parts.every((part) => part(row)) : (row) => parts.some((part) => part(row));
  }
  const column = columnOf(test.column);
  if (column === undefined) return () => true;
  if (test.kind === "null") return (row) => column.hasNulls(row);
  if (test.kind === "not_null" || test.kind === "contains") return (row) => column.hasValues(row);
  return column.within(test.ranges);
}

/** How values of a kind of column are kept, read and ordered. */
type Storage<T extends StatValue, A extends Bounds<T>> = {
  readonly make: (rows: number) => A;
  readonly grow: (from: A, rows: number) => A;
  /** A bound as the catalog stores it; undefined when it bounds nothing. */
  readonly read: (text: string) => T | undefined;
  readonly atMost: (a: T, b: T) => boolean;
  /** An end of a range; undefined when it is of another type, and so no end. */
  readonly bound: (value: StatValue) => T | undefined;
  readonly boundBytes: number;
};

type Bounds<T> = { [row: number]: T };

const KNOWN = 1;
const NULLS = 2;
const VALUES = 4;
const MIN = 8;
const MAX = 16;

class BoundedColumn<T extends StatValue, A extends Bounds<T>> implements StatsColumn {
  readonly #storage: Storage<T, A>;
  #flags: Uint8Array<ArrayBuffer>;
  #mins: A;
  #maxs: A;

  constructor(rows: number, storage: Storage<T, A>) {
    this.#storage = storage;
    this.#flags = new Uint8Array(rows);
    this.#mins = storage.make(rows);
    this.#maxs = storage.make(rows);
  }

  get sizeBytes(): number {
    return this.#flags.length * (1 + 2 * this.#storage.boundBytes);
  }

  knows(row: number): boolean {
    return ((this.#flags[row] ?? 0) & KNOWN) !== 0;
  }

  set(row: number, rowCount: number, stats: ColumnStats | undefined): void {
    const nullCount = stats?.nullCount ?? rowCount;
    let flags = KNOWN | (nullCount > 0 ? NULLS : 0) | (nullCount < rowCount ? VALUES : 0);
    const min = this.#read(stats?.min);
    const max = this.#read(stats?.max);
    if (min !== undefined) {
      flags |= MIN;
      this.#mins[row] = min;
    }
    if (max !== undefined) {
      flags |= MAX;
      this.#maxs[row] = max;
    }
    this.#flags[row] = flags;
  }

  hasNulls(row: number): boolean {
    return ((this.#flags[row] ?? 0) & NULLS) !== 0;
  }

  hasValues(row: number): boolean {
    return ((this.#flags[row] ?? 0) & VALUES) !== 0;
  }

  within(ranges: readonly ValueRange[]): RowTest {
    const { atMost, bound } = this.#storage;
    const mins = ranges.map(({ min }) => (min === undefined ? undefined : bound(min)));
    const maxs = ranges.map(({ max }) => (max === undefined ? undefined : bound(max)));
    /** Whether all that is at most `a` is below all that is at least `b`. */
    const isBelow = (a: T | undefined, b: T | undefined, isOpen: boolean | undefined) =>
      a !== undefined && b !== undefined && (isOpen === true ? atMost(a, b) : !atMost(b, a));
    return (row) => {
      const flags = this.#flags[row] ?? 0;
      if ((flags & VALUES) === 0) return false;
      // The first range that does not end below all values; those after it begin even higher.
      let [low, high] = [0, maxs.length];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if ((flags & MIN) !== 0 && isBelow(maxs[middle], this.#mins[row], ranges[middle]?.maxIsOpen)) low = middle + 1;
        else high = middle;
      }
      if (low === mins.length) return false;
      return (flags & MAX) === 0 || !isBelow(this.#maxs[row], mins[low], ranges[low]?.minIsOpen);
    };
  }

  grow(rows: number): void {
    this.#flags = grown(this.#flags, rows);
    this.#mins = this.#storage.grow(this.#mins, rows);
    this.#maxs = this.#storage.grow(this.#maxs, rows);
  }

  #read(bound: string | undefined): T | undefined {
    return bound === undefined ? undefined : this.#storage.read(bound);
  }
}

const INTEGERS: Storage<bigint, BigInt64Array<ArrayBuffer>> = {
  make: (rows) => new BigInt64Array(rows),
  grow: grown,
  read(text) {
    if (text === "true" || text === "false") return text === "true" ? 1n : 0n;
    if (!/^-?[0-9]{1,19}$/.test(text)) return undefined;
    const value = BigInt(text);
    return value >= INT64_MIN && value <= INT64_MAX ? value : undefined;
  },
  atMost: (a, b) => a <= b,
  bound: (value) => (typeof value === "bigint" ? value : undefined),
  boundBytes: 8,
};

const REALS: Storage<number, Float64Array<ArrayBuffer>> = {
  make: (rows) => new Float64Array(rows),
  grow: grown,
  read(text) {
    const value = Number(text);
    // A value past all numbers is written as no number.
    return text !== "" && Number.isFinite(value) ? value : undefined;
  },
  atMost: (a, b) => a <= b || Number.isNaN(b),
  bound: (value) => (typeof value === "number" ? value : undefined),
  boundBytes: 8,
};

const TEXTS: Storage<string, string[]> = {
  make: (rows) => Array.from({ length: rows }, () => ""),
  grow: (from, rows) => from.concat(Array.from({ length: rows - from.length }, () => "")),
  read: inByteOrder,
  atMost: (a, b) => a <= b,
  bound: (value) => (typeof value === "string" ? inByteOrder(value) : undefined),
  // A reference and a short text.
  boundBytes: 80,
};

const UNORDERED: Storage<never, never[]> = {
  make: () => [],
  grow: (from) => from,
  read: () => undefined,
  atMost: () => true,
  bound: () => undefined,
  boundBytes: 0,
};

const HIGH_UNITS = /[\ud800-\uffff]/g;

/**
 * The text with units such that JavaScript compares it as UTF-8 compares by bytes, which is by code points: surrogates
 * (of code points from 65,536 on) move behind the units U+E000 to U+FFFF.
 */
function inByteOrder(text: string): string {
  return text.replace(HIGH_UNITS, (unit) => {
    const code = unit.charCodeAt(0);
    return String.fromCharCode(code < 0xe000 ? code + 0x2000 : code - 0x800);
  });
}
