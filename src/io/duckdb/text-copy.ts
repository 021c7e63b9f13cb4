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
  const pieces = new Pieces();
  for (let row = 0, at = start; row < ends.length; at = ends[row++] ?? 0) {
    const address = addresses[row] ?? 0;
    if (address !== 0) pieces.add(address, address + (ends[row] ?? 0) - at);
  }
  const memory = pieces.read(duckdb);
  for (let row = 0, at = start; row < ends.length;) {
    const first = row;
    const address = addresses[row] ?? 0;
    let end = ends[row++] ?? 0;
    if (address === 0) {
      copyBytes(structs, first * STRUCT_BYTES + 4, end - at, to, at - start);
    } else {
      // What lies one behind the other there as well is copied at once.
      while (row < ends.length && addresses[row] === address + end - at) end = ends[row++] ?? 0;
      const piece = pieces.find(address);
      copyBytes(memory[piece] ?? NOTHING, address - pieces.startOf(piece), end - at, to, at - start);
    }
    at = end;
  }
}

const NOTHING = new Uint8Array();

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

/**
 * Pieces of DuckDB's memory with texts in them, by address: texts with a gap of less than a page between them are in one.
 * A vector's texts lie in few pieces (a page of a file, its dictionary), and mostly in the one of the text before.
 */
class Pieces {
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  /** The piece that was found last. */
  #last = 0;

  startOf(piece: number): number {
    return this.#starts[piece] ?? 0;
  }

  /** The last piece that does not begin after the address; -1 where all do. */
  find(address: number): number {
    const last = this.#last;
    if (address >= (this.#starts[last] ?? Infinity) && address < (this.#starts[last + 1] ?? Infinity)) return last;
    let low = -1;
    let high = this.#starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((this.#starts[middle] ?? 0) <= address) low = middle;
      else high = middle;
    }
    this.#last = Math.max(0, low);
    return low;
  }

  add(start: number, end: number): void {
    let piece = this.find(start);
    if (piece >= 0 && end <= (this.#ends[piece] ?? 0)) return;
    if (piece >= 0 && start - (this.#ends[piece] ?? 0) < PAGE_BYTES) this.#ends[piece] = end;
    else {
      piece++;
      this.#starts.splice(piece, 0, start);
      this.#ends.splice(piece, 0, end);
    }
    while (piece + 1 < this.#starts.length && this.startOf(piece + 1) - (this.#ends[piece] ?? 0) < PAGE_BYTES) {
      this.#starts.splice(piece + 1, 1);
      const [next = 0] = this.#ends.splice(piece + 1, 1);
      this.#ends[piece] = Math.max(next, this.#ends[piece] ?? 0);
    }
  }

  read(duckdb: typeof Bindings): Uint8Array[] {
    const pointer = new Float64Array(1);
    const words = new Uint32Array(pointer.buffer);
    return this.#starts.map((start, piece) => {
      words[0] = start % 2 ** 32;
      words[1] = Math.floor(start / 2 ** 32);
      return duckdb.get_data_from_pointer(pointer.buffer, 0, (this.#ends[piece] ?? 0) - start);
    });
  }
}
