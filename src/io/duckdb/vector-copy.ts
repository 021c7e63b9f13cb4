import type { Data } from "apache-arrow";
import type { ColumnType } from "../../format/types.ts";
import type { DuckDb, Vector } from "./duckdb.ts";

/**
 * Copies runs of rows from Arrow buffers into DuckDB vectors. This is hot code: whole buffers, no value objects.
 *
 * Fixed-width values are one `copy_data_to_vector` per column and chunk. Booleans are bits in Arrow and bytes in
 * DuckDB, spread eight at a time through a table. Strings are 16-byte structs in DuckDB: a length, then either up to
 * 12 bytes in place (zero-padded: DuckDB compares the structs as words) or a 4-byte prefix and a pointer. One string
 * holding the bytes of the whole run is assigned to the vector, which makes DuckDB copy it into memory that the
 * vector owns; the structs of the rows then point into that copy. (`vector_get_data` returns a copy, so writing into
 * it does nothing; reading the pointer out of it is what it is good for.)
 */

/** Rows of one DuckDB vector. */
export const VECTOR_ROWS = 2048;

const STRING_BYTES = 16;
const INLINE_BYTES = 12;

const structs = new ArrayBuffer(VECTOR_ROWS * STRING_BYTES);
const structBytes = new Uint8Array(structs);
const structWords = new Uint32Array(structs);

const spreadBits = new BigUint64Array(256);
for (let byte = 0; byte < 256; byte++) {
  let spread = 0n;
  for (let bit = 0; bit < 8; bit++) if ((byte >> bit) & 1) spread |= 1n << BigInt(bit * 8);
  spreadBits[byte] = spread;
}
const bools = new BigUint64Array(VECTOR_ROWS / 8);

const noneValid = new ArrayBuffer(VECTOR_ROWS / 8);
const shiftedBits = new Uint8Array(VECTOR_ROWS / 8);

const FIXED_BYTES = { int: 4, long: 8, real: 8, timestamp: 8 } as const;

/** Writes rows `start` to `start + rows` of an Arrow column to the first rows of the vector; NULLs for no column. */
export function copyColumn(
  duckdb: DuckDb,
  vector: Vector,
  type: ColumnType,
  data: Data | undefined,
  start: number,
  rows: number,
): void {
  if (data === undefined) {
    duckdb.vector_ensure_validity_writable(vector);
    duckdb.copy_data_to_vector_validity(vector, 0, noneValid, 0, Math.ceil(rows / 8));
    return;
  }
  copyValidity(duckdb, vector, data, start, rows);
  switch (type.kind) {
    case "bool":
      copyBools(duckdb, vector, data, start, rows);
      return;
    case "string":
    case "dynamic":
      copyStrings(duckdb, vector, data, start, rows);
      return;
    case "vector": {
      const child = data.children[0];
      if (child === undefined) throw new Error("a list column without its values");
      // A slice moves the children along with the list, so `start` counts from the slice in both.
      copyFixed(
        duckdb,
        duckdb.array_vector_get_child(vector),
        child,
        start * type.dimensions,
        rows * type.dimensions,
        4,
      );
      return;
    }
    case "int":
    case "long":
    case "real":
    case "timestamp":
      copyFixed(duckdb, vector, data, start, rows, FIXED_BYTES[type.kind]);
  }
}

function copyValidity(duckdb: DuckDb, vector: Vector, data: Data, start: number, rows: number): void {
  if (data.nullCount === 0) return;
  duckdb.vector_ensure_validity_writable(vector);
  const bits = bitsAt(data.nullBitmap, data.offset + start, rows);
  duckdb.copy_data_to_vector_validity(vector, 0, bits.buffer as ArrayBuffer, bits.byteOffset, bits.byteLength);
}

/** The bits from `first` on as bytes that begin with it: a view where it begins a byte, else a shifted copy. */
function bitsAt(bitmap: Uint8Array, first: number, count: number): Uint8Array {
  const byte = first >> 3;
  const shift = first & 7;
  const length = Math.ceil(count / 8);
  if (shift === 0) return bitmap.subarray(byte, byte + length);
  for (let i = 0; i < length; i++) {
    shiftedBits[i] = ((bitmap[byte + i] ?? 0) >> shift) | ((bitmap[byte + i + 1] ?? 0) << (8 - shift));
  }
  return shiftedBits.subarray(0, length);
}

function copyFixed(duckdb: DuckDb, vector: Vector, data: Data, start: number, count: number, width: number): void {
  const values = data.values as ArrayBufferView<ArrayBuffer>;
  const from = values.byteOffset + start * width;
  duckdb.copy_data_to_vector(vector, 0, values.buffer, from, count * width);
}

function copyBools(duckdb: DuckDb, vector: Vector, data: Data, start: number, rows: number): void {
  const bits = bitsAt(data.values as Uint8Array, data.offset + start, rows);
  for (let i = 0; i < bits.length; i++) bools[i] = spreadBits[bits[i] ?? 0] ?? 0n;
  duckdb.copy_data_to_vector(vector, 0, bools.buffer, 0, rows);
}

function copyStrings(duckdb: DuckDb, vector: Vector, data: Data, start: number, rows: number): void {
  const offsets = data.valueOffsets as Int32Array;
  const bytes = data.values as Uint8Array;
  const first = offsets[start] ?? 0;
  const last = offsets[start + rows] ?? first;
  // With all bytes of the run in place there is no copy to point into, and no row can be longer.
  const base = last - first > INLINE_BYTES ? ownedCopy(duckdb, vector, bytes.subarray(first, last)) : 0;
  structBytes.fill(0, 0, rows * STRING_BYTES);
  let from = first;
  for (let row = 0; row < rows; row++) {
    const to = offsets[start + row + 1] ?? from;
    const length = to - from;
    const word = row * 4;
    const kept = length <= INLINE_BYTES ? length : 4;
    structWords[word] = length;
    for (let i = 0; i < kept; i++) structBytes[word * 4 + 4 + i] = bytes[from + i] ?? 0;
    if (length > INLINE_BYTES) {
      // User-space addresses have at most 52 bits here, so a double carries them exactly.
      const pointer = base + (from - first);
      structWords[word + 2] = pointer % 0x1_0000_0000;
      structWords[word + 3] = Math.floor(pointer / 0x1_0000_0000);
    }
    from = to;
  }
  duckdb.copy_data_to_vector(vector, 0, structs, 0, rows * STRING_BYTES);
}

/** Has DuckDB copy the bytes into memory of the vector; returns their address. */
function ownedCopy(duckdb: DuckDb, vector: Vector, bytes: Uint8Array): number {
  duckdb.vector_assign_string_element_len(vector, 0, bytes);
  const struct = duckdb.vector_get_data(vector, STRING_BYTES);
  const view = new DataView(struct.buffer, struct.byteOffset, STRING_BYTES);
  const address = view.getUint32(8, true) + view.getUint32(12, true) * 0x1_0000_0000;
  if (!Number.isSafeInteger(address)) throw new Error("a string address past 2^53");
  return address;
}
