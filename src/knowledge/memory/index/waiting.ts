import type { Lists } from "./block-pool.ts";
import { grown } from "./columns.ts";

/**
 * Values on their way to lists, each with the number of its list. Where many wait, those of a list go there together: to
 * go from one list to the next for each value would miss the processor's cache for each.
 */
export class Waiting {
  #keys = new Uint32Array(0);
  #values = new Uint32Array(0);
  count = 0;

  add(key: number, value: number): void {
    const at = this.count++;
    if (at >= this.#keys.length) {
      this.#keys = grown(this.#keys, this.count);
      this.#values = grown(this.#values, this.count);
    }
    this.#keys[at] = key;
    this.#values[at] = value;
  }

  /** Whether there is enough to be handed over at once. */
  get isFull(): boolean {
    return this.count >= MOST_WAITING;
  }

  /** Moves all to the lists that `listOf` says, those of one list in the order in which they came. */
  moveTo(lists: Lists, listOf: (key: number) => number): void {
    const { count } = this;
    this.count = 0;
    if (count < WORTH_SORTING) {
      for (let i = 0; i < count; i++) lists.push(listOf(this.#keys[i] ?? 0), this.#values[i] ?? 0);
      return;
    }
    const { ends, sorted } = byKey(this.#keys.subarray(0, count), this.#values);
    let start = 0;
    for (let key = 0; key < ends.length; key++) {
      const end = ends[key] ?? 0;
      if (end > start) lists.append(listOf(key), sorted, start, end);
      start = end;
    }
  }

  get sizeBytes(): number {
    return this.#keys.byteLength + this.#values.byteLength;
  }
}

const MOST_WAITING = 1 << 17;
const WORTH_SORTING = 1 << 12;

/** Puts values into the order of their keys, those of one as they were. Returns where those of each key end, too. */
function byKey(keys: Uint32Array, values: Uint32Array): { ends: Uint32Array; sorted: Uint32Array } {
  let most = 0;
  for (let i = 0; i < keys.length; i++) most = Math.max(most, keys[i] ?? 0);
  // Where the values of a key go next: first of all where they begin, in the end where they end.
  const ends = new Uint32Array(most + 2);
  for (let i = 0; i < keys.length; i++) {
    const after = (keys[i] ?? 0) + 1;
    ends[after] = (ends[after] ?? 0) + 1;
  }
  for (let key = 1; key < ends.length; key++) ends[key] = (ends[key] ?? 0) + (ends[key - 1] ?? 0);
  const sorted = new Uint32Array(keys.length);
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] ?? 0;
    const at = ends[key] ?? 0;
    sorted[at] = values[i] ?? 0;
    ends[key] = at + 1;
  }
  return { ends, sorted };
}
