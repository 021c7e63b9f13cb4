/** Arrays that grow by doubling. */

type Growable =
  | Uint8Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Float32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>
  | BigInt64Array<ArrayBuffer>;

/** The most elements a buffer may have: Arrow counts rows and string bytes in signed 32-bit integers. */
export const MAX_ELEMENTS = 0x7fff_ffff;

/** A column has more than one buffer may hold. */
export class BufferFull extends RangeError {}

/** A larger copy of `array` with room for `needed` elements, the new ones zero. Throws `BufferFull` past 2^31 - 1. */
export function grown<T extends Growable>(array: T, needed: number): T {
  if (needed > MAX_ELEMENTS) throw new BufferFull(`a column buffer cannot hold ${needed} elements`);
  const length = Math.min(MAX_ELEMENTS, Math.max(needed, array.length * 2));
  const larger = new (array.constructor as new (length: number) => T)(length);
  (larger as Uint8Array).set(array as Uint8Array);
  return larger;
}
