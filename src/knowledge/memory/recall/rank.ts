import type { WeightedTerm } from "../index/bm25.ts";
import { Searcher } from "../index/bm25.ts";
import { termWeight } from "../index/terms/stop-words.ts";
import { termsOf } from "../index/terms/terms.ts";
import { RECALL_LIMITS } from "./limits.ts";
import { Neighbours } from "./neighbours.ts";
import type { Asking, Extent, Question, RatingOptions } from "./question.ts";
import { ageFactor, importanceFactor } from "./rating.ts";
import { best, pageRank, spread, type Scores } from "./spread.ts";
import type { View } from "./view.ts";

/**
 * Ranks what a view has for a question, in steps:
 *
 * 1. candidates: by their words, by their meaning where there are vectors, and the entities that the question names with
 *    the memories beside them;
 * 2. fused by reciprocal rank, so that the lists need no common scale;
 * 3. spread over edges, or rescored by personalised PageRank;
 * 4. weighed by importance and age.
 */
export function rank(
  view: View,
  { query, vector, expandHops }: Pick<Question, "query"> & Pick<Asking, "vector"> & Pick<Extent, "expandHops">,
  options: RatingOptions,
): Ranking {
  const neighbours = new Neighbours(view);
  const lexical = lexicalCandidates(view, query);
  const meant = vectorCandidates(view, vector);
  const entities = namedEntities(view, query);
  const named = linkedTo(view, entities, neighbours);
  const fused = fuse([lexical, meant, named]);
  const graph = overEdges(view, strengths(fused, { lexical, meant, named }), { expandHops, neighbours, options });
  const results: Ranked[] = [];
  for (const node of new Set([...fused.keys(), ...graph.keys()])) {
    const slot = view.nodeOf(node);
    const base = fused.get(node) ?? 0;
    const gained = graph.get(node) ?? 0;
    const { importance, age } = factorsOf(view, slot, options);
    const score = (base + gained) * importance * age;
    const byList = { lexical: lexical.get(node) ?? 0, vector: meant.get(node) ?? 0, entity: named.get(node) ?? 0 };
    results.push({ node, slot, score, parts: { ...byList, fused: base, graph: gained, rerank: 0, importance, age } });
  }
  const { versions } = view.index.nodes;
  results.sort((a, b) => b.score - a.score || versions.compare(a.slot, b.slot));
  return {
    memories: results.filter(({ slot }) => view.isWanted(slot)),
    entities: results.filter(({ slot }) => view.isEntity(slot)),
    neighbours,
  };
}

export type Ranked = { node: number; slot: number; score: number; parts: ScoreParts };

export type ScoreParts = {
  /** BM25 of its words. */
  lexical: number;
  /** How close it is to what the question means: the cosine of the angle between their vectors. */
  vector: number;
  /** As an entity that the question names, or a memory beside one. */
  entity: number;
  /** Of its ranks among all three; 1 for the first of every list. */
  fused: number;
  /** What came over edges. */
  graph: number;
  /** How relevant its text is to the question, by a model that reads both: see `reranking.ts`. */
  rerank: number;
  importance: number;
  age: number;
};

export type Ranking = { memories: readonly Ranked[]; entities: readonly Ranked[]; neighbours: Neighbours };

/** One for each thread: it keeps arrays from one search to the next. */
const searcher = new Searcher();

/** Nodes by the number of their id, the best first. */
function lexicalCandidates(view: View, query: string): Scores {
  const { nodes } = view.index;
  const { versions } = nodes;
  const hits = searcher.search({
    parts: view.parts,
    terms: questionTerms(view, query),
    allTerms: nodes.terms,
    lengths: nodes.lengths,
    termLists: nodes.termLists,
    accepts: view.accepts,
    before: (a, b) => versions.compare(a, b),
    limit: RECALL_LIMITS.lexicalCandidates,
  });
  return new Map(hits.map(({ document, score }) => [versions.owner[document] ?? 0, score]));
}

/** Nodes by the number of their id, the closest first. */
function vectorCandidates(view: View, vector: Float32Array | undefined): Scores {
  const { nodes, vectors } = view.index;
  if (vector === undefined || vectors === undefined) return new Map();
  const { versions } = nodes;
  const hits = vectors.search(vector, {
    slotOf: (node) => {
      const slot = view.nodeOf(node);
      return slot >= 0 && (view.isEntity(slot) || view.isWanted(slot)) ? slot : -1;
    },
    before: (a, b) => versions.compare(a, b),
    rescored: RECALL_LIMITS.vectorsRescored,
    limit: RECALL_LIMITS.vectorCandidates,
  });
  // Ranks alone do not say that the second of the list means something else.
  const least = LEAST_CLOSENESS * (hits[0]?.cosine ?? 0);
  const close = hits.filter(({ cosine }) => cosine > 0 && cosine >= least);
  return new Map(close.map(({ slot, cosine }) => [versions.owner[slot] ?? 0, cosine]));
}

/** What is less than half as close as the closest is no candidate. */
const LEAST_CLOSENESS = 0.5;

function questionTerms(view: View, query: string): WeightedTerm[] {
  const weights = new Map<number, number>();
  termsOf(query, (text) => {
    if (weights.size >= RECALL_LIMITS.terms) return;
    const term = view.index.nodes.termOf(text);
    if (term >= 0) weights.set(term, termWeight(text));
  });
  return Array.from(weights, ([term, weight]) => ({ term, weight }));
}

/** Entities in view whose names are in the question; longer names count more. */
function namedEntities(view: View, query: string): Scores {
  const { names, importance } = view.index.nodes;
  const found: Scores = new Map();
  const isSeen = (node: number) => view.isEntity(view.nodeOf(node));
  const keys = names.namedIn(query, isSeen);
  for (const { key, words } of keys) {
    if (words === 1 && keys.length > 1 && termWeight(names.nameOf(key)) < 1) continue;
    for (const node of names.ownersOf(key)) {
      if (isSeen(node)) found.set(node, words + (importance[view.nodeOf(node)] ?? 0));
    }
  }
  return ordered(view, found, RECALL_LIMITS.entityCandidates);
}

/** These entities, then the memories that edges connect with them. */
function linkedTo(view: View, entities: Scores, neighbours: Neighbours): Scores {
  const linked: Scores = new Map();
  for (const [entity, score] of entities) {
    neighbours.of(entity, (neighbour, slot, _edge, share) => {
      if (entities.has(neighbour) || !view.isWanted(slot)) return;
      const importance = view.index.nodes.importance[slot] ?? 0;
      linked.set(neighbour, (linked.get(neighbour) ?? 0) + score * (share + importance / 1_000));
    });
  }
  return new Map([...entities, ...ordered(view, linked, RECALL_LIMITS.linkedCandidates)]);
}

function ordered(view: View, scores: Scores, most: number): Scores {
  const all = [...scores].toSorted((a, b) => b[1] - a[1] || view.compareNodes(a[0], b[0]));
  return new Map(all.slice(0, most));
}

/** Reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009), with 1 for the first of a list. */
function fuse(lists: readonly Scores[]): Scores {
  const fused: Scores = new Map();
  for (const list of lists) {
    for (const [place, node] of [...list.keys()].entries()) {
      fused.set(node, (fused.get(node) ?? 0) + (RANK_OFFSET + 1) / (RANK_OFFSET + 1 + place));
    }
  }
  return fused;
}

const RANK_OFFSET = 60;

/**
 * How strongly each candidate speaks for its neighbours: by its scores in relation to the best ones. Ranks alone say
 * little about that: the fortieth of a list has two thirds of the first. Squared, one that is half as good has a quarter.
 * Closeness counts from that on which makes a candidate.
 */
function strengths(fused: Scores, { lexical, meant, named }: Record<"lexical" | "meant" | "named", Scores>): Scores {
  const mostLexical = Math.max(0, ...lexical.values());
  const [closest = 1] = meant.values();
  const mostNamed = Math.max(0, ...named.values());
  return new Map(
    Array.from(fused.keys(), (node) => {
      const byWords = (lexical.get(node) ?? 0) / (mostLexical || 1);
      const byName = (named.get(node) ?? 0) / (mostNamed || 1);
      const cosine = meant.get(node);
      const byMeaning = cosine === undefined ? 0 : (cosine / closest - LEAST_CLOSENESS) / (1 - LEAST_CLOSENESS);
      return [node, Math.max(byWords, byName, byMeaning) ** 2];
    }),
  );
}

function overEdges(
  view: View,
  candidates: Scores,
  { expandHops, neighbours, options }: { expandHops: number; neighbours: Neighbours; options: RatingOptions },
): Scores {
  if (expandHops === 0) return new Map();
  const before = (a: number, b: number) => view.compareNodes(a, b);
  const seeds = best(candidates, RECALL_LIMITS.seeds, before);
  if (!options.ppr) return spread(seeds, expandHops, neighbours, before);
  const ranks = best(pageRank(seeds, neighbours), RECALL_LIMITS.linkedCandidates, before);
  const most = Math.max(0, ...ranks.values());
  return new Map(Array.from(ranks, ([node, value]) => [node, (RANK_PART * value) / most]));
}

/** What PageRank gives the first, where the first of a list is given 1. */
const RANK_PART = 0.5;

function factorsOf(view: View, slot: number, options: RatingOptions): { importance: number; age: number } {
  const { nodes } = view.index;
  const type = nodes.types.texts[nodes.type[slot] ?? 0] ?? "";
  return {
    importance: importanceFactor(nodes.importance[slot] ?? 0),
    age: ageFactor(view.atUs - nodes.versions.originUs(slot), type, options),
  };
}
