/**
 * Rows of one column as the module of `ndjson/wasm` leaves them in its memory, at these addresses. One object serves all
 * blocks.
 */
export type ColumnBlock = {
  bytes: Uint8Array;
  ints: Int32Array;
  longs: BigInt64Array;
  reals: Float64Array;
  rows: number;
  nulls: number;
  /** Bits of the rows that are NULL; the first row has the bit that it has in the column's own bitmap. */
  nullBits: number;
  /** Values by row; of text where each ends, as an offset of the column; of bools bits, the first row's as above. */
  values: number;
  text: number;
  textBytes: number;
  /** Of columns of strings, which of the rows has the least value and which the greatest; -1 where none has any. */
  least: number;
  greatest: number;
};
