import { grown } from "../../format/columns/growth.ts";

/** Bytes that grow, for building columns whose size is not known before. */
export class Growing {
  #bytes = new Uint8Array(1024);
  #length = 0;

  /** Bytes written. */
  get length(): number {
    return this.#length;
  }

  /** So many more bytes, to be written by the caller; not to be kept. */
  extend(count: number): Uint8Array<ArrayBuffer> {
    const end = this.#length + count;
    if (end > this.#bytes.length) this.#bytes = grown(this.#bytes, end);
    const part = this.#bytes.subarray(this.#length, end);
    this.#length = end;
    return part;
  }

  /** What was written, until the next `extend`; starts anew. The buffer begins with it. */
  take(): Uint8Array<ArrayBuffer> {
    const written = this.#bytes.subarray(0, this.#length);
    this.#length = 0;
    return written;
  }
}

/** Bytes of 0 and 1 as bits, the first row in the lowest bit; padded to eight bytes as Arrow likes it. */
export function packBits(flags: Uint8Array): Uint8Array {
  const bits = new Uint8Array(Math.ceil(flags.length / 64) * 8);
  for (let i = 0; i < flags.length; i++) if (flags[i] !== 0) bits[i >> 3] = (bits[i >> 3] ?? 0) | (1 << (i & 7));
  return bits;
}
