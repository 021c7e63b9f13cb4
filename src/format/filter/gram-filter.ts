import { addHash } from "./block-bloom.ts";
import { emptyFilter, sealFilter } from "./filter.ts";
import { mixed } from "./hash.ts";
import type { Texts } from "./value-filter.ts";

/**
 * Filters of all four-byte sequences in a column's texts, for needles of at least four bytes.
 *
 * Four bytes rather than three: over 5,000 package descriptions, 22 % of absent words have all their grams in other
 * words, against 52 % with three. Building costs 3 ns a byte: 380 ns for a log row whose body has 128, a third of sealing
 * it. So ingest builds none; they are for extents that are rewritten, which takes longer than that in any case.
 */
export const GRAM_BYTES = 4;
const BITS_PER_GRAM = 8;
/** Text of more different grams gets no filter, which would take more than 256 KiB. */
const MAX_GRAMS = 1 << 18;
/** Bytes of four grams that follow each other, looked up at once: most text is made of words that were seen before. */
const WINDOW_BYTES = 2 * GRAM_BYTES - 1;
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
    if (!builder.add(view, start, end)) return undefined;
    start = end;
  }
  return builder.finish();
}

/** Builds a filter text by text, for extents that do not fit into memory. */
export class GramFilterBuilder {
  readonly #maxGrams: number;
  /** Zero marks a free slot: it is the hash of four NULs alone, which the filter always has. */
  readonly #slots: Int32Array;
  readonly #shift: number;
  readonly #grams: Int32Array;
  /** The last gram of each of as many kinds: most grams were seen a moment ago, and finding that out needs no hash. */
  readonly #recent = new Int32Array(1 << RECENT_BITS);
  /** The same of windows, as pairs of the first gram and the last. Zeroes are seven NULs, which the filter has too. */
  readonly #windows = new Int32Array(2 << WINDOW_BITS);
  #count = 1;

  /** `maxGrams` is a power of two; a filter of as many takes as many bytes. */
  constructor(maxGrams: number) {
    this.#maxGrams = maxGrams;
    // Two slots to a gram, found by its highest bits.
    this.#slots = new Int32Array(maxGrams * 2);
    this.#shift = Math.clz32(maxGrams * 2) + 1;
    this.#grams = new Int32Array(maxGrams);
  }

  /** Adds all grams of `view[start, end)`; false when there are too many by now, and the filter is not to be had. */
  add(view: DataView, start: number, end: number): boolean {
    const windows = this.#windows;
    let at = start;
    for (const last = end - WINDOW_BYTES; at <= last; at += GRAM_BYTES) {
      const head = view.getInt32(at, true);
      const tail = view.getInt32(at + GRAM_BYTES - 1, true);
      const kind = (Math.imul(head, 0x9e3779b1) ^ Math.imul(tail, 0x85ebca6b)) >>> (32 - WINDOW_BITS);
      if (windows[kind * 2] === head && windows[kind * 2 + 1] === tail) continue;
      windows[kind * 2] = head;
      windows[kind * 2 + 1] = tail;
      if (!this.#addWindow(head, tail)) return false;
    }
    for (const last = end - GRAM_BYTES; at <= last; at++) if (!this.#addWord(view.getInt32(at, true))) return false;
    return true;
  }

  /** The four grams of seven bytes: the first is `head`, the last `tail`, and they share a byte. */
  #addWindow(head: number, tail: number): boolean {
    return (
      this.#addWord(head) &&
      this.#addWord((head >>> 8) | ((tail << 16) & 0xff000000)) &&
      this.#addWord((head >>> 16) | ((tail << 8) & 0xffff0000)) &&
      this.#addWord(tail)
    );
  }

  #addWord(word: number): boolean {
    const recent = this.#recent;
    const kind = Math.imul(word, 0x9e3779b1) >>> (32 - RECENT_BITS);
    if (recent[kind] === word) return true;
    recent[kind] = word;
    return this.#addGram(mixed(word));
  }

  #addGram(gram: number): boolean {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = gram >>> this.#shift;
    while (slots[slot] !== gram && slots[slot] !== 0) slot = (slot + 1) & mask;
    if (slots[slot] === gram) return true;
    if (this.#count === this.#maxGrams) return false;
    slots[slot] = gram;
    this.#grams[this.#count++] = gram;
    return true;
  }

  finish(): Uint8Array {
    const blocks = Math.ceil((this.#count * BITS_PER_GRAM) / 256);
    const filter = emptyFilter("grams", blocks);
    for (let i = 0; i < this.#count; i++) addHash(filter.words, blocks, this.#grams[i] as number);
    return sealFilter(filter.bytes, blocks);
  }
}
