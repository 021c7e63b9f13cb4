import type * as Bindings from "@duckdb/node-bindings";
import { INLINE_BYTES, PAGE_BYTES, STRUCT_BYTES } from "./text-vector.ts";

/** Below this a loop is faster than two views and a call. */
const LOOP_BYTES = 64;

function copyBytes(from: Uint8Array, start: number, length: number, to: Uint8Array, at: number): void {
  if (length > LOOP_BYTES) to.set(from.subarray(start, start + length), at);
  else for (let i = 0; i < length; i++) to[at + i] = from[start + i] ?? 0;
}

/** The structs as words of four bytes; they must begin at such a one. */
function wordsOf(structs: Uint8Array): Uint32Array {
  return new Uint32Array(structs.buffer, structs.byteOffset, structs.byteLength / 4);
}

const STRUCT_WORDS = STRUCT_BYTES / 4;

/** Writes where each row's text ends when they lie one behind the other from `start` on; gives where the last one does. */
export function textEnds(
  structs: Uint8Array,
  isValid: ((row: number) => boolean) | undefined,
  { start, ends }: { start: number; ends: Int32Array },
): number {
  const words = wordsOf(structs);
  let end = start;
  for (let row = 0; row < ends.length; row++) {
    if (isValid === undefined || isValid(row)) end += words[row * STRUCT_WORDS] ?? 0;
    ends[row] = end;
  }
  return end;
}

/** Texts that lie one behind the other: the one of row `i` ends at `ends[i]`, the first begins at `start`. */
type Run = { start: number; ends: Int32Array };

/**
 * Copies the texts of a vector one behind the other into `to`, whose first byte is that of `start`. Reads DuckDB's memory
 * as `readTexts` does, and makes no object, view or copy of its own for each text.
 */
export function copyTexts(duckdb: typeof Bindings, structs: Uint8Array, run: Run, to: Uint8Array): void {
  const { start, ends } = run;
  const addresses = farAddresses(structs, run);
  const pieces = piecesOf(duckdb, structs, addresses, run);
  for (let row = 0, at = start; row < ends.length; at = ends[row++] ?? 0) {
    const length = (ends[row] ?? 0) - at;
    const address = addresses[row] ?? 0;
    if (address === 0) copyBytes(structs, row * STRUCT_BYTES + 4, length, to, at - start);
    else {
      const { bytes, address: first } = pieces.at(pieceAt(pieces, address)) ?? NO_PIECE;
      copyBytes(bytes, address - first, length, to, at - start);
    }
  }
}

/** Where the texts lie; 0 for those in their structs. */
function farAddresses(structs: Uint8Array, { start, ends }: Run): Float64Array {
  const words = wordsOf(structs);
  const addresses = new Float64Array(ends.length);
  for (let row = 0, at = start; row < ends.length; at = ends[row++] ?? 0) {
    if ((ends[row] ?? 0) - at <= INLINE_BYTES) continue;
    const word = row * STRUCT_WORDS;
    addresses[row] = (words[word + 3] ?? 0) * 2 ** 32 + (words[word + 2] ?? 0);
  }
  return addresses;
}

/** A piece of DuckDB's memory with texts in it. */
type Piece = { address: number; end: number; row: number; bytes: Uint8Array };

const NO_PIECE: Piece = { address: 0, end: 0, row: 0, bytes: new Uint8Array() };

/** Texts whose beginnings are less than a page apart are one piece, by address. */
function piecesOf(
  duckdb: typeof Bindings,
  structs: Uint8Array,
  addresses: Float64Array,
  { start, ends }: Run,
): readonly Piece[] {
  const pieces: Piece[] = [];
  let last = 0;
  for (const address of isAscending(addresses) ? addresses : addresses.toSorted()) {
    if (address === 0) continue;
    if (address - last >= PAGE_BYTES) pieces.push({ ...NO_PIECE, address });
    last = address;
  }
  for (let row = 0, at = start; row < ends.length; at = ends[row++] ?? 0) {
    const address = addresses[row] ?? 0;
    const piece = address === 0 ? undefined : pieces[pieceAt(pieces, address)];
    if (piece === undefined) continue;
    if (address === piece.address) piece.row = row;
    piece.end = Math.max(piece.end, address + (ends[row] ?? 0) - at);
  }
  for (const piece of pieces) {
    const pointerAt = structs.byteOffset + piece.row * STRUCT_BYTES + 8;
    piece.bytes = duckdb.get_data_from_pointer(structs.buffer as ArrayBuffer, pointerAt, piece.end - piece.address);
  }
  return pieces;
}

/** Those that are 0 left aside. */
function isAscending(addresses: Float64Array): boolean {
  let last = 0;
  for (const address of addresses) {
    if (address === 0) continue;
    if (address < last) return false;
    last = address;
  }
  return true;
}

/** The last piece that does not begin after the address. */
function pieceAt(pieces: readonly Piece[], address: number): number {
  let low = 0;
  let high = pieces.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((pieces[middle]?.address ?? 0) <= address) low = middle;
    else high = middle;
  }
  return low;
}
