import type { ColumnType } from "../../format/types.ts";
import type { DuckDb, Vector } from "./duckdb.ts";
import { INLINE_BYTES, STRUCT_BYTES } from "./text-vector.ts";
import { TEXT_SLACK_BYTES, type TlmColumn } from "./tlm-file.ts";

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

const structs = new ArrayBuffer(VECTOR_ROWS * STRUCT_BYTES);
const structWords = new Uint32Array(structs);

const WORD = 0x1_0000_0000;

/** What of the words of a short text is its own, by its length; the rest is zero. */
const keptOfFirst = masks(0);
const keptOfSecond = masks(4);
const keptOfThird = masks(8);

function masks(before: number): Int32Array {
  return Int32Array.from({ length: INLINE_BYTES + 1 }, (_, length) => {
    const kept = Math.min(Math.max(length - before, 0), 4);
    return kept === 4 ? -1 : 2 ** (kept * 8) - 1;
  });
}

const spreadBits = new BigUint64Array(256);
for (let byte = 0; byte < 256; byte++) {
  let spread = 0n;
  for (let bit = 0; bit < 8; bit++) if ((byte >> bit) & 1) spread |= 1n << BigInt(bit * 8);
  spreadBits[byte] = spread;
}
const bools = new BigUint64Array(VECTOR_ROWS / 8);

const noneValid = new ArrayBuffer(VECTOR_ROWS / 8);

const FIXED_BYTES = { int: 4, long: 8, real: 8, timestamp: 8 } as const;

/**
 * Writes rows `start` to `start + rows` of an Arrow column to the first rows of the vector; NULLs for no column. `start`
 * is a multiple of eight.
 */
export function copyColumn(
  duckdb: DuckDb,
  vector: Vector,
  type: ColumnType,
  data: TlmColumn | undefined,
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
    case "vector":
      copyFixed(
        duckdb,
        duckdb.array_vector_get_child(vector),
        data,
        start * type.dimensions,
        rows * type.dimensions,
        4,
      );
      return;
    case "int":
    case "long":
    case "real":
    case "timestamp":
      copyFixed(duckdb, vector, data, start, rows, FIXED_BYTES[type.kind]);
  }
}

function copyValidity(duckdb: DuckDb, vector: Vector, data: TlmColumn, start: number, rows: number): void {
  if (data.nullCount === 0) return;
  duckdb.vector_ensure_validity_writable(vector);
  const { validity } = data;
  const from = validity.byteOffset + start / 8;
  duckdb.copy_data_to_vector_validity(vector, 0, validity.buffer as ArrayBuffer, from, Math.ceil(rows / 8));
}

function copyFixed(duckdb: DuckDb, vector: Vector, data: TlmColumn, start: number, count: number, width: number): void {
  const { values } = data;
  const from = values.byteOffset + start * width;
  duckdb.copy_data_to_vector(vector, 0, values.buffer as ArrayBuffer, from, count * width);
}

function copyBools(duckdb: DuckDb, vector: Vector, data: TlmColumn, start: number, rows: number): void {
  const bytes = Math.ceil(rows / 8);
  for (let i = 0; i < bytes; i++) bools[i] = spreadBits[data.values[start / 8 + i] ?? 0] ?? 0n;
  duckdb.copy_data_to_vector(vector, 0, bools.buffer, 0, rows);
}

function copyStrings(duckdb: DuckDb, vector: Vector, data: TlmColumn, start: number, rows: number): void {
  const { offsets, values: bytes } = data;
  if (offsets === undefined) throw new Error("a text column without offsets");
  const first = offsets[start] ?? 0;
  const last = offsets[start + rows] ?? first;
  // With all bytes of the run in place there is no copy to point into, and no row can be longer.
  const base = last - first > INLINE_BYTES ? ownedCopy(duckdb, vector, bytes.subarray(first, last)) : 0;
  writeStructs(structWords, 0, { offsets, bytes, base }, start, rows);
  duckdb.copy_data_to_vector(vector, 0, structs, 0, rows * STRUCT_BYTES);
}

/** Texts of a column; `base` is the address at which DuckDB has the bytes from that of row `start` on. */
export type PlacedTexts = { offsets: Int32Array; bytes: Uint8Array; base: number };

/**
 * Writes the structs of texts `start` to `start + rows` to `words` from index `word` on, four for each. There are
 * `TEXT_SLACK_BYTES` readable bytes behind `bytes`.
 */
export function writeStructs(
  words: Uint32Array,
  word: number,
  { offsets, bytes, base }: PlacedTexts,
  start: number,
  rows: number,
): void {
  // User-space addresses have at most 52 bits here, so a double carries them exactly.
  const baseHigh = Math.floor(base / WORD);
  const baseLow = base - baseHigh * WORD;
  // Three words are read wherever a text begins: the memory goes on behind the last.
  const source = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength + TEXT_SLACK_BYTES);
  const first = offsets[start] ?? 0;
  let from = first;
  for (let row = 0; row < rows; row++, word += 4) {
    const to = offsets[start + row + 1] as number;
    const length = to - from;
    words[word] = length;
    if (length > INLINE_BYTES) {
      const low = baseLow + (from - first);
      words[word + 1] = source.getInt32(from, true);
      words[word + 2] = low;
      words[word + 3] = low < WORD ? baseHigh : baseHigh + 1;
    } else {
      words[word + 1] = source.getInt32(from, true) & (keptOfFirst[length] as number);
      words[word + 2] = source.getInt32(from + 4, true) & (keptOfSecond[length] as number);
      words[word + 3] = source.getInt32(from + 8, true) & (keptOfThird[length] as number);
    }
    from = to;
  }
}

/** Has DuckDB copy the bytes into memory of the vector; returns their address. Earlier copies stay until it is reset. */
export function ownedCopy(duckdb: DuckDb, vector: Vector, bytes: Uint8Array): number {
  duckdb.vector_assign_string_element_len(vector, 0, bytes);
  const struct = duckdb.vector_get_data(vector, STRUCT_BYTES);
  const view = new DataView(struct.buffer, struct.byteOffset, STRUCT_BYTES);
  const address = view.getUint32(8, true) + view.getUint32(12, true) * 0x1_0000_0000;
  if (!Number.isSafeInteger(address)) throw new Error("a string address past 2^53");
  return address;
}
