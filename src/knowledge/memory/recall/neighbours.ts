import { grown } from "../index/columns.ts";
import { kthGreatest } from "../index/top.ts";
import { RECALL_LIMITS } from "./limits.ts";
import type { View } from "./view.ts";

/**
 * The edges of nodes that a view has. Of a node with very many the weightiest are followed, of equal ones the newest; and
 * one question looks at so many edges in all, which bounds what it may cost.
 */
export class Neighbours {
  readonly #view: View;
  /** Edges by node, once they were looked at. */
  readonly #known = new Map<number, Uint32Array>();
  #looked = 0;
  #edges = new Uint32Array(64);
  #keys = new Float64Array(64);
  #sorted = new Float64Array(64);

  constructor(view: View) {
    this.#view = view;
  }

  /** Calls `each` for every neighbour: the number of its node, its slot, the edge, and the edge's share of the node's. */
  of(node: number, each: (neighbour: number, slot: number, edge: number, share: number) => void): void {
    let known = this.#known.get(node);
    if (known === undefined) {
      known = this.#edges.slice(0, this.#collect(node));
      this.#known.set(node, known);
    }
    const { edges } = this.#view.index;
    let total = 0;
    for (const edge of known) total += edges.weight[edge] ?? 0;
    if (total === 0) return;
    for (const edge of known) {
      const other = edges.otherEnd(edge, node);
      each(other, this.#view.nodeOf(other), edge, (edges.weight[edge] ?? 0) / total);
    }
  }

  #collect(node: number): number {
    const view = this.#view;
    const { live, past } = view.index.edges;
    let count = this.#look(node, live.view(node), 0);
    if (view.isOfThePast || view.withInvalidated) count = this.#look(node, past.view(node), count);
    return count > RECALL_LIMITS.edgesPerNode ? this.#weightiest(count) : count;
  }

  #look(node: number, list: Uint32Array, before: number): number {
    const view = this.#view;
    const { edges } = view.index;
    let count = before;
    this.#edges = grown(this.#edges, before + list.length);
    for (const edge of list) {
      if (this.#looked++ >= RECALL_LIMITS.edgesLooked) break;
      const other = edges.otherEnd(edge, node);
      if (other === node || !view.hasEdge(edge) || view.nodeOf(other) < 0) continue;
      this.#edges[count++] = edge;
    }
    return count;
  }

  /** Moves these to the front. Returns how many they are. */
  #weightiest(count: number): number {
    const { weight, versions } = this.#view.index.edges;
    this.#keys = grown(this.#keys, count);
    this.#sorted = grown(this.#sorted, count);
    for (let i = 0; i < count; i++) {
      const edge = this.#edges[i] ?? 0;
      // µs since 1970 stay below 10^16 for three hundred years: the weight comes first.
      this.#keys[i] = (weight[edge] ?? 0) + versions.originUs(edge) / 1e17;
    }
    this.#sorted.set(this.#keys.subarray(0, count));
    const least = kthGreatest(this.#sorted, count, RECALL_LIMITS.edgesPerNode);
    const ties: number[] = [];
    let kept = 0;
    for (let i = 0; i < count; i++) {
      const edge = this.#edges[i] ?? 0;
      if ((this.#keys[i] ?? 0) > least) this.#edges[kept++] = edge;
      else if (this.#keys[i] === least) ties.push(edge);
    }
    ties.sort((a, b) => versions.compareHashes(a, b));
    for (const edge of ties.slice(0, RECALL_LIMITS.edgesPerNode - kept)) this.#edges[kept++] = edge;
    return kept;
  }
}
