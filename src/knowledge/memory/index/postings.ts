import { Lists } from "./block-pool.ts";
import { grown } from "./columns.ts";
import { NumberMap } from "./number-map.ts";

/**
 * Which documents hold a term, and how often: one part of an index, with statistics of its own. Terms and documents are
 * numbers below 2^24, and each posting is one number of 32 bits. Postings are in no order: documents come and go.
 *
 * What is added waits until the postings are read, or until there is much of it, and goes to the lists term by term: to
 * go from one list to the next for each word would miss the processor's cache for each.
 */
export class Postings {
  readonly #listByTerm = new NumberMap();
  readonly #lists = new Lists();
  /** Postings that wait, and the terms of each. */
  #waiting = new Uint32Array(0);
  #waitingTerms = new Uint32Array(0);
  #waits = 0;
  documents = 0;
  totalLength = 0;

  /** `terms` are a document's, packed with how often it holds them (`packed`). */
  add(document: number, terms: Uint32Array, length: number): void {
    this.#waiting = grown(this.#waiting, this.#waits + terms.length);
    this.#waitingTerms = grown(this.#waitingTerms, this.#waits + terms.length);
    for (let i = 0; i < terms.length; i++) {
      const entry = terms[i] ?? 0;
      this.#waiting[this.#waits] = packed(document, countOf(entry));
      this.#waitingTerms[this.#waits++] = numberOf(entry);
    }
    if (this.#waits >= MOST_WAITING) this.#flush();
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
    return this.#listByTerm.sizeBytes + this.#lists.sizeBytes + this.#waiting.byteLength * 2;
  }

  #flush(): void {
    const waits = this.#waits;
    if (waits === 0) return;
    this.#waits = 0;
    if (waits < WORTH_SORTING) {
      for (let i = 0; i < waits; i++) this.#lists.push(this.#listOf(this.#waitingTerms[i] ?? 0), this.#waiting[i] ?? 0);
      return;
    }
    const { ends, sorted } = byTerm(this.#waitingTerms.subarray(0, waits), this.#waiting);
    let start = 0;
    for (let term = 0; term < ends.length; term++) {
      const end = ends[term] ?? 0;
      if (end > start) this.#lists.append(this.#listOf(term), sorted.subarray(start, end));
      start = end;
    }
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

/** Postings that wait at most, and how many are sorted before they go to their lists. */
const MOST_WAITING = 1 << 17;
const WORTH_SORTING = 1 << 12;

/** Puts values into the order of their terms, those of one as they were. Returns where those of each term end, too. */
function byTerm(terms: Uint32Array, values: Uint32Array): { ends: Uint32Array; sorted: Uint32Array } {
  let most = 0;
  for (let i = 0; i < terms.length; i++) most = Math.max(most, terms[i] ?? 0);
  // Where the values of a term go next: first of all where they begin, in the end where they end.
  const ends = new Uint32Array(most + 2);
  for (let i = 0; i < terms.length; i++) {
    const after = (terms[i] ?? 0) + 1;
    ends[after] = (ends[after] ?? 0) + 1;
  }
  for (let term = 1; term < ends.length; term++) ends[term] = (ends[term] ?? 0) + (ends[term - 1] ?? 0);
  const sorted = new Uint32Array(terms.length);
  for (let i = 0; i < terms.length; i++) {
    const term = terms[i] ?? 0;
    const at = ends[term] ?? 0;
    sorted[at] = values[i] ?? 0;
    ends[term] = at + 1;
  }
  return { ends, sorted };
}

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
