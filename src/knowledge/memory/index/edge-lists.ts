import { Lists } from "./block-pool.ts";
import { grown } from "./columns.ts";
import { Waiting } from "./waiting.ts";

/**
 * Lists of edges, by node. Long ones are put in order when they are first asked for, and once more after changes. What is
 * added waits until a list is read, or until there is much of it.
 */
export class EdgeLists {
  readonly #lists = new Lists();
  readonly #waiting = new Waiting();
  readonly #compare: (a: number, b: number) => number;
  /** By node: 0 for a list in no order, else how often it has changed since it was in order, + 1. */
  #changes = new Uint8Array(64);

  /** Which of two edges comes first must not change while they are in a list. */
  constructor(compare: (a: number, b: number) => number) {
    this.#compare = compare;
  }

  add(node: number, edge: number): void {
    this.#waiting.add(node, edge);
    this.#changes = grown(this.#changes, node + 1);
    this.#onChange(node);
    if (this.#waiting.isFull) this.#flush();
  }

  remove(node: number, edge: number): void {
    this.#flush();
    this.#lists.remove(node, edge);
    this.#onChange(node);
  }

  /** The edges of a node, in order when they are more than `few`: valid until the next change. */
  of(node: number, few: number): Uint32Array {
    this.#flush();
    const edges = this.#lists.view(node);
    const changes = this.#changes[node] ?? 0;
    if (edges.length <= few || changes === 1) return edges;
    if (changes === 0) edges.sort(this.#compare);
    else insertionSort(edges, this.#compare);
    this.#changes[node] = 1;
    return edges;
  }

  get sizeBytes(): number {
    return this.#lists.sizeBytes + this.#waiting.sizeBytes + this.#changes.byteLength;
  }

  #flush(): void {
    if (this.#waiting.count > 0) this.#waiting.moveTo(this.#lists, (node) => node);
  }

  #onChange(node: number): void {
    const changes = this.#changes[node] ?? 0;
    if (changes !== 0) this.#changes[node] = changes > FEW_CHANGES ? 0 : changes + 1;
  }
}

/** After so many, sorting the whole list takes no longer than moving each to its place. */
const FEW_CHANGES = 16;

/** Fast where few are out of their place. */
function insertionSort(values: Uint32Array, compare: (a: number, b: number) => number): void {
  for (let i = 1; i < values.length; i++) {
    const value = values[i] ?? 0;
    let at = i;
    for (; at > 0 && compare(values[at - 1] ?? 0, value) > 0; at--) values[at] = values[at - 1] ?? 0;
    values[at] = value;
  }
}
