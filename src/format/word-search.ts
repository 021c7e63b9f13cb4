/**
 * Four bytes of a JSON string at a time: the top bit of each byte of the result tells a quote, a backslash or a control
 * character. A byte is found by the borrow it causes when the byte looked for is subtracted (Mycroft; Warren, "Hacker's
 * Delight", 6-1): false hits are possible only above a true one, so the lowest is what counts (`firstHit`).
 */
export function specialBytes(word: number): number {
  const quote = word ^ 0x22222222;
  const slash = word ^ 0x5c5c5c5c;
  return (
    (((word - 0x20202020) & ~word) | ((quote - 0x01010101) & ~quote) | ((slash - 0x01010101) & ~slash)) & 0x80808080
  );
}

/** Which byte of the (little-endian) word the lowest hit is in; there must be one. */
export function firstHit(hits: number): number {
  return (31 - Math.clz32(hits & -hits)) >> 3;
}
