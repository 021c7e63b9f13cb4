/**
 * Reads the compact protocol of Apache Thrift, as far as Parquet's metadata needs it.
 *
 * The bytes may come from anywhere: every read checks its bounds, a container never claims more elements than there
 * are bytes left, and nesting is limited, so that damaged input ends in `ThriftError` after time and memory in
 * proportion to its size. (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md)
 */
export class ThriftError extends Error {
  constructor(problem: string) {
    super(`not a Thrift structure: ${problem}`);
    this.name = "ThriftError";
  }
}

/** The types of the protocol that callers ask for. */
export const THRIFT = { integer32: 5, integer64: 6, text: 8, list: 9, struct: 12 } as const;

const [TRUE, FALSE, BYTE, INTEGER16, DOUBLE, SET, MAP, UUID] = [1, 2, 3, 4, 7, 10, 11, 13];
const MAX_DEPTH = 32;
/** Varints of 64 bits. */
const MAX_VARINT_BYTES = 10;
/** A size from here on follows as a varint. */
const LONG_LIST = 15;

export class ThriftReader {
  readonly #bytes: Uint8Array;
  #place = 0;
  #depth = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Calls `onField` for every field of the struct that starts here; one that it returns false for is skipped. */
  struct(onField: (id: number, type: number) => boolean): void {
    if (++this.#depth > MAX_DEPTH) throw new ThriftError(`nested deeper than ${MAX_DEPTH}`);
    let id = 0;
    for (let header = this.#byte(); header !== 0; header = this.#byte()) {
      const delta = header >> 4;
      id = delta === 0 ? this.integer() : id + delta;
      const type = header & 0x0f;
      if (!onField(id, type)) this.#skip(type);
    }
    this.#depth--;
  }

  /** Calls `onElement` for every element of the list that starts here; it must read the element. */
  list(elementType: number, onElement: () => void): void {
    const { type, size } = this.#listHeader();
    if (type !== elementType) throw new ThriftError(`a list of type ${type} instead of ${elementType}`);
    for (let i = 0; i < size; i++) onElement();
  }

  /** An integer of 16, 32 or 64 bits. Throws where JavaScript's numbers are not exact. */
  integer(): number {
    const zigzag = this.#varint();
    if (zigzag > Number.MAX_SAFE_INTEGER) throw new ThriftError("an integer is out of range");
    return zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2;
  }

  text(): string {
    const sizeBytes = this.#varint();
    const start = this.#place;
    this.#take(sizeBytes);
    return Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset + start, sizeBytes).toString("utf8");
  }

  #skip(type: number): void {
    if (type === TRUE || type === FALSE) return;
    if (type === BYTE) this.#take(1);
    else if (type === INTEGER16 || type === THRIFT.integer32 || type === THRIFT.integer64) this.#varint();
    else if (type === DOUBLE) this.#take(8);
    else if (type === THRIFT.text) this.#take(this.#varint());
    else if (type === THRIFT.list || type === SET) this.#skipList();
    else if (type === MAP) this.#skipMap();
    else if (type === THRIFT.struct) this.struct(() => false);
    else if (type === UUID) this.#take(16);
    else throw new ThriftError(`there is no type ${type}`);
  }

  #skipList(): void {
    const { type, size } = this.#listHeader();
    this.#nested(() => {
      for (let i = 0; i < size; i++) this.#skipElement(type);
    });
  }

  #skipMap(): void {
    const size = this.#containerSize(this.#varint());
    if (size === 0) return;
    const types = this.#byte();
    this.#nested(() => {
      for (let i = 0; i < size; i++) {
        this.#skipElement(types >> 4);
        this.#skipElement(types & 0x0f);
      }
    });
  }

  /** Outside of structs a boolean takes a byte of its own. */
  #skipElement(type: number): void {
    if (type === TRUE || type === FALSE) this.#take(1);
    else this.#skip(type);
  }

  #nested(read: () => void): void {
    if (++this.#depth > MAX_DEPTH) throw new ThriftError(`nested deeper than ${MAX_DEPTH}`);
    read();
    this.#depth--;
  }

  #listHeader(): { type: number; size: number } {
    const header = this.#byte();
    const size = header >> 4;
    return { type: header & 0x0f, size: this.#containerSize(size === LONG_LIST ? this.#varint() : size) };
  }

  /** Every element takes a byte at least. */
  #containerSize(size: number): number {
    if (size > this.#bytes.length - this.#place) throw new ThriftError("a container is larger than what is left");
    return size;
  }

  #byte(): number {
    const byte = this.#bytes[this.#place++];
    if (byte === undefined) throw new ThriftError("it ends in the middle");
    return byte;
  }

  #take(sizeBytes: number): void {
    if (sizeBytes > this.#bytes.length - this.#place) throw new ThriftError("it ends in the middle");
    this.#place += sizeBytes;
  }

  /** Unsigned; not exact past 2^53. */
  #varint(): number {
    let value = 0;
    let weight = 1;
    for (let i = 0; i < MAX_VARINT_BYTES; i++) {
      const byte = this.#byte();
      value += (byte & 0x7f) * weight;
      if (byte < 0x80) return value;
      weight *= 0x80;
    }
    throw new ThriftError("an integer has too many bytes");
  }
}
