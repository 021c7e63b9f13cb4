import { grown } from "./columns.ts";
import { MOST_COUNT, MOST_NUMBERS, packed } from "./postings.ts";
import { chunksOf } from "./terms/chunks.ts";
import { chunkTerms } from "./terms/terms.ts";
import { TextTable } from "./text-table.ts";

/** Chunks whose terms are remembered: most are the same few thousand words. */
const REMEMBERED = { chunks: 100_000, chars: 32 } as const;

/** Counts the terms of one document after the other. Terms are numbers, the same for all documents. */
export class TermCounter {
  readonly #terms = new TextTable();
  #chunks = new ChunkTerms();
  /** Of the document, by term. */
  #counts = new Uint8Array(256);
  /** The terms of the document; when they are taken, packed with how often it has them. */
  #met = new Uint32Array(256);
  #distinct = 0;
  #length = 0;

  /** The number of a term, -1 for one that no document has. */
  termOf(term: string): number {
    return this.#terms.find(term);
  }

  /** How many terms there are. */
  get terms(): number {
    return this.#terms.count;
  }

  /** Counts each term of a part of the document so many times. */
  add(text: string, times: number): void {
    chunksOf(text, (from, to) => {
      if (to - from > REMEMBERED.chars) {
        for (const term of chunkTerms(text.slice(from, to))) this.#count(this.#numberOf(term), times);
        return;
      }
      let chunk = this.#chunks.find(text, from, to);
      if (chunk < 0) chunk = this.#remember(text, from, to);
      const { terms, starts } = this.#chunks;
      const end = starts[chunk + 1] ?? 0;
      for (let i = starts[chunk] ?? 0; i < end; i++) this.#count(terms[i] ?? 0, times);
    });
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
    return this.#terms.sizeBytes + this.#chunks.sizeBytes + byteLength + this.#met.byteLength;
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
    const number = this.#terms.numberOf(term);
    if (number >= MOST_NUMBERS) throw new Error(`a database has more than ${MOST_NUMBERS} different terms`);
    this.#counts = grown(this.#counts, this.#terms.count);
    return number;
  }

  #remember(text: string, from: number, to: number): number {
    if (this.#chunks.count >= REMEMBERED.chunks) this.#chunks = new ChunkTerms();
    const terms = chunkTerms(text.slice(from, to));
    return this.#chunks.add(
      text,
      { from, to },
      terms.map((term) => this.#numberOf(term)),
    );
  }
}

/** The terms of chunks, by number. */
class ChunkTerms {
  readonly #chunks = new TextTable();
  /** Of all chunks, one after the other; where those of a chunk begin, one more than there are chunks. */
  terms = new Uint32Array(256);
  starts = new Uint32Array(256);
  #end = 0;

  get count(): number {
    return this.#chunks.count;
  }

  /** -1 for a chunk that is not known. */
  find(text: string, from: number, to: number): number {
    return this.#chunks.find(text, from, to);
  }

  add(text: string, { from, to }: { from: number; to: number }, terms: readonly number[]): number {
    const chunk = this.#chunks.numberOf(text, from, to);
    this.terms = grown(this.terms, this.#end + terms.length);
    this.terms.set(terms, this.#end);
    this.#end += terms.length;
    this.starts = grown(this.starts, chunk + 2);
    this.starts[chunk + 1] = this.#end;
    return chunk;
  }

  get sizeBytes(): number {
    return this.#chunks.sizeBytes + this.terms.byteLength + this.starts.byteLength;
  }
}
