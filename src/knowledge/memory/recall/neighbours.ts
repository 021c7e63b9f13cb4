import { grown } from "../index/columns.ts";
import type { RealmEdges } from "../index/realm-edges.ts";
import { RECALL_LIMITS } from "./limits.ts";
import type { View } from "./view.ts";

/**
 * The edges of nodes that a view has. Of a node with very many the weightiest are followed, of equal ones the newest; and
 * one question looks at so many edges in all, which bounds what it may cost. A node is looked up once; its neighbours then
 * lie side by side in arrays.
 */
export class Neighbours {
  readonly #view: View;
  /** The places of nodes that were looked up; by place, where the neighbours begin, and where those of the last end. */
  readonly #places = new Map<number, number>();
  readonly #starts = [0];
  #looked = 0;
  #count = 0;
  edges = new Uint32Array(256);
  nodes = new Uint32Array(256);
  slots = new Uint32Array(256);
  /** The edge's share of the weight of all. */
  shares = new Float64Array(256);

  constructor(view: View) {
    this.#view = view;
  }

  /** More than the number of any node. */
  get numbers(): number {
    return this.#view.index.nodes.versions.ids.count;
  }

  /** Calls `each` for every neighbour: the number of its node, its slot, the edge, and the edge's share of the node's. */
  of(node: number, each: (neighbour: number, slot: number, edge: number, share: number) => void): void {
    const place = this.placeOf(node);
    const end = this.endOf(place);
    for (let at = this.startOf(place); at < end; at++) {
      each(this.nodes[at] ?? 0, this.slots[at] ?? 0, this.edges[at] ?? 0, this.shares[at] ?? 0);
    }
  }

  /** Looks a node up. Its neighbours are in the arrays from `startOf` to `endOf` of its place. */
  placeOf(node: number): number {
    const known = this.#places.get(node);
    if (known !== undefined) return known;
    const place = this.#places.size;
    this.#places.set(node, place);
    this.#collect(node);
    this.#starts.push(this.#count);
    return place;
  }

  startOf(place: number): number {
    return this.#starts[place] ?? 0;
  }

  endOf(place: number): number {
    return this.#starts[place + 1] ?? 0;
  }

  #collect(node: number): void {
    const view = this.#view;
    const { live, past } = view.index.edges;
    const start = this.#count;
    this.#look(node, live);
    if (view.isOfThePast) this.#look(node, past);
    this.#keepWeightiest(start);
    this.#share(start);
  }

  #look(node: number, lists: RealmEdges): void {
    lists.of(node, RECALL_LIMITS.edgesPerNode, this.#view.visible, (list) => this.#lookThrough(node, list));
  }

  /** Adds those that are in view, in the order of the list, until there are enough. */
  #lookThrough(node: number, list: Uint32Array): void {
    const view = this.#view;
    const { edges } = view.index;
    const { edgesPerNode, edgesLooked } = RECALL_LIMITS;
    const most = this.#count + edgesPerNode;
    this.#reserve(Math.min(list.length, edgesPerNode));
    for (let i = 0; i < list.length && this.#count < most && this.#looked < edgesLooked; i++) {
      this.#looked++;
      const edge = list[i] ?? 0;
      const other = edges.otherEnd(edge, node);
      if (other === node || !view.hasEdge(edge)) continue;
      const slot = view.nodeOf(other);
      if (slot < 0) continue;
      this.edges[this.#count] = edge;
      this.nodes[this.#count] = other;
      this.slots[this.#count] = slot;
      this.#count++;
    }
  }

  /** Of all lists of a node together. */
  #keepWeightiest(start: number): void {
    const { edgesPerNode } = RECALL_LIMITS;
    if (this.#count - start <= edgesPerNode) return;
    const { edges } = this.#view.index;
    const all = Array.from({ length: this.#count - start }, (_, i) => {
      const at = start + i;
      return { edge: this.edges[at] ?? 0, node: this.nodes[at] ?? 0, slot: this.slots[at] ?? 0 };
    });
    all.sort((a, b) => edges.compare(a.edge, b.edge));
    for (const [i, { edge, node, slot }] of all.slice(0, edgesPerNode).entries()) {
      this.edges[start + i] = edge;
      this.nodes[start + i] = node;
      this.slots[start + i] = slot;
    }
    this.#count = start + edgesPerNode;
  }

  /** A node whose edges weigh nothing has no neighbours. */
  #share(start: number): void {
    const { weight } = this.#view.index.edges;
    let total = 0;
    for (let at = start; at < this.#count; at++) total += weight[this.edges[at] ?? 0] ?? 0;
    if (total === 0) this.#count = start;
    for (let at = start; at < this.#count; at++) this.shares[at] = (weight[this.edges[at] ?? 0] ?? 0) / total;
  }

  #reserve(count: number): void {
    const length = this.#count + count;
    this.edges = grown(this.edges, length);
    this.nodes = grown(this.nodes, length);
    this.slots = grown(this.slots, length);
    this.shares = grown(this.shares, length);
  }
}
