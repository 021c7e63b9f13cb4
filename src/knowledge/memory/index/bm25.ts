import type { Lists } from "./block-pool.ts";
import { grown } from "./columns.ts";
import { countOf, numberOf, type Postings } from "./postings.ts";
import { firstOf, kthGreatest } from "./top.ts";

/**
 * Okapi BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) with the inverse document frequency
 * that is never negative. Statistics are those of the parts that are searched together, so what a caller may not see has
 * no influence on what they see.
 */
export const BM25 = { k1: 1.2, b: 0.75 } as const;

export type WeightedTerm = { term: number; weight: number };

export type Search = {
  parts: readonly Postings[];
  terms: readonly WeightedTerm[];
  /** How many terms there are. */
  allTerms: number;
  /** Of documents, by number. */
  lengths: Uint16Array;
  /** By document: its terms, as its postings have them. */
  termLists: Lists;
  /** Asked once for each document that may be among the best; undefined when all of the parts are wanted. */
  accepts: ((document: number) => boolean) | undefined;
  /** Which of two documents with one score comes first. */
  before: (a: number, b: number) => number;
  limit: number;
};

export type Hit = { document: number; score: number };

/**
 * Term by term over arrays of scores, the weightiest first. Once no document that holds only the remaining terms can be
 * among the best any more, these only add to documents that are there, and the documents that cannot be among the best
 * with all of them are forgotten. When so few are left that their own terms are fewer than the next list, which is that
 * of a common word, what remains is read from those, and no further list. The result is that of scoring all documents.
 */
export class Searcher {
  /** By document: 0 for one without any of the terms so far, `REFUSED` for one that is not accepted. */
  #scores = new Float64Array(256);
  #touched = new Uint32Array(256);
  #count = 0;
  #accepted = 0;
  #partial = new Float64Array(256);
  /** By term, of those that remain. */
  #idf = new Float64Array(256);

  search(search: Search): Hit[] {
    const { limit } = search;
    const terms = weighed(search);
    const norm = normOf(search.parts);
    this.#scores = grown(this.#scores, search.lengths.length);
    this.#count = 0;
    this.#accepted = 0;
    let isClosed = false;
    for (const [i, term] of terms.entries()) {
      if (this.#accepted >= limit && term.documents >= WORTH_BOUNDING) {
        const least = this.#kth(limit);
        isClosed ||= term.remaining < least;
        if (isClosed) this.#keepFrom(least - term.remaining);
        if (isClosed && this.#count * TERMS_PER_DOCUMENT <= term.documents) {
          this.#finish(search, terms.slice(i), norm);
          break;
        }
      }
      for (const part of search.parts) {
        if (isClosed) this.#addTo(part.of(term.term), term.idf, norm, search);
        else this.#read(part.of(term.term), term.idf, norm, search);
      }
    }
    return this.#best(search);
  }

  /** Adds a term to the documents of its list. */
  #read(list: Uint32Array, idf: number, { base, slope }: Norm, { lengths, accepts }: Search): void {
    this.#touched = grown(this.#touched, this.#count + list.length);
    const scores = this.#scores;
    const touched = this.#touched;
    const factor = idf * (BM25.k1 + 1);
    let count = this.#count;
    for (let i = 0; i < list.length; i++) {
      const entry = list[i] ?? 0;
      const document = numberOf(entry);
      const score = scores[document] ?? 0;
      if (score < 0) continue;
      if (score === 0) {
        touched[count++] = document;
        if (accepts !== undefined && !accepts(document)) {
          scores[document] = REFUSED;
          continue;
        }
        this.#accepted++;
      }
      const times = countOf(entry);
      scores[document] = score + (factor * times) / (times + (base + slope * (lengths[document] ?? 0)));
    }
    this.#count = count;
  }

  /** Adds a term to those documents of its list that are there. */
  #addTo(list: Uint32Array, idf: number, { base, slope }: Norm, { lengths }: Search): void {
    const scores = this.#scores;
    const factor = idf * (BM25.k1 + 1);
    for (let i = 0; i < list.length; i++) {
      const entry = list[i] ?? 0;
      const document = numberOf(entry);
      const score = scores[document] ?? 0;
      if (score <= 0) continue;
      const times = countOf(entry);
      scores[document] = score + (factor * times) / (times + (base + slope * (lengths[document] ?? 0)));
    }
  }

  /** Forgets the documents with lower scores. */
  #keepFrom(least: number): void {
    let kept = 0;
    for (let i = 0; i < this.#count; i++) {
      const document = this.#touched[i] ?? 0;
      const score = this.#scores[document] ?? 0;
      if (score >= least) this.#touched[kept++] = document;
      else this.#scores[document] = 0;
    }
    this.#count = kept;
  }

  /** Adds the remaining terms to the documents that are left. */
  #finish({ allTerms, termLists, lengths }: Search, terms: readonly Weighed[], { base, slope }: Norm): void {
    this.#idf = grown(this.#idf, allTerms);
    const idfs = this.#idf;
    const { values } = termLists.pool;
    for (const { term, idf } of terms) idfs[term] = idf * (BM25.k1 + 1);
    for (let i = 0; i < this.#count; i++) {
      const document = this.#touched[i] ?? 0;
      const norm = base + slope * (lengths[document] ?? 0);
      let score = this.#scores[document] ?? 0;
      const start = termLists.startOf(document);
      const end = start + termLists.lengthOf(document);
      for (let at = start; at < end; at++) {
        const entry = values[at] ?? 0;
        const factor = idfs[numberOf(entry)] ?? 0;
        if (factor !== 0) score += (factor * countOf(entry)) / (countOf(entry) + norm);
      }
      this.#scores[document] = score;
    }
    for (const { term } of terms) idfs[term] = 0;
  }

  #best({ limit, before }: Search): Hit[] {
    const least = this.#kth(limit);
    const hits: Hit[] = [];
    let ties = 0;
    for (let i = 0; i < this.#count; i++) {
      const document = this.#touched[i] ?? 0;
      const score = this.#scores[document] ?? 0;
      this.#scores[document] = 0;
      if (score > least) hits.push({ document, score });
      else if (score === least && score > 0) this.#touched[ties++] = document;
    }
    const last = firstOf(this.#touched.subarray(0, ties), limit - hits.length, before);
    for (const document of last) hits.push({ document, score: least });
    return hits.sort((a, b) => b.score - a.score || before(a.document, b.document));
  }

  /** The score of the last one of the best; less than all of them when there are not so many. */
  #kth(limit: number): number {
    this.#partial = grown(this.#partial, this.#count);
    let count = 0;
    for (let i = 0; i < this.#count; i++) {
      const score = this.#scores[this.#touched[i] ?? 0] ?? 0;
      if (score > 0) this.#partial[count++] = score;
    }
    return count < limit ? 0 : kthGreatest(this.#partial, count, limit);
  }
}

const REFUSED = -1;

/** About how many a document has. */
const TERMS_PER_DOCUMENT = 40;

/** Shorter lists are read sooner than it is found out whether they need be. */
const WORTH_BOUNDING = 1_000;

/** A hair more than the sum of rounded numbers can be short of. */
const ROUNDING = 1 + 1e-9;

/** `remaining`: at most so much a document may be given by this term and those after it. */
type Weighed = { term: number; idf: number; documents: number; remaining: number };

function weighed({ parts, terms }: Search): Weighed[] {
  const all = parts.reduce((sum, { documents }) => sum + documents, 0);
  const found = terms.flatMap(({ term, weight }): Weighed[] => {
    const documents = parts.reduce((sum, part) => sum + part.countFor(term), 0);
    if (documents === 0) return [];
    const idf = weight * Math.log(1 + (all - documents + 0.5) / (documents + 0.5));
    return [{ term, idf, documents, remaining: 0 }];
  });
  found.sort((a, b) => b.idf - a.idf || a.documents - b.documents);
  let remaining = 0;
  for (const each of found.toReversed()) {
    remaining += each.idf * (BM25.k1 + 1) * ROUNDING;
    each.remaining = remaining;
  }
  return found;
}

/** `k1 · (1 − b + b · length / mean)` is `base + slope · length`. */
type Norm = { base: number; slope: number };

function normOf(parts: readonly Postings[]): Norm {
  const documents = parts.reduce((sum, part) => sum + part.documents, 0);
  const length = parts.reduce((sum, part) => sum + part.totalLength, 0);
  return { base: BM25.k1 * (1 - BM25.b), slope: length === 0 ? 0 : (BM25.k1 * BM25.b * documents) / length };
}
