/**
 * 32-bit hashes of column values, for statistics: fast and well spread, not for tables that strangers may fill, and not
 * stored anywhere.
 */

/** Takes the next 32 bits into a hash: one-to-one in either for a given other. */
export function mix(hash: number, word: number): number {
  const product = Math.imul(hash ^ word, 0x9e3779b1);
  return product ^ (product >>> 15);
}

/** Longer values are told apart by their length and `SAMPLED_WORDS` words, the first and last among them. */
const MAX_HASHED_BYTES = 256;
const SAMPLED_WORDS = 64;

/** Of `length` bytes of `view` from `start` on. Long values that are the same where it looks have the same hash. */
export function hashBytes(view: DataView, start: number, length: number): number {
  if (length < 4) return hashFewBytes(view, start, length);
  const last = start + length - 4;
  let hash = mix(length, view.getInt32(last, true));
  if (length <= MAX_HASHED_BYTES) {
    for (let at = start; at < last; at += 4) hash = mix(hash, view.getInt32(at, true));
  } else {
    const step = (length - 4) / (SAMPLED_WORDS - 1);
    for (let i = 0; i < SAMPLED_WORDS - 1; i++) {
      hash = mix(hash, view.getInt32(start + Math.floor(i * step), true));
    }
  }
  return mix(hash, length);
}

function hashFewBytes(view: DataView, start: number, length: number): number {
  let word = length;
  for (let i = 0; i < length; i++) word = (word << 8) | view.getUint8(start + i);
  return mix(mix(0, word), length);
}
