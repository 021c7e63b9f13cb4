/**
 * Field ids of Parquet extents: a column's own id, and far above all of those, since a table has never had as many columns,
 * what files have besides.
 */

/** The items of vectors: so far above the vector's own id. */
export const ITEM_IDS = 1_000_000;

/** Nanoseconds of times (`parquet-times.ts`): so far above the column's own id. */
export const NANOSECOND_IDS = 2_000_000;
