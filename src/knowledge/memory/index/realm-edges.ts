import { EdgeLists } from "./edge-lists.ts";

/**
 * Lists of edges by node, in which each private realm has lists of its own: however many edges somebody hangs on a node
 * that all see, a question of others does not look at them.
 */
export class RealmEdges {
  readonly #shared: EdgeLists;
  readonly #private: EdgeLists;
  /** By node and number of the realm: its list among the private ones. */
  readonly #lists = new Map<number, Map<number, number>>();
  #count = 0;

  constructor(compare: (a: number, b: number) => number) {
    this.#shared = new EdgeLists(compare);
    this.#private = new EdgeLists(compare);
  }

  /** `realm`: the number of the edge's realm where that is a private one. */
  add(node: number, edge: number, realm: number | undefined): void {
    if (realm === undefined) this.#shared.add(node, edge);
    else this.#private.add(this.#listOf(node, realm), edge);
  }

  remove(node: number, edge: number, realm: number | undefined): void {
    if (realm === undefined) this.#shared.remove(node, edge);
    else this.#private.remove(this.#listOf(node, realm), edge);
  }

  /** Calls `each` with the lists of a node: that of all shared realms, and those of private ones that are visible. */
  of(node: number, few: number, visible: Uint8Array, each: (edges: Uint32Array) => void): void {
    each(this.#shared.of(node, few));
    const lists = this.#lists.get(node);
    if (lists === undefined) return;
    for (const [realm, list] of lists) if (visible[realm] === 1) each(this.#private.of(list, few));
  }

  get sizeBytes(): number {
    return this.#shared.sizeBytes + this.#private.sizeBytes + this.#count * LIST_BYTES;
  }

  #listOf(node: number, realm: number): number {
    let lists = this.#lists.get(node);
    if (lists === undefined) this.#lists.set(node, (lists = new Map<number, number>()));
    let list = lists.get(realm);
    if (list === undefined) lists.set(realm, (list = this.#count++));
    return list;
  }
}

/** About what V8 takes for a map with one entry, and its entry in another. */
const LIST_BYTES = 250;
