import { grown } from "../index/columns.ts";
import { firstOf, kthGreatest } from "../index/top.ts";
import { RECALL_LIMITS } from "./limits.ts";
import type { Neighbours } from "./neighbours.ts";

/** Scores by the number of a node. */
export type Scores = Map<number, number>;

/** Which of two nodes comes first where their scores are equal. */
export type Before = (a: number, b: number) => number;

/**
 * Spreads the scores of the best candidates over edges: a neighbour is given a part, smaller with each hop. Neighbours
 * share by weight, but less than evenly: the one neighbour of a node gets all of the part, each of nine a third of it.
 */
export function spread(seeds: Scores, hops: number, neighbours: Neighbours, before: Before): Scores {
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
    frontier = best(next, RECALL_LIMITS.seeds, before);
  }
  return gained;
}

const PART_PER_HOP = 0.5;

/** The entries with the greatest scores. */
export function best(scores: Scores, count: number, before: Before): Scores {
  if (scores.size <= count) return scores;
  const least = kthGreatest(Float64Array.from(scores.values()), scores.size, count);
  const greater: [number, number][] = [];
  const ties: number[] = [];
  for (const [node, score] of scores) {
    if (score > least) greater.push([node, score]);
    else if (score === least) ties.push(node);
  }
  const last = firstOf(Uint32Array.from(ties), count - greater.length, before);
  return new Map([...greater, ...Array.from(last, (node): [number, number] => [node, least])]);
}

/**
 * Personalised PageRank of the candidates, by local push (Andersen, Chung and Lang, "Local Graph Partitioning using
 * PageRank Vectors", 2006): what a walk from the candidates that returns to them with probability `RETURN` visits. A node
 * passes on what waits at it once that is enough, for the node and for each of its neighbours. So a question touches the
 * neighbourhood of its candidates, however large the graph is, and follows a hub only where much leads there. Never
 * more than the exact rank, by what still waits in the end.
 */
export function pageRank(seeds: Scores, neighbours: Neighbours): Scores {
  const total = [...seeds.values()].reduce((sum, score) => sum + score, 0);
  if (total === 0) return new Map();
  walk.reserve(neighbours.numbers);
  for (const [node, score] of seeds) walk.receive(node, score / total);
  for (let pushes = 0; pushes < MOST_PUSHES && walk.passOn(neighbours); pushes++);
  return walk.take();
}

const RETURN = 0.25;
/** What must wait at a node for it to be looked at, and for each of its neighbours to be passed on. */
const LEAST = 2e-3;
const LEAST_PER_NEIGHBOUR = 1e-4;
const MOST_PUSHES = 1_000;

/** Of one walk after the other, in arrays by the numbers of nodes, which are empty between walks. */
class Walk {
  #stayed = new Float64Array(256);
  #waiting = new Float64Array(256);
  /** How much is enough to pass on, once that is known. */
  #enough = new Float64Array(256);
  readonly #met: number[] = [];
  readonly #queue: number[] = [];
  #next = 0;

  reserve(numbers: number): void {
    this.#stayed = grown(this.#stayed, numbers);
    this.#waiting = grown(this.#waiting, numbers);
    this.#enough = grown(this.#enough, numbers);
  }

  receive(node: number, mass: number): void {
    const before = this.#waiting[node] ?? 0;
    const after = before + mass;
    if (before === 0 && this.#stayed[node] === 0) this.#met.push(node);
    this.#waiting[node] = after;
    const enough = this.#enough[node] || LEAST;
    if (before < enough && after >= enough) this.#queue.push(node);
  }

  /** Has the next node pass on what waits at it. False when none is left. */
  passOn(neighbours: Neighbours): boolean {
    const node = this.#queue[this.#next++];
    if (node === undefined) return false;
    const mass = this.#waiting[node] ?? 0;
    const place = neighbours.placeOf(node);
    const start = neighbours.startOf(place);
    const end = neighbours.endOf(place);
    const enough = Math.max(LEAST, LEAST_PER_NEIGHBOUR * (end - start));
    this.#enough[node] = enough;
    if (mass < enough) return true;
    this.#waiting[node] = 0;
    this.#stayed[node] = (this.#stayed[node] ?? 0) + RETURN * mass;
    const { nodes, shares } = neighbours;
    for (let at = start; at < end; at++) {
      const share = shares[at] ?? 0;
      if (share > 0) this.receive(nodes[at] ?? 0, (1 - RETURN) * mass * share);
    }
    return true;
  }

  /** What has stayed at each node, with the part that would stay of what waits. */
  take(): Scores {
    const ranks: Scores = new Map();
    for (const node of this.#met) {
      ranks.set(node, (this.#stayed[node] ?? 0) + RETURN * (this.#waiting[node] ?? 0));
      this.#stayed[node] = 0;
      this.#waiting[node] = 0;
      this.#enough[node] = 0;
    }
    this.#met.length = 0;
    this.#queue.length = 0;
    this.#next = 0;
    return ranks;
  }
}

/** One for each thread. */
const walk = new Walk();
