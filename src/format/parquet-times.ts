import { isBitSet } from "./columns/bits.ts";

/**
 * How Parquet extents hold times, from version 2 of the format on. Iceberg's clients misread nanoseconds, so every
 * `timestamp` column is stored as microseconds, adjusted to UTC, under the column's own name and field id. Where a value
 * of the file is finer than that, the file has the column in nanoseconds as well: under a name that no column of a table
 * can have, since names of columns have no control characters, and with a field id far from those of all columns. So
 * other programs, which look columns up by field id, never meet it, and we read it instead of the other one.
 *
 * Microseconds of a value that is finer are rounded down. Infinity is no number of microseconds, so it counts as finer;
 * its microseconds are those at the ends of what nanoseconds can tell: 1677-09-21 and 2262-04-11.
 */
const NANOSECONDS = "\u001fns";

/** What the nanoseconds of a column are called in a file. */
export function nanosecondName(column: string): string {
  return column + NANOSECONDS;
}

/** Whether a column of a file is the nanoseconds of another one. */
export function isNanosecondName(name: string): boolean {
  return name.endsWith(NANOSECONDS);
}

/** 2^32 modulo 1,000. */
const HIGH_UNIT = 296;

/**
 * Whether any of the times is no whole microsecond. `values` are nanoseconds as 64-bit integers, aligned to 4 bytes;
 * `validity` has a bit for each, set where there is a value, and is not looked at without NULLs.
 */
export function hasFinerTimes(
  { nullCount, validity, values }: { nullCount: number; validity: Uint8Array; values: Uint8Array },
  rows: number,
): boolean {
  const words = new Int32Array(values.buffer, values.byteOffset, rows * 2);
  for (let row = 0; row < rows; row++) {
    const low = words[row * 2] as number;
    // A multiple of 1,000 is one of 8.
    if ((low & 7) === 0) {
      const high = words[row * 2 + 1] as number;
      if (((high % 1_000) * HIGH_UNIT + ((low >>> 0) % 1_000)) % 1_000 === 0) continue;
    }
    if (nullCount === 0 || isBitSet(validity, row)) return true;
  }
  return false;
}
