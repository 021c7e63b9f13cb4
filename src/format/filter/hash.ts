/**
 * The hash that filters are built and asked by: MurmurHash3_x86_32 (Austin Appleby, public domain) with seed 0. Part of
 * the stored format: it never changes under the version of a filter.
 *
 * 32 bits are enough: with 200,000 values the chance that another one has the hash of any of them is 1 in 20,000, far
 * below what the bits of a filter leave to chance. It needs nothing but 32-bit multiplications, which JavaScript has;
 * the 64-bit ones of xxHash64, Parquet's choice, would each be four of them.
 */
const C1 = 0xcc9e2d51;
const C2 = 0x1b873593;

/** Of `length` bytes of `view` from `start` on. */
export function hashRange(view: DataView, start: number, length: number): number {
  let hash = 0;
  let at = start;
  const end = start + length;
  for (const last = end - 3; at < last; at += 4) {
    const word = Math.imul(view.getInt32(at, true), C1);
    hash ^= Math.imul((word << 15) | (word >>> 17), C2);
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0;
  }
  if (at < end) {
    let rest = 0;
    for (let shift = 0; at < end; at++, shift += 8) rest |= view.getUint8(at) << shift;
    rest = Math.imul(rest, C1);
    hash ^= Math.imul((rest << 15) | (rest >>> 17), C2);
  }
  return mixed(hash ^ length);
}

/** Spreads what the bits of a word say over all of them: the end of MurmurHash3. One-to-one. */
export function mixed(word: number): number {
  let hash = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
