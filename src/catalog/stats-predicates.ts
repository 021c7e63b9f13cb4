/**
 * What a scan says about the rows that it needs, so that the catalog answers with the extents that may have some and
 * no others: the statistics of 100,000 extents stay where they are.
 *
 * An extent is left out by a test when its statistics prove that no row of it passes. They are bounds, not values: a
 * test may let too much through, never too little. Values order as their column does: `bool` (false before true),
 * `int`, `long` and `timestamp` are bigints; `real` is a number, NaN after everything; `string` is text in the order of
 * its UTF-8 bytes. `dynamic` and `vector` have no order; of them only NULLs are known.
 */
export type StatValue = bigint | number | string;

/** Both ends are included unless they are said to be open; an absent end is no end. */
export type ValueRange = { min?: StatValue; max?: StatValue; minIsOpen?: boolean; maxIsOpen?: boolean };

export type StatsTest =
  /** The value lies in one of the ranges (NULL in none), which ascend and do not overlap. */
  | { kind: "within"; column: string; ranges: readonly ValueRange[] }
  /** The value is text that has each of these somewhere inside. Statistics say nothing about it, filters may. */
  | { kind: "contains"; column: string; needles: readonly string[] }
  | { kind: "null"; column: string }
  | { kind: "not_null"; column: string }
  | { kind: "all"; of: readonly StatsTest[] }
  | { kind: "any"; of: readonly StatsTest[] };
