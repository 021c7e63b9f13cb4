import { systemRandom } from "../../../core/random.ts";

/**
 * The hash of the tables by open addressing: 32 bits, a number at a time. Texts and ids come from outside; with a start
 * that nobody knows they cannot be chosen to fall on one place. Nothing that is answered depends on it.
 */
export const HASH_START = Math.floor(systemRandom.next() * 2 ** 32) | 0;

/** One round of MurmurHash3 (Appleby, public domain). */
export function hashStep(hash: number, value: number): number {
  const spread = Math.imul(value, 0xcc9e2d51);
  const mixed = hash ^ Math.imul((spread << 15) | (spread >>> 17), 0x1b873593);
  return (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) | 0;
}

export function hashEnd(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

/**
 * An entry of such a table, whose length is a power of two, is a number + 1 in as many low bits as are in `mask`, and in
 * those above it the same bits of the hash. So what another hash has led to the same place is told apart without a look
 * at what it stands for, which is far away in memory.
 */
export const FREE = 0;

export function isOfHash(entry: number, hash: number, mask: number): boolean {
  return ((entry ^ hash) & ~mask) === 0;
}

export function numberIn(entry: number, mask: number): number {
  return (entry & mask) - 1;
}

/** Enters a number that is in no place yet. At most half of the places are taken, so the number + 1 fits. */
export function enter(places: Int32Array, hash: number, number: number): void {
  const mask = places.length - 1;
  let place = hash & mask;
  while (places[place] !== FREE) place = (place + 1) & mask;
  places[place] = (hash & ~mask) | (number + 1);
}
