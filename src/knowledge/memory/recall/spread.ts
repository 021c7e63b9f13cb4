import { RECALL_LIMITS } from "./limits.ts";
import type { Neighbours } from "./neighbours.ts";

/** Scores by the number of a node. */
export type Scores = Map<number, number>;

/**
 * Spreads the scores of the best candidates over edges: a neighbour is given a part, smaller with each hop. Neighbours
 * share by weight, but less than evenly: the one neighbour of a node gets all of the part, each of nine a third of it.
 */
export function spread(seeds: Scores, hops: number, neighbours: Neighbours): Scores {
  const gained: Scores = new Map();
  const reached = new Set(seeds.keys());
  let frontier: Scores = seeds;
  for (let hop = 0; hop < hops && frontier.size > 0; hop++) {
    const next: Scores = new Map();
    for (const [node, score] of frontier) {
      neighbours.of(node, (neighbour, _slot, _edge, share) => {
        const part = score * PART_PER_HOP * Math.sqrt(share);
        gained.set(neighbour, (gained.get(neighbour) ?? 0) + part);
        if (!reached.has(neighbour)) next.set(neighbour, (next.get(neighbour) ?? 0) + part);
      });
    }
    for (const node of next.keys()) reached.add(node);
    frontier = best(next, RECALL_LIMITS.seeds);
  }
  return gained;
}

const PART_PER_HOP = 0.5;

/** The entries with the greatest scores. */
export function best(scores: Scores, count: number): Scores {
  if (scores.size <= count) return scores;
  return new Map([...scores].toSorted((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, count));
}

/**
 * Personalised PageRank of the candidates, by local push (Andersen, Chung and Lang, "Local Graph Partitioning using
 * PageRank Vectors", 2006): what a walk from the candidates that returns to them with probability `RETURN` visits, to
 * within `LEAST` of each node's share. It touches the neighbourhood of the candidates, however large the graph is.
 */
export function pageRank(seeds: Scores, neighbours: Neighbours): Scores {
  const rank: Scores = new Map();
  const rest: Scores = new Map();
  const queue: number[] = [];
  const total = [...seeds.values()].reduce((sum, score) => sum + score, 0);
  if (total === 0) return rank;
  for (const [node, score] of seeds) {
    rest.set(node, score / total);
    queue.push(node);
  }
  for (let at = 0; at < queue.length && at < MOST_PUSHES; at++) {
    const node = queue[at] ?? 0;
    const mass = rest.get(node) ?? 0;
    if (mass < LEAST) continue;
    rest.set(node, 0);
    rank.set(node, (rank.get(node) ?? 0) + RETURN * mass);
    const moved = (1 - RETURN) * mass;
    neighbours.of(node, (neighbour, _slot, _edge, share) => {
      const before = rest.get(neighbour) ?? 0;
      const after = before + moved * share;
      rest.set(neighbour, after);
      if (before < LEAST && after >= LEAST) queue.push(neighbour);
    });
  }
  return rank;
}

const RETURN = 0.25;
const LEAST = 2e-3;
const MOST_PUSHES = 1_000;
