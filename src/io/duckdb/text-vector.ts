import type * as Bindings from "@duckdb/node-bindings";

/**
 * Texts of a vector, copied out with few calls. DuckDB's strings are 16-byte structs: a length, then up to 12 bytes
 * in place or a prefix and a pointer. Pointers are sorted, and texts that lie close together are fetched as one piece:
 * a gap of less than a page between two texts lies in the pages of the two, so what is in it can be read, though it
 * means nothing.
 */
type Texts = {
  bytes: Uint8Array<ArrayBuffer>;
  /** Where each row's text begins in `bytes`, and its length; 0 for rows without one. */
  starts: Uint32Array<ArrayBuffer>;
  lengths: Uint32Array<ArrayBuffer>;
};

export const STRUCT_BYTES = 16;
export const INLINE_BYTES = 12;
/** The smallest page of any platform. */
export const PAGE_BYTES = 4096;

/** `structs` are those of the rows wanted; a row that is not valid has none that may be followed. */
export function readTexts(duckdb: typeof Bindings, structs: Uint8Array, isValid: (row: number) => boolean): Texts {
  const rows = structs.byteLength / STRUCT_BYTES;
  const view = new DataView(structs.buffer, structs.byteOffset, structs.byteLength);
  const starts = new Uint32Array(rows);
  const lengths = new Uint32Array(rows);
  const far: { address: number; row: number; length: number }[] = [];
  for (let row = 0; row < rows; row++) {
    if (!isValid(row)) continue;
    const length = view.getUint32(row * STRUCT_BYTES, true);
    lengths[row] = length;
    if (length <= INLINE_BYTES) starts[row] = row * STRUCT_BYTES + 4;
    else far.push({ address: addressAt(view, row * STRUCT_BYTES + 8), row, length });
  }
  if (!isSorted(far)) far.sort((a, b) => a.address - b.address);
  const pieces: Uint8Array[] = [structs];
  let base = structs.byteLength;
  for (let i = 0; i < far.length;) {
    const first = far[i];
    if (first === undefined) break;
    let end = first.address + first.length;
    let next = i + 1;
    for (; next < far.length; next++) {
      const text = far[next];
      if (text === undefined || text.address - end >= PAGE_BYTES) break;
      end = Math.max(end, text.address + text.length);
    }
    const pointerAt = structs.byteOffset + first.row * STRUCT_BYTES + 8;
    pieces.push(duckdb.get_data_from_pointer(structs.buffer as ArrayBuffer, pointerAt, end - first.address));
    for (; i < next; i++) {
      const text = far[i];
      if (text !== undefined) starts[text.row] = base + text.address - first.address;
    }
    base += end - first.address;
  }
  return { bytes: joined(pieces, base), starts, lengths };
}

/** Addresses have 48 bits (57 at most), and differences within a vector are what matters: exact in a double. */
function addressAt(view: DataView, at: number): number {
  return view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true);
}

function isSorted(texts: readonly { address: number }[]): boolean {
  let last = 0;
  for (const { address } of texts) {
    if (address < last) return false;
    last = address;
  }
  return true;
}

function joined(pieces: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.byteLength;
  }
  return all;
}
