/**
 * Keys of a row, by their bytes. Rows of one source have their keys in one order, so the key that followed last time is
 * tried first; a hash table over the bytes finds the others.
 */

/** A key as the scanner knows it: what to compare with, and what its value becomes. */
export type Slot<T> = {
  /** The key with its quotes and its colon, as compact JSON has it. */
  readonly token: Uint8Array;
  /** The same in words of four bytes (little-endian), and what counts of the last one. */
  readonly words: Int32Array;
  readonly lastMask: number;
  readonly hash: number;
  readonly target: T;
  /** The slot that followed this one in the row before. */
  next: Slot<T> | undefined;
};

const INITIAL_BUCKETS = 64;
const QUOTE = 0x22;
const COLON = 0x3a;

export class KeyTable<T> {
  #buckets: (Slot<T> | undefined)[] = Array.from({ length: INITIAL_BUCKETS });
  /** All slots, in the order in which they came. */
  readonly slots: Slot<T>[] = [];

  /** The slot whose key has the bytes `source[start, end)`, quotes not included. */
  find(source: Uint8Array, start: number, end: number): Slot<T> | undefined {
    const hash = hashOf(source, start, end);
    const mask = this.#buckets.length - 1;
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const slot = this.#buckets[at];
      if (slot === undefined) return undefined;
      if (slot.hash === hash && hasKey(slot.token, source, start, end)) return slot;
    }
  }

  /** Adds the key `source[start, end)`, which is not there. */
  add(source: Uint8Array, start: number, end: number, target: T): Slot<T> {
    if (this.slots.length * 2 >= this.#buckets.length) this.#grow();
    const token = new Uint8Array(end - start + 3);
    token[0] = QUOTE;
    token.set(source.subarray(start, end), 1);
    token[end - start + 1] = QUOTE;
    token[end - start + 2] = COLON;
    const hash = hashOf(source, start, end);
    const slot: Slot<T> = { token, ...wordsOf(token), hash, target, next: undefined };
    this.#place(slot);
    this.slots.push(slot);
    return slot;
  }

  get size(): number {
    return this.slots.length;
  }

  #grow(): void {
    const slots = this.#buckets;
    this.#buckets = Array.from({ length: slots.length * 2 });
    for (const slot of slots) if (slot !== undefined) this.#place(slot);
  }

  #place(slot: Slot<T>): void {
    const mask = this.#buckets.length - 1;
    let at = slot.hash & mask;
    while (this.#buckets[at] !== undefined) at = (at + 1) & mask;
    this.#buckets[at] = slot;
  }
}

/** Whether the slot's token stands at `at`; reads up to three bytes beyond it. */
export function hasToken(source: DataView, at: number, words: Int32Array, lastMask: number): boolean {
  const last = words.length - 1;
  let position = at;
  for (let i = 0; i < last; i++, position += 4) {
    if (source.getInt32(position, true) !== words[i]) return false;
  }
  return (source.getInt32(position, true) & lastMask) === words[last];
}

function wordsOf(token: Uint8Array): { words: Int32Array; lastMask: number } {
  const words = new Int32Array(Math.ceil(token.length / 4));
  for (let i = 0; i < token.length; i++) {
    words[i >> 2] = (words[i >> 2] as number) | ((token[i] as number) << ((i & 3) * 8));
  }
  const rest = token.length & 3;
  return { words, lastMask: rest === 0 ? -1 : (1 << (rest * 8)) - 1 };
}

/** FNV-1a, 32 bits (Fowler, Noll, Vo). */
function hashOf(source: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5 | 0;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (source[at] as number), 0x01000193);
  return hash ^ (hash >>> 15);
}

function hasKey(token: Uint8Array, source: Uint8Array, start: number, end: number): boolean {
  if (token.length !== end - start + 3) return false;
  for (let at = start, i = 1; at < end; at++, i++) if (source[at] !== token[i]) return false;
  return true;
}
