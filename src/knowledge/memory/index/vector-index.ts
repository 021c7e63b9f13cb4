import { EMBED_LIMITS } from "../embed/limits.ts";
import { grown } from "./columns.ts";
import { IdTable } from "./id-table.ts";
import { firstOf } from "./top.ts";

/** A stored vector, of length 1. `key` is a digest of the node's id and the text that it is of. */
export type IndexedVector = { key: string; nodeId: string; seq: number; vector: Float32Array };

export type VectorSearch = {
  /** The version of a node that may be found, by the number of its id; -1 for none. */
  slotOf: (node: number) => number;
  /** Which of two versions comes first where they are equally close. */
  before: (a: number, b: number) => number;
  /** How many are compared exactly: those whose codes are closest. */
  rescored: number;
  limit: number;
};

export type VectorHit = { slot: number; cosine: number };

/**
 * The vectors of nodes' texts, to be searched by closeness. A code has one bit for each dimension, whether it is
 * positive: the angle between two vectors is about proportional to how many bits differ. All codes are compared, and the
 * vectors of the closest ones. Nothing is built: a vector that comes is there for the next question.
 */
export class VectorIndex {
  readonly #nodeIds: IdTable;
  readonly #keys = new IdTable();
  /** By slot: the number of its key, + 1. */
  #keyOfSlot = new Uint32Array(64);
  /** By number of a key: whether its vector is here. */
  #isKnown = new Uint8Array(64);
  /** By number of a vector: that of its key, and of the id of its node. */
  #keyOf = new Uint32Array(64);
  #nodeOf = new Uint32Array(64);
  #codes = new Uint32Array(64);
  #values = new Float32Array(64);
  #dimensions = 0;
  count = 0;
  /** The last vector that is in. */
  seq = 0;

  /** `nodeIds`: the ids of nodes as numbers, which are given to ids that are new here. */
  constructor(nodeIds: IdTable) {
    this.#nodeIds = nodeIds;
  }

  /** Says which text a version has. */
  setKey(slot: number, key: string): void {
    this.#keyOfSlot = grown(this.#keyOfSlot, slot + 1);
    this.#keyOfSlot[slot] = this.#keys.numberOf(key) + 1;
  }

  /** Adds vectors, in the order of their numbers. All have the dimensions of the first one; others are passed over. */
  apply(vectors: readonly IndexedVector[]): void {
    for (const { key, nodeId, seq, vector } of vectors) {
      this.#add(this.#keys.numberOf(key), this.#nodeIds.numberOf(nodeId), vector);
      this.seq = seq;
    }
  }

  /** The closest versions, the closest first. */
  search(question: Float32Array, { slotOf, before, rescored, limit }: VectorSearch): VectorHit[] {
    if (question.length !== this.#dimensions) return [];
    const { vectors, slots, distances } = this.#measured(question, slotOf);
    const chosen = closest(distances, rescored, (a, b) => before(slots[a] ?? 0, slots[b] ?? 0));
    const hits = Array.from(chosen, (at): VectorHit => ({
      slot: slots[at] ?? 0,
      cosine: this.#cosine(question, vectors[at] ?? 0),
    }));
    hits.sort((a, b) => b.cosine - a.cosine || before(a.slot, b.slot));
    return hits.slice(0, limit);
  }

  get sizeBytes(): number {
    const columns = [this.#keyOfSlot, this.#isKnown, this.#keyOf, this.#nodeOf, this.#codes, this.#values];
    return this.#keys.sizeBytes + columns.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  #add(key: number, node: number, vector: Float32Array): void {
    if (this.#isKnown[key] === 1) return;
    this.#dimensions ||= vector.length;
    if (vector.length !== this.#dimensions) return;
    const number = this.count++;
    this.#isKnown = grown(this.#isKnown, key + 1);
    this.#keyOf = grown(this.#keyOf, this.count);
    this.#nodeOf = grown(this.#nodeOf, this.count);
    this.#codes = grown(this.#codes, this.count * this.#words);
    this.#values = grown(this.#values, this.count * this.#dimensions);
    this.#isKnown[key] = 1;
    this.#keyOf[number] = key;
    this.#nodeOf[number] = node;
    this.#codes.set(codeOf(vector), number * this.#words);
    this.#values.set(vector, number * this.#dimensions);
  }

  get #words(): number {
    return Math.ceil(this.#dimensions / BITS);
  }

  /** How many bits differ, of every vector whose text is in sight. */
  #measured(question: Float32Array, slotOf: (node: number) => number) {
    const code = codeOf(question);
    const { length } = code;
    const { count } = this;
    const [codes, nodeOf, keyOf, keyOfSlot] = [this.#codes, this.#nodeOf, this.#keyOf, this.#keyOfSlot];
    const vectors = new Uint32Array(count);
    const slots = new Uint32Array(count);
    const distances = new Uint16Array(count);
    let found = 0;
    for (let number = 0; number < count; number++) {
      const slot = slotOf(nodeOf[number] ?? 0);
      // Another version of the node has another text.
      if (slot < 0 || keyOfSlot[slot] !== (keyOf[number] ?? 0) + 1) continue;
      let distance = 0;
      const start = number * length;
      for (let i = 0; i < length; i++) distance += bitsIn((codes[start + i] ?? 0) ^ (code[i] ?? 0));
      vectors[found] = number;
      slots[found] = slot;
      distances[found++] = distance;
    }
    return { vectors, slots, distances: distances.subarray(0, found) };
  }

  #cosine(question: Float32Array, number: number): number {
    const values = this.#values;
    const start = number * this.#dimensions;
    let cosine = 0;
    for (let i = 0; i < question.length; i++) cosine += (question[i] ?? 0) * (values[start + i] ?? 0);
    return cosine;
  }
}

const BITS = 32;

/** A bit for each dimension: 1 where it is positive. */
function codeOf(vector: Float32Array): Uint32Array {
  const code = new Uint32Array(Math.ceil(vector.length / BITS));
  for (let i = 0; i < vector.length; i++) {
    if ((vector[i] ?? 0) > 0) code[i >>> 5] = (code[i >>> 5] ?? 0) | (1 << (i & (BITS - 1)));
  }
  return code;
}

function bitsIn(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** The places of the `count` least distances, in any order; of equal ones those that come first. */
function closest(distances: Uint16Array, count: number, before: (a: number, b: number) => number): Uint32Array {
  const limit = distanceOf(distances, count);
  const less: number[] = [];
  const ties: number[] = [];
  for (let at = 0; at < distances.length; at++) {
    const distance = distances[at] ?? 0;
    if (distance < limit) less.push(at);
    else if (distance === limit) ties.push(at);
  }
  return Uint32Array.from([...less, ...firstOf(Uint32Array.from(ties), count - less.length, before)]);
}

/** The greatest of the `count` least distances; more than all when there are not so many. */
function distanceOf(distances: Uint16Array, count: number): number {
  const histogram = new Uint32Array(MOST_DISTANCE + 1);
  for (let at = 0; at < distances.length; at++) {
    const distance = distances[at] ?? 0;
    histogram[distance] = (histogram[distance] ?? 0) + 1;
  }
  let nearer = 0;
  for (let distance = 0; distance <= MOST_DISTANCE; distance++) {
    nearer += histogram[distance] ?? 0;
    if (nearer >= count) return distance;
  }
  return MOST_DISTANCE + 1;
}

const MOST_DISTANCE = EMBED_LIMITS.dimensions;
