import { crc32 } from "node:zlib";
import { BLOCK_BYTES, hasHash, MAX_BLOCKS } from "./block-bloom.ts";

/**
 * Filters tell that an extent cannot hold what a query looks for, where minimum and maximum cannot: an extent of 8,000
 * random trace ids spans all of them. A filter speaks of one column of one extent and is asked with hashes (`hash.ts`);
 * it may say "maybe" of what is not there, never "no" of what is.
 *
 *     values    the hash of every value, as a whole: for `=` and `IN`
 *     grams     the hash of every sequence of four bytes in any value: for `LIKE '%word%'` and `contains`
 *
 * Both are split block Bloom filters. Words would be fewer than grams, but say nothing about a needle that is part of
 * one (`LIKE '%time%'` finds "timeout"). Grams of bytes do not care where characters begin: a needle in UTF-8 lies in
 * a text exactly when its bytes do.
 *
 * Stored: one byte of version, one of kind, two zeroes; the blocks, words in little-endian order; the CRC-32 of all
 * before it. What is damaged, cut short, or of another version says "maybe" to everything.
 */
export type FilterKind = "values" | "grams";

/** The filter of one column of an extent. */
export type ColumnFilter = { name: string; kind: FilterKind; bytes: Uint8Array };

/** What a filter is asked: whether it has all hashes of at least one of the groups. */
export type FilterProbe = { kind: FilterKind; anyOf: readonly (readonly number[])[] };

const VERSION = 1;
const KINDS: Readonly<Record<FilterKind, number>> = { values: 1, grams: 2 };
const HEADER_BYTES = 4;
const CHECKSUM_BYTES = 4;

/** The bytes of a filter that has room for so many blocks, and its words, still empty; `sealFilter` ends it. */
export function emptyFilter(kind: FilterKind, blocks: number): { bytes: Uint8Array; words: Int32Array } {
  const bytes = new Uint8Array(HEADER_BYTES + blocks * BLOCK_BYTES + CHECKSUM_BYTES);
  bytes[0] = VERSION;
  bytes[1] = KINDS[kind];
  return { bytes, words: new Int32Array(bytes.buffer, HEADER_BYTES, (blocks * BLOCK_BYTES) / 4) };
}

/** The finished filter: the first `blocks` blocks of what `emptyFilter` gave, in a buffer of its own. */
export function sealFilter(bytes: Uint8Array, blocks: number): Uint8Array {
  const end = HEADER_BYTES + blocks * BLOCK_BYTES;
  const whole = end + CHECKSUM_BYTES === bytes.length ? bytes : bytes.slice(0, end + CHECKSUM_BYTES);
  viewOf(whole).setUint32(end, crc32(whole.subarray(0, end)), true);
  return whole;
}

/** Bytes of a filter of so many blocks. */
export function filterBytes(blocks: number): number {
  return HEADER_BYTES + blocks * BLOCK_BYTES + CHECKSUM_BYTES;
}

/** Whether an extent with this filter may hold what is asked for. Bytes that are no filter hold anything. */
export function mayHold(bytes: Uint8Array, probe: FilterProbe): boolean {
  const end = bytes.length - CHECKSUM_BYTES;
  const blocks = (end - HEADER_BYTES) / BLOCK_BYTES;
  if (!Number.isInteger(blocks) || blocks < 1 || blocks > MAX_BLOCKS) return true;
  if (bytes[0] !== VERSION || bytes[1] !== KINDS[probe.kind]) return true;
  const view = viewOf(bytes);
  if (view.getUint32(end, true) !== crc32(bytes.subarray(0, end))) return true;
  const words = new DataView(bytes.buffer, bytes.byteOffset + HEADER_BYTES, blocks * BLOCK_BYTES);
  return probe.anyOf.some((hashes) => hashes.every((hash) => hasHash(words, blocks, hash)));
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}
