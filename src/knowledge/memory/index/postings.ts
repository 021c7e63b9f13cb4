import { Lists } from "./block-pool.ts";
import { NumberMap } from "./number-map.ts";
import { Waiting } from "./waiting.ts";

/**
 * Which documents hold a term, and how often: one part of an index, with statistics of its own. Terms and documents are
 * numbers below 2^24, and each posting is one number of 32 bits. Postings are in no order: documents come and go.
 * What is added waits until the postings are read, or until there is much of it.
 */
export class Postings {
  readonly #listByTerm = new NumberMap();
  readonly #lists = new Lists();
  /** By term. */
  readonly #waiting = new Waiting();
  documents = 0;
  totalLength = 0;

  /** `terms` are a document's, packed with how often it holds them (`packed`). */
  add(document: number, terms: Uint32Array, length: number): void {
    for (let i = 0; i < terms.length; i++) {
      const entry = terms[i] ?? 0;
      this.#waiting.add(numberOf(entry), packed(document, countOf(entry)));
    }
    if (this.#waiting.isFull) this.#flush();
    this.documents++;
    this.totalLength += length;
  }

  /** Takes out what `add` was given. */
  remove(document: number, terms: Uint32Array, length: number): void {
    this.#flush();
    for (const entry of terms) {
      const list = this.#listByTerm.get(numberOf(entry));
      if (list >= 0 && this.#lists.remove(list, packed(document, countOf(entry)))) continue;
      throw new Error(`the document ${document} is not in the postings of its term ${numberOf(entry)}`);
    }
    this.documents--;
    this.totalLength -= length;
  }

  /** The documents of a term, packed: valid until the next change. */
  of(term: number): Uint32Array {
    this.#flush();
    const list = this.#listByTerm.get(term);
    return list < 0 ? NOTHING : this.#lists.view(list);
  }

  countFor(term: number): number {
    this.#flush();
    const list = this.#listByTerm.get(term);
    return list < 0 ? 0 : this.#lists.lengthOf(list);
  }

  get sizeBytes(): number {
    return this.#listByTerm.sizeBytes + this.#lists.sizeBytes + this.#waiting.sizeBytes;
  }

  #flush(): void {
    if (this.#waiting.count > 0) this.#waiting.moveTo(this.#lists, (term) => this.#listOf(term));
  }

  #listOf(term: number): number {
    const known = this.#listByTerm.get(term);
    if (known >= 0) return known;
    const list = this.#listByTerm.count;
    this.#listByTerm.set(term, list);
    return list;
  }
}

const NOTHING = new Uint32Array(0);

/** Numbers that can be packed, and the greatest count. */
export const MOST_NUMBERS = 2 ** 24;
export const MOST_COUNT = 255;

export function packed(number: number, count: number): number {
  return ((number << 8) | count) >>> 0;
}

export function numberOf(entry: number): number {
  return entry >>> 8;
}

export function countOf(entry: number): number {
  return entry & MOST_COUNT;
}
