import { addHash, fillOf, foldBlocks, MAX_BLOCKS, WORDS_PER_BLOCK } from "./block-bloom.ts";
import { emptyFilter, filterBytes, sealFilter } from "./filter.ts";
import { hashRange } from "./hash.ts";

/**
 * Filters of whole values, built while an extent is sealed: 25 ns a value of 32 bytes, half of them its hash. 11 bits
 * for each different one let 0.8 % of absent values pass, so that a needle that is in one of 1,250 extents has ten
 * read. (A binary fuse filter of 10.2 bits lets 0.4 % pass, but takes 84 ns a value besides its hash.)
 */
const BITS_PER_VALUE = 11;
/** Of a filter's bits, when it has as many values as it was made for. Fuller ones let more pass. */
const FULL = 0.53;
/** A filter can be halved this often. */
const FOLDS = 3;

/** Text as builders hold it: value `i` is `bytes[offsets[i], offsets[i + 1])`. */
export type Texts = { offsets: Int32Array; bytes: Uint8Array };

/** What the filter of so many values is made as; as many bytes are kept when nearly all of them differ. */
export function valueFilterBytes(values: number): number {
  return filterBytes(blocksFor(values));
}

/** Builds the filter of texts, `values` of which are not NULL, which reads as empty. `distinct` is an estimate. */
export function buildValueFilter({ offsets, bytes }: Texts, values: number, distinct: number): Uint8Array {
  let blocks = blocksFor(values);
  const filter = emptyFilter("values", blocks);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let start = offsets[0] ?? 0;
  let hasEmpty = false;
  for (let i = 1; i < offsets.length; i++) {
    const end = offsets[i] as number;
    // NULL looks the same, and there may be a great many.
    if (end === start) hasEmpty = true;
    else addHash(filter.words, blocks, hashRange(view, start, end - start));
    start = end;
  }
  if (hasEmpty) addHash(filter.words, blocks, hashRange(view, 0, 0));
  if (distinct * 2 <= values) blocks = folded(filter.words, blocks);
  return sealFilter(filter.bytes, blocks);
}

/**
 * Builds a filter value by value, for extents that do not fit into memory. It is made for the number of different values
 * right away, which must be known better than from a sample.
 */
export class ValueFilterBuilder {
  readonly #blocks: number;
  readonly #filter: ReturnType<typeof emptyFilter>;

  constructor(distinct: number) {
    this.#blocks = builderBlocks(distinct);
    this.#filter = emptyFilter("values", this.#blocks);
  }

  /** Adds the text `view[start, start + length)`. */
  add(view: DataView, start: number, length: number): void {
    this.addHash(hashRange(view, start, length));
  }

  /** Adds a text by its hash (`hashRange`). */
  addHash(hash: number): void {
    addHash(this.#filter.words, this.#blocks, hash);
  }

  finish(): Uint8Array {
    return sealFilter(this.#filter.bytes, this.#blocks);
  }
}

/** What a `ValueFilterBuilder` for so many different values makes. */
export function valueFilterBytesFor(distinct: number): number {
  return filterBytes(builderBlocks(distinct));
}

function builderBlocks(distinct: number): number {
  return Math.min(Math.max(Math.ceil((distinct * BITS_PER_VALUE) / 256), 1), MAX_BLOCKS);
}

/** Halves the filter while it stays roomy enough: the estimate of different values is too rough to size it by. */
function folded(words: Int32Array, blocks: number): number {
  let left = blocks;
  while (left % 2 === 0) {
    const free = 1 - fillOf(words.subarray(0, left * WORDS_PER_BLOCK));
    if (1 - free * free > FULL) break;
    foldBlocks(words, left);
    left /= 2;
  }
  return left;
}

function blocksFor(values: number): number {
  const unit = 1 << FOLDS;
  const blocks = Math.ceil((values * BITS_PER_VALUE) / 256 / unit) * unit;
  return Math.min(Math.max(blocks, unit), MAX_BLOCKS);
}
