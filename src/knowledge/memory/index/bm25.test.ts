import { expect, test } from "vitest";
import { drawnRandom } from "../../../core/drawn-seed.test-kit.ts";
import { Lists } from "./block-pool.ts";
import { BM25, Searcher } from "./bm25.ts";
import { packed, Postings } from "./postings.ts";

/** Enough documents for lists to be passed over. */
const DOCUMENTS = 4_000;
const TERMS = 400;
const LIMIT = 20;

test("the best documents are those of scoring all, whatever lists are passed over", () => {
  const random = drawnRandom();
  const documents = Array.from({ length: DOCUMENTS }, () => drawn(() => random.next()));
  const lengths = Uint16Array.from(documents, (counts) => [...counts.values()].reduce((sum, count) => sum + count, 0));
  const entries = documents.map((counts) => Uint32Array.from(counts, ([term, count]) => packed(term, count)));
  const parts = [new Postings(), new Postings()];
  const termLists = new Lists();
  for (const [i, terms] of entries.entries()) {
    parts[i % 2]?.add(i, terms, lengths[i] ?? 0);
    termLists.set(i, terms, terms.length);
  }
  const searcher = new Searcher();
  for (let round = 0; round < 40; round++) {
    const isFiltered = round % 3 === 0;
    const accepts = isFiltered ? (document: number) => document % 7 !== 0 : undefined;
    const terms = Array.from({ length: 1 + (round % 8) }, () => termOf(random.next()));
    const weighted = [...new Set(terms)].map((term) => ({ term, weight: term < 4 ? 0.2 : 1 }));
    const hits = searcher.search({
      parts,
      terms: weighted,
      allTerms: TERMS,
      lengths,
      termLists,
      accepts,
      before: (a, b) => b - a,
      limit: LIMIT,
    });
    const scores = scored(documents, lengths, weighted);
    const wanted = scores.filter((score, document) => score > 0 && (accepts?.(document) ?? true));
    const best = wanted.toSorted((a, b) => b - a).slice(0, LIMIT);
    expect(new Set(hits.map(({ document }) => document)).size).toBe(best.length);
    for (const [i, { document, score }] of hits.entries()) {
      expect(score).toBeCloseTo(scores[document] ?? 0, 9);
      expect(score).toBeCloseTo(best[i] ?? 0, 9);
    }
  }
});

/** A few terms are in most documents, most are in few. */
function termOf(drawn: number): number {
  return Math.floor(TERMS ** drawn) - 1;
}

function drawn(next: () => number): Map<number, number> {
  const counts = new Map<number, number>();
  for (let words = 4 + Math.floor(next() * 20); words > 0; words--) {
    const term = termOf(next());
    counts.set(term, (counts.get(term) ?? 0) + 1);
  }
  return counts;
}

/** The scores of all documents, by definition. */
function scored(
  documents: readonly ReadonlyMap<number, number>[],
  lengths: Uint16Array,
  terms: readonly { term: number; weight: number }[],
): Float64Array {
  const mean = lengths.reduce((sum, length) => sum + length, 0) / documents.length;
  const scores = new Float64Array(documents.length);
  for (const { term, weight } of terms) {
    const holders = documents.reduce((sum, counts) => sum + (counts.has(term) ? 1 : 0), 0);
    const idf = weight * Math.log(1 + (documents.length - holders + 0.5) / (holders + 0.5));
    for (const [document, counts] of documents.entries()) {
      const count = counts.get(term) ?? 0;
      const norm = BM25.k1 * (1 - BM25.b + (BM25.b * (lengths[document] ?? 0)) / mean);
      scores[document] = (scores[document] ?? 0) + (idf * count * (BM25.k1 + 1)) / (count + norm);
    }
  }
  return scores;
}
