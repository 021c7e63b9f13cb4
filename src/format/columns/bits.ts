/** Bit-packed booleans, least significant bit first, as Arrow has them. */

export function isBitSet(bits: Uint8Array, index: number): boolean {
  return (((bits[index >>> 3] ?? 0) >>> (index & 7)) & 1) === 1;
}

/** Clears the bits of `[from, to)`. */
export function zeroBits(bits: Uint8Array, from: number, to: number): void {
  if (to <= from) return;
  const first = from >>> 3;
  const kept = (bits[first] ?? 0) & ((1 << (from & 7)) - 1);
  bits.fill(0, first, (to + 7) >>> 3);
  // Bits from `to` on are clear already: nothing is ever written past the end.
  bits[first] = kept;
}

/** Sets the bits of `[from, to)`. */
export function setBits(bits: Uint8Array, from: number, to: number): void {
  const first = from >>> 3;
  const last = to >>> 3;
  const head = (0xff << (from & 7)) & 0xff;
  const tail = (1 << (to & 7)) - 1;
  if (first === last) {
    bits[first] = (bits[first] as number) | (head & tail);
    return;
  }
  bits[first] = (bits[first] as number) | head;
  bits.fill(0xff, first + 1, last);
  if (tail !== 0) bits[last] = (bits[last] as number) | tail;
}

const BITS_OF_BYTE = Uint8Array.from({ length: 256 }, (_, byte) => countBits(byte));

function countBits(byte: number): number {
  let count = 0;
  for (let rest = byte; rest !== 0; rest &= rest - 1) count++;
  return count;
}

/** Replaces each of the ascending ranks by the index of the set bit that has so many set bits before it. */
export function selectBits(bits: Uint8Array, ranks: Int32Array): void {
  let at = 0;
  let before = 0;
  for (let i = 0; i < ranks.length; i++) {
    const rank = ranks[i] ?? 0;
    for (let count = 0; at < bits.length; at++, before += count) {
      count = BITS_OF_BYTE[bits[at] ?? 0] ?? 0;
      if (before + count > rank) break;
    }
    let byte = bits[at] ?? 0;
    for (let skipped = before; skipped < rank; skipped++) byte &= byte - 1;
    ranks[i] = at * 8 + 31 - Math.clz32(byte & -byte);
  }
}
