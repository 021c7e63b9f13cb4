import { addHash } from "./block-bloom.ts";
import { emptyFilter, sealFilter } from "./filter.ts";
import { mixed } from "./hash.ts";
import type { Texts } from "./value-filter.ts";

/**
 * Filters of all four-byte sequences in a column's texts, for needles of at least four bytes.
 *
 * Four bytes rather than three: over 5,000 package descriptions, 22 % of absent words have all their grams in other
 * words, against 52 % with three. Building costs 1.4 ns a byte in an extent of 3,700 rows: 190 ns for a log row whose body
 * has 131, a sixth of sealing it. So ingest builds none; they are for extents that are rewritten, which takes longer than
 * that in any case.
 */
export const GRAM_BYTES = 4;
const BITS_PER_GRAM = 8;
/** Text of more different grams gets no filter, which would take more than 256 KiB. */
const MAX_GRAMS = 1 << 18;
/** Five grams that follow each other are looked up at once: most text is made of words that were seen before. */
const WINDOW_BYTES = 8;
const WINDOW_GRAMS = WINDOW_BYTES - GRAM_BYTES + 1;
/** 256 KiB. */
const WINDOW_BITS = 15;
/** 64 KiB: a text of a few thousand different words finds nearly all of its grams there. */
const RECENT_BITS = 14;

/** Builds the filter; undefined when there are too many different grams. */
export function buildGramFilter({ offsets, bytes }: Texts): Uint8Array | undefined {
  const builder = new GramFilterBuilder(MAX_GRAMS);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let start = offsets[0] ?? 0;
  for (let i = 1; i < offsets.length; i++) {
    const end = offsets[i] as number;
    builder.add(view, start, end);
    if (builder.isFull) return undefined;
    start = end;
  }
  return builder.finish();
}

/** Builds a filter text by text, for extents that do not fit into memory. */
export class GramFilterBuilder {
  readonly #maxGrams: number;
  /** Zero marks a free slot: it is the hash of four NULs alone, which the filter always has. */
  #slots: Int32Array;
  readonly #shift: number;
  #grams: Int32Array;
  /** The last gram of each of as many kinds: most grams were seen a moment ago, and finding that out needs no hash. */
  readonly #recent = new Int32Array(1 << RECENT_BITS);
  /**
   * The same of windows, each as the double that its bytes are, which takes one comparison. What equals nothing (NaN), or
   * what other bytes may be, too (zero), hardly is in any text, and is looked into every time.
   */
  readonly #windows = new Float64Array(1 << WINDOW_BITS);
  #count = 1;
  #isFull = false;

  /** `maxGrams` is a power of two; a filter of as many takes as many bytes. */
  constructor(maxGrams: number) {
    this.#maxGrams = maxGrams;
    // Two slots to a gram, found by its highest bits.
    this.#slots = new Int32Array(maxGrams * 2);
    this.#shift = Math.clz32(maxGrams * 2) + 1;
    this.#grams = new Int32Array(maxGrams);
  }

  /** There were too many grams: there is no filter to be had. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /**
   * Adds all grams of `view[start, end)`. Returns a hash of the text, by which different texts can be counted: it is made
   * of words that are looked at in any case, which takes much less than another pass. It is not that of filters of values.
   */
  add(view: DataView, start: number, end: number): number {
    if (end - start < WINDOW_BYTES) return this.#addShort(view, start, end);
    const windows = this.#windows;
    let hash = end - start;
    // The last window ends with the text, and mostly has some grams of the one before.
    const last = end - WINDOW_BYTES;
    for (let at = start; ; at = at + WINDOW_GRAMS < last ? at + WINDOW_GRAMS : last) {
      const head = view.getInt32(at, true);
      const tail = view.getInt32(at + GRAM_BYTES, true);
      const bytes = view.getFloat64(at, true);
      hash = hashedWith(hashedWith(hash, head), tail);
      const kind = (Math.imul(head, 0x9e3779b1) ^ Math.imul(tail, 0x85ebca6b)) >>> (32 - WINDOW_BITS);
      if (windows[kind] !== bytes || bytes === 0) {
        windows[kind] = bytes;
        this.#addWindow(head, tail);
      }
      if (at === last) return mixed(hash);
    }
  }

  #addShort(view: DataView, start: number, end: number): number {
    for (let at = start; at <= end - GRAM_BYTES; at++) this.#addWord(view.getInt32(at, true));
    let hash = end - start;
    for (let at = start; at < end; at++) hash = hashedWith(hash, view.getUint8(at));
    return mixed(hash);
  }

  /** The five grams of eight bytes: the first is `head`, the last `tail`. */
  #addWindow(head: number, tail: number): void {
    this.#addWord(head);
    this.#addWord((head >>> 8) | (tail << 24));
    this.#addWord((head >>> 16) | (tail << 16));
    this.#addWord((head >>> 24) | (tail << 8));
    this.#addWord(tail);
  }

  #addWord(word: number): void {
    const recent = this.#recent;
    const kind = Math.imul(word, 0x9e3779b1) >>> (32 - RECENT_BITS);
    if (recent[kind] === word) return;
    recent[kind] = word;
    if (!this.#isFull) this.#addGram(mixed(word));
  }

  #addGram(gram: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = gram >>> this.#shift;
    while (slots[slot] !== gram && slots[slot] !== 0) slot = (slot + 1) & mask;
    if (slots[slot] === gram) return;
    if (this.#count === this.#maxGrams) {
      this.#isFull = true;
      // Nobody needs them any more, and they are large.
      this.#slots = new Int32Array(0);
      this.#grams = new Int32Array(0);
      return;
    }
    slots[slot] = gram;
    this.#grams[this.#count++] = gram;
  }

  /** The filter of all grams; undefined when there were too many. */
  finish(): Uint8Array | undefined {
    if (this.#isFull) return undefined;
    const blocks = Math.ceil((this.#count * BITS_PER_GRAM) / 256);
    const filter = emptyFilter("grams", blocks);
    for (let i = 0; i < this.#count; i++) addHash(filter.words, blocks, this.#grams[i] as number);
    return sealFilter(filter.bytes, blocks);
  }
}

/** `mix` of `columns/hash.ts` takes as long, and gave 0.5 % of 200,000 numbered texts the hash of another. */
function hashedWith(hash: number, word: number): number {
  return Math.imul(((hash << 15) | (hash >>> 17)) ^ word, 0x1b873593);
}
