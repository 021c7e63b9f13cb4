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
