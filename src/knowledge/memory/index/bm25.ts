import { grown } from "./columns.ts";
import { countOf, numberOf, type Postings } from "./postings.ts";
import { kthGreatest } from "./top.ts";

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
  /** Of documents, by number. */
  lengths: Uint16Array;
  /** Asked once for each document that may be among the best. */
  accepts: (document: number) => boolean;
  /** Which of two documents with one score comes first. */
  before: (a: number, b: number) => number;
  limit: number;
};

export type Hit = { document: number; score: number };

/**
 * Term by term over arrays of scores, the weightiest first. Once no document that holds only the remaining terms can be
 * among the best any more, these only add to the documents that are there: long lists of common words are read for
 * nothing else. The result is that of scoring all documents.
 */
export class Searcher {
  #scores = new Float64Array(256);
  #touched = new Uint32Array(256);
  #partial = new Float64Array(256);

  search(search: Search): Hit[] {
    const terms = weighed(search);
    this.#scores = grown(this.#scores, search.lengths.length);
    let touched = 0;
    let accepted = 0;
    let isClosed = false;
    let remaining = terms.reduce((sum, { bound }) => sum + bound, 0);
    const { lengths, accepts, parts, limit } = search;
    const { norm, slope } = normOf(parts);
    const scores = this.#scores;
    for (const { term, idf, bound, documents } of terms) {
      if (!isClosed && accepted >= limit && documents >= WORTH_BOUNDING) {
        isClosed = remaining < this.#kth(touched, limit);
      }
      for (const part of parts) {
        const list = part.of(term);
        this.#touched = grown(this.#touched, touched + list.length);
        const touchedNow = this.#touched;
        for (let i = 0; i < list.length; i++) {
          const entry = list[i] ?? 0;
          const document = numberOf(entry);
          const score = scores[document] ?? 0;
          if (score < 0 || (isClosed && score === 0)) continue;
          if (score === 0) {
            touchedNow[touched++] = document;
            if (!accepts(document)) {
              scores[document] = -1;
              continue;
            }
            accepted++;
          }
          const count = countOf(entry);
          scores[document] =
            score + (idf * (count * (BM25.k1 + 1))) / (count + norm + slope * (lengths[document] ?? 0));
        }
      }
      remaining -= bound;
    }
    return this.#best(touched, search);
  }

  #best(touched: number, { limit, before }: Search): Hit[] {
    const least = this.#kth(touched, limit);
    const hits: Hit[] = [];
    for (let i = 0; i < touched; i++) {
      const document = this.#touched[i] ?? 0;
      const score = this.#scores[document] ?? 0;
      if (score > 0 && score >= least) hits.push({ document, score });
      this.#scores[document] = 0;
    }
    hits.sort((a, b) => b.score - a.score || before(a.document, b.document));
    return hits.slice(0, limit);
  }

  #kth(touched: number, limit: number): number {
    this.#partial = grown(this.#partial, touched);
    let count = 0;
    for (let i = 0; i < touched; i++) {
      const score = this.#scores[this.#touched[i] ?? 0] ?? 0;
      if (score > 0) this.#partial[count++] = score;
    }
    return count < limit ? 0 : kthGreatest(this.#partial, count, limit);
  }
}

/** Shorter lists are read sooner than it is found out whether they need be. */
const WORTH_BOUNDING = 1_000;

/** A hair more than the sum of rounded numbers can be short of. */
const ROUNDING = 1 + 1e-9;

type Weighed = { term: number; idf: number; documents: number; bound: number };

function weighed({ parts, terms }: Search): Weighed[] {
  const all = parts.reduce((sum, { documents }) => sum + documents, 0);
  const found = terms.flatMap(({ term, weight }): Weighed[] => {
    const documents = parts.reduce((sum, part) => sum + part.countFor(term), 0);
    if (documents === 0) return [];
    const idf = weight * Math.log(1 + (all - documents + 0.5) / (documents + 0.5));
    return [{ term, idf, documents, bound: idf * (BM25.k1 + 1) * ROUNDING }];
  });
  return found.toSorted((a, b) => b.idf - a.idf || a.documents - b.documents);
}

/** `k1 · (1 − b + b · length / mean)` is `norm + slope · length`. */
function normOf(parts: readonly Postings[]): { norm: number; slope: number } {
  const documents = parts.reduce((sum, part) => sum + part.documents, 0);
  const length = parts.reduce((sum, part) => sum + part.totalLength, 0);
  return { norm: BM25.k1 * (1 - BM25.b), slope: length === 0 ? 0 : (BM25.k1 * BM25.b * documents) / length };
}
