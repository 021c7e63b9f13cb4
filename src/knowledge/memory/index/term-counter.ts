import { grown } from "./columns.ts";
import { MOST_COUNT, MOST_NUMBERS, packed } from "./postings.ts";
import { Chunks } from "./terms/chunks.ts";
import { chunkTerms } from "./terms/terms.ts";
import { TextTable } from "./text-table.ts";

/** Chunks whose terms are remembered: most are the same few thousand words. */
const REMEMBERED = { chunks: 100_000, chars: 32 } as const;

/** Counts the terms of one document after the other. Terms are numbers, the same for all documents. */
export class TermCounter {
  readonly #terms = new TextTable();
  readonly #reader = new Chunks();
  #known = new ChunkTerms();
  /** Of the document, by term. */
  #counts = new Uint8Array(256);
  /** The terms of the document; when they are taken, packed with how often it has them. */
  #met = new Uint32Array(256);
  #distinct = 0;
  #length = 0;

  /** The number of a term, -1 for one that no document has. */
  termOf(term: string): number {
    return this.#terms.findText(term);
  }

  /** How many terms there are. */
  get terms(): number {
    return this.#terms.count;
  }

  /** Counts each term of a part of the document so many times. */
  add(text: string, times: number): void {
    const reader = this.#reader;
    reader.read(text);
    while (reader.next()) {
      const { from, to } = reader;
      if (to - from > REMEMBERED.chars) {
        for (const term of chunkTerms(text.slice(from, to))) this.#count(this.#numberOf(term), times);
        continue;
      }
      let chunk = this.#known.find(reader.text.values, from, to);
      if (chunk < 0) chunk = this.#remember(text, from, to);
      const only = this.#known.onlyTermOf(chunk);
      if (only >= 0) this.#count(only, times);
      else for (const term of this.#known.termsOf(chunk)) this.#count(term, times);
    }
  }

  /** The terms of the document, packed with their counts: valid until the next one. Its length counts all of them. */
  take(): { terms: Uint32Array; length: number } {
    const length = this.#length;
    const met = this.#met;
    for (let i = 0; i < this.#distinct; i++) {
      const term = met[i] ?? 0;
      met[i] = packed(term, this.#counts[term] ?? 0);
      this.#counts[term] = 0;
    }
    const terms = met.subarray(0, this.#distinct);
    this.#distinct = 0;
    this.#length = 0;
    return { terms, length };
  }

  get sizeBytes(): number {
    const { byteLength } = this.#counts;
    return this.#terms.sizeBytes + this.#known.sizeBytes + byteLength + this.#met.byteLength;
  }

  #count(term: number, times: number): void {
    const known = this.#counts[term] ?? 0;
    if (known === 0) {
      if (this.#distinct === this.#met.length) this.#met = grown(this.#met, this.#distinct + 1);
      this.#met[this.#distinct++] = term;
    }
    this.#counts[term] = Math.min(known + times, MOST_COUNT);
    this.#length += times;
  }

  #numberOf(term: string): number {
    const number = this.#terms.numberOfText(term);
    if (number >= MOST_NUMBERS) throw new Error(`a database has more than ${MOST_NUMBERS} different terms`);
    this.#counts = grown(this.#counts, this.#terms.count);
    return number;
  }

  #remember(text: string, from: number, to: number): number {
    if (this.#known.count >= REMEMBERED.chunks) this.#known = new ChunkTerms();
    const terms = chunkTerms(text.slice(from, to)).map((term) => this.#numberOf(term));
    return this.#known.add(this.#reader.text.values, { from, to }, terms);
  }
}

/** The terms of chunks, by number. Most have one. */
class ChunkTerms {
  readonly #chunks = new TextTable();
  /** By chunk: its term if it has one, else -1 minus the place of its list. */
  #firsts = new Int32Array(256);
  readonly #lists: Uint32Array[] = [];
  #sizeBytes = 0;

  get count(): number {
    return this.#chunks.count;
  }

  /** -1 for a chunk that is not known. */
  find(units: Uint16Array, from: number, to: number): number {
    return this.#chunks.find(units, from, to);
  }

  /** -1 for a chunk that has several, or none. */
  onlyTermOf(chunk: number): number {
    return Math.max(this.#firsts[chunk] ?? 0, -1);
  }

  /** Of a chunk that has not one. */
  termsOf(chunk: number): Uint32Array {
    return this.#lists[-1 - (this.#firsts[chunk] ?? 0)] ?? NO_TERMS;
  }

  add(units: Uint16Array, { from, to }: { from: number; to: number }, terms: readonly number[]): number {
    const chunk = this.#chunks.numberOf(units, from, to);
    this.#firsts = grown(this.#firsts, chunk + 1);
    const [only] = terms;
    if (terms.length === 1 && only !== undefined) this.#firsts[chunk] = only;
    else {
      this.#firsts[chunk] = -this.#lists.push(Uint32Array.from(terms));
      this.#sizeBytes += LIST_BYTES + terms.length * Uint32Array.BYTES_PER_ELEMENT;
    }
    return chunk;
  }

  get sizeBytes(): number {
    return this.#chunks.sizeBytes + this.#firsts.byteLength + this.#sizeBytes;
  }
}

const NO_TERMS = new Uint32Array(0);

/** About what V8 takes for a small array of numbers. */
const LIST_BYTES = 150;
