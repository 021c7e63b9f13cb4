/** Protobuf under construction. A message is begun before its size is known, so lengths are written in five bytes. */
export class WireOut {
  #bytes: Uint8Array<ArrayBuffer>;
  #view: DataView;
  #length = 0;

  constructor(sizeBytes: number) {
    this.#bytes = new Uint8Array(Math.max(sizeBytes, MIN_BYTES));
    this.#view = new DataView(this.#bytes.buffer);
  }

  /** A view of what was written. */
  written(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Begins a field of the type `length`; returns what `end` wants. */
  begin(field: number): number {
    this.varint(field * 8 + LENGTH_TYPE);
    this.#reserve(LENGTH_BYTES);
    this.#length += LENGTH_BYTES;
    return this.#length;
  }

  /** Ends the field whose payload starts at `start`. */
  end(start: number): void {
    let rest = this.#length - start;
    for (let at = start - LENGTH_BYTES; at < start - 1; at++) {
      this.#bytes[at] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[start - 1] = rest;
  }

  /** An unsigned integer of up to 32 bits. */
  varint(value: number): void {
    this.#reserve(LENGTH_BYTES);
    let rest = value;
    while (rest > 0x7f) {
      this.#bytes[this.#length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[this.#length++] = rest;
  }

  /** An integer of 64 bits, signed or not. */
  varint64(value: bigint): void {
    let rest = BigInt.asUintN(64, value);
    this.#reserve(VARINT64_BYTES);
    while (rest > 0x7fn) {
      this.#bytes[this.#length++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.#bytes[this.#length++] = Number(rest);
  }

  fixed64(value: bigint): void {
    this.#reserve(8);
    this.#view.setBigUint64(this.#length, BigInt.asUintN(64, value), true);
    this.#length += 8;
  }

  fixed32(value: number): void {
    this.#reserve(4);
    this.#view.setUint32(this.#length, value, true);
    this.#length += 4;
  }

  double(value: number): void {
    this.#reserve(8);
    this.#view.setFloat64(this.#length, value, true);
    this.#length += 8;
  }

  bytes(source: Uint8Array, start: number, end: number): void {
    this.#reserve(end - start);
    this.#bytes.set(source.subarray(start, end), this.#length);
    this.#length += end - start;
  }

  /** Room for up to `sizeBytes` more, to be written into `target` at `from` and ended by `wrote`. */
  room(sizeBytes: number): { target: Uint8Array; from: number } {
    this.#reserve(sizeBytes);
    return { target: this.#bytes, from: this.#length };
  }

  /** What was written into the room that was asked for ends there. */
  wrote(end: number): void {
    this.#length = end;
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(this.#length + more, this.#bytes.length * 2));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }
}

const MIN_BYTES = 64;
const LENGTH_TYPE = 2;
const LENGTH_BYTES = 5;
const VARINT64_BYTES = 10;
