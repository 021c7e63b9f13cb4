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

/**
 * Copies `length` bytes, four at a time; the last four may overlap those before. False when one of them is no ASCII
 * character: what the target has there then is of no use.
 */
export function copyAscii(source: DataView, start: number, length: number, target: DataView, to: number): boolean {
  let all = 0;
  if (length < 4) {
    for (let i = 0; i < length; i++) {
      const byte = source.getUint8(start + i);
      target.setUint8(to + i, byte);
      all |= byte;
    }
    return all < 0x80;
  }
  const last = length - 4;
  for (let i = 0; i < last; i += 4) {
    const word = source.getInt32(start + i, true);
    target.setInt32(to + i, word, true);
    all |= word;
  }
  const word = source.getInt32(start + last, true);
  target.setInt32(to + last, word, true);
  return ((all | word) & 0x80808080) === 0;
}
