import { TIME_COLUMN } from "../format/types.ts";
import { TlmReader } from "../io/duckdb/tlm-file.ts";
import type { MergeInput } from "./merge.ts";

/**
 * The order of all rows of a merge of `tlm` extents: by `at`, those of one time by arrival. It is made from the column
 * alone, before anything else is read: eight bytes of a row and four of its place, whatever the rows hold.
 *
 * Times are kept as differences in doubles, which are exact over `MAX_RANGE_NS`; they are sorted in a way
 * that keeps rows of one time in the order in which they were given.
 */
export type RowOrder = {
  /** Numbers of rows, counted over all inputs one after the other, in the order of the output. */
  rows: Uint32Array;
  /** The number of each input's first row, and of all rows. */
  starts: Uint32Array;
  /** Nanoseconds since `minNs` by number of row. */
  times: Float64Array;
  minNs: bigint;
  /** Places in the order of each input's first and last row; the first behind the last without any. */
  spans: { first: Uint32Array; last: Uint32Array };
};

/** 26 days. Sums and differences of two stay exact. */
const MAX_RANGE_NS = 2 ** 51;
/** 24 bytes a row while it is sorted. */
const MAX_ROWS = 16_000_000;
const WORD = 0x1_0000_0000;
const DAY_NS = 86_400_000_000_000;

/** Reads the times of all inputs; undefined where this is not for them: other formats, too many rows, times far apart. */
export function orderRows(inputs: readonly MergeInput[]): RowOrder | undefined {
  const total = inputs.reduce((sum, { rows }) => sum + rows, 0);
  if (total === 0 || total > MAX_ROWS || inputs.some(({ format }) => format !== "tlm")) return undefined;
  const times = new Float64Array(total);
  const starts = new Uint32Array(inputs.length + 1);
  const reader = new TlmReader([{ name: TIME_COLUMN, type: { kind: "timestamp" } }]);
  let base: bigint | undefined;
  let row = 0;
  for (const [i, { path, rows }] of inputs.entries()) {
    starts[i] = row;
    for (const batch of reader.read({ path })) {
      const column = batch.columns[0];
      if (column === undefined || column.nullCount > 0) return undefined;
      const { buffer, byteOffset } = column.values;
      base ??= new DataView(buffer, byteOffset).getBigInt64(0, true);
      if (row + batch.rows > total) throw new Error("an input has more rows than were committed");
      readTimes(new DataView(buffer, byteOffset), base, times.subarray(row, row + batch.rows));
      row += batch.rows;
    }
    const read = row - starts[i];
    if (read !== rows) throw new Error(`an input has ${read} rows, not ${rows}`);
  }
  starts[inputs.length] = row;
  const range = rebase(times);
  if (range === undefined || base === undefined) return undefined;
  const rows = sortedRows(times, range.max);
  return { rows, starts, times, minNs: base + BigInt(range.min), spans: spansOf(rows, starts) };
}

/** The differences to `base`. Doubles are exact where they are small enough to be used. */
function readTimes(source: DataView, base: bigint, target: Float64Array): void {
  const baseLow = Number(BigInt.asUintN(32, base));
  const baseHigh = Number(base >> 32n);
  for (let i = 0; i < target.length; i++) {
    target[i] = (source.getInt32(i * 8 + 4, true) - baseHigh) * WORD + (source.getUint32(i * 8, true) - baseLow);
  }
}

/** Makes the smallest time zero; the range, or undefined when it is too large. */
function rebase(times: Float64Array): { min: number; max: number } | undefined {
  let min = Infinity;
  let max = -Infinity;
  for (let i = 0; i < times.length; i++) {
    const time = times[i] as number;
    if (time < min) min = time;
    if (time > max) max = time;
  }
  if (min < -MAX_RANGE_NS || max > MAX_RANGE_NS) return undefined;
  for (let i = 0; i < times.length; i++) times[i] = (times[i] as number) - min;
  return { min, max: max - min };
}

/** The numbers of the rows by time; `max` is the largest. */
function sortedRows(times: Float64Array, max: number): Uint32Array {
  const rows = new Uint32Array(times.length);
  for (let i = 0; i < rows.length; i++) rows[i] = i;
  if (isAscending(times)) return rows;
  return sortByBuckets(times, max) ?? sortByDigits(times, max, rows);
}

function isAscending(times: Float64Array): boolean {
  for (let i = 1; i < times.length; i++) if ((times[i] as number) < (times[i - 1] as number)) return false;
  return true;
}

const ROWS_PER_BUCKET = 4;
/** Larger ones take too long to sort by insertion. */
const MAX_BUCKET_ROWS = 512;

/**
 * One bucket for so many rows, each sorted by insertion. Rows that arrive nearly in order, as they mostly do, move nearly
 * in order. Undefined where times are so uneven that a bucket is large.
 */
function sortByBuckets(times: Float64Array, max: number): Uint32Array | undefined {
  const buckets = Math.ceil(times.length / ROWS_PER_BUCKET);
  // Monotonous, whatever is rounded.
  const scale = (buckets - 1) / max;
  const places = new Uint32Array(buckets + 1);
  for (let i = 0; i < times.length; i++) {
    const bucket = ((times[i] as number) * scale) >>> 0;
    places[bucket + 1] = (places[bucket + 1] as number) + 1;
  }
  for (let bucket = 0; bucket < buckets; bucket++) {
    const rows = places[bucket + 1] as number;
    if (rows > MAX_BUCKET_ROWS) return undefined;
    places[bucket + 1] = rows + (places[bucket] as number);
  }
  const rows = new Uint32Array(times.length);
  for (let i = 0; i < times.length; i++) {
    const bucket = ((times[i] as number) * scale) >>> 0;
    const place = places[bucket] as number;
    places[bucket] = place + 1;
    rows[place] = i;
  }
  insertAll(times, rows);
  return rows;
}

/** Sorts rows of which each is near its place. */
function insertAll(times: Float64Array, rows: Uint32Array): void {
  for (let i = 1; i < rows.length; i++) {
    const row = rows[i] as number;
    const time = times[row] as number;
    let at = i;
    for (; at > 0 && (times[rows[at - 1] as number] as number) > time; at--) rows[at] = rows[at - 1] as number;
    rows[at] = row;
  }
}

const DIGIT_BITS = 16;
const DIGITS = 2 ** DIGIT_BITS;

/** A radix sort from the lowest digit up; `from` has all numbers in order. */
function sortByDigits(times: Float64Array, max: number, from: Uint32Array): Uint32Array {
  let to: Uint32Array = new Uint32Array(times.length);
  for (let unit = 1; unit <= max; unit *= DIGITS) {
    sortByDigit(times, unit, from, to);
    [from, to] = [to, from];
  }
  return from;
}

function sortByDigit(times: Float64Array, unit: number, from: Uint32Array, to: Uint32Array): void {
  const scale = 1 / unit;
  const places = new Uint32Array(DIGITS + 1);
  // The unit is a power of two, so that the quotient is exact; what does not fit into 32 bits falls off at the top.
  for (let i = 0; i < times.length; i++) {
    const digit = ((times[i] as number) * scale) & (DIGITS - 1);
    places[digit + 1] = (places[digit + 1] as number) + 1;
  }
  for (let digit = 0; digit < DIGITS; digit++) {
    places[digit + 1] = (places[digit + 1] as number) + (places[digit] as number);
  }
  for (const row of from) {
    const digit = ((times[row] as number) * scale) & (DIGITS - 1);
    const place = places[digit] as number;
    places[digit] = place + 1;
    to[place] = row;
  }
}

/** The time of the row at a place of the order. */
export function timeAt({ rows, times, minNs }: RowOrder, place: number): bigint {
  return minNs + BigInt(times[rows[place] as number] as number);
}

/** Places in the order at which a UTC day ends, the last one's included. */
export function endsOfDays({ rows, times, minNs }: RowOrder): number[] {
  const sinceMidnight = Number(((minNs % BigInt(DAY_NS)) + BigInt(DAY_NS)) % BigInt(DAY_NS));
  const ends: number[] = [];
  let midnight = DAY_NS - sinceMidnight;
  const latest = times[rows[rows.length - 1] as number] as number;
  if (latest < midnight) return [rows.length];
  for (let place = 0; place < rows.length; place++) {
    const time = times[rows[place] as number] as number;
    if (time < midnight) continue;
    ends.push(place);
    while (midnight <= time) midnight += DAY_NS;
  }
  return [...ends, rows.length];
}

function spansOf(rows: Uint32Array, starts: Uint32Array): RowOrder["spans"] {
  const inputs = starts.length - 1;
  const first = new Uint32Array(inputs).fill(0xffff_ffff);
  const last = new Uint32Array(inputs);
  const inputOf = new InputIndex(starts);
  for (let place = 0; place < rows.length; place++) {
    const input = inputOf.of(rows[place] as number);
    if (place < (first[input] as number)) first[input] = place;
    last[input] = place;
  }
  return { first, last };
}

const BLOCK_BITS = 8;

/** Tells which input has a row. */
export class InputIndex {
  readonly #starts: Uint32Array;
  /** The input of the first row of each block. */
  readonly #blocks: Uint16Array;

  constructor(starts: Uint32Array) {
    this.#starts = starts;
    const rows = starts.at(-1) ?? 0;
    this.#blocks = new Uint16Array((rows >>> BLOCK_BITS) + 1);
    let input = 0;
    for (let block = 0; block < this.#blocks.length; block++) {
      while (input + 2 < starts.length && (starts[input + 1] as number) <= block << BLOCK_BITS) input++;
      this.#blocks[block] = input;
    }
  }

  of(row: number): number {
    let input = this.#blocks[row >>> BLOCK_BITS] as number;
    while ((this.#starts[input + 1] as number) <= row) input++;
    return input;
  }
}
