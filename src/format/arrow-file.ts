/**
 * Where things lie in an Arrow IPC file, read from its flat buffers without building objects for them: the record
 * batches from the footer, the buffers of a batch from its header. That is what a reader needs that wants some columns
 * of a file and not the others. Layouts: https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format and the
 * schemas File.fbs, Message.fbs; flat buffers: https://flatbuffers.dev/internals.
 *
 * The bytes may be anything: whatever does not hold together throws `NotAnArrowFile`.
 */
export class NotAnArrowFile extends Error {
  constructor(reason: string) {
    super(`not an Arrow file: ${reason}`);
  }
}

/** A record batch: its header, and behind it the body with the buffers. */
export type BatchPlace = { offset: number; headerBytes: number; bodyBytes: number };

/** Offsets count from the start of the body. */
export type BatchHeader = { rows: number; nullCounts: readonly number[]; buffers: readonly BufferPlace[] };
export type BufferPlace = { offset: number; sizeBytes: number };

const MAGIC = "ARROW1";
/** The footer's length and the magic behind it. */
export const TRAILER_BYTES = 4 + MAGIC.length;
const CONTINUATION = 0xffff_ffff;
const RECORD_BATCH = 3;

/** Length of the footer that ends before the trailer, which is what `bytes` ends with. */
export function footerLength(bytes: Uint8Array): number {
  const at = bytes.byteLength - TRAILER_BYTES;
  if (at < 0 || latin1(bytes, at + 4, MAGIC.length) !== MAGIC) throw new NotAnArrowFile("it does not end like one");
  return viewOf(bytes).getUint32(at, true);
}

/** The record batches of a file by its footer. */
export function batchPlaces(footer: Uint8Array): BatchPlace[] {
  const reader = new FlatReader(footer);
  const blocks = reader.structs(reader.root(0), 3, BLOCK_BYTES);
  return Array.from({ length: blocks.count }, (_, i) => {
    const at = blocks.at + i * BLOCK_BYTES;
    return { offset: reader.int64(at), headerBytes: reader.int32(at + 8), bodyBytes: reader.int64(at + 16) };
  });
}

const BLOCK_BYTES = 24;

/** What is left of a footer without the places of its batches: alike for files of one schema and number of batches. */
export function schemaPart(footer: Uint8Array): Buffer {
  const reader = new FlatReader(footer);
  const blocks = reader.structs(reader.root(0), 3, BLOCK_BYTES);
  return Buffer.from(footer).fill(0, blocks.at, blocks.at + blocks.count * BLOCK_BYTES);
}

/** A column of the file: its type as Arrow has it, one word, and what its metadata says. */
export type ArrowField = { name: string; arrowType: string; metadata: ReadonlyMap<string, string> };

/** The columns of a file by its footer. */
export function fieldsOf(footer: Uint8Array): ArrowField[] {
  const reader = new FlatReader(footer);
  const schema = reader.tableField(reader.root(0), 1);
  return reader.tables(schema, 1).map((field) => ({
    name: reader.text(field, 0),
    arrowType: typeName(reader, field),
    metadata: new Map(reader.tables(field, 6).map((pair) => [reader.text(pair, 0), reader.text(pair, 1)])),
  }));
}

/** The types that extents have, named; any other by its number in Schema.fbs. */
function typeName(reader: FlatReader, field: number): string {
  const id = reader.uint8Field(field, 2);
  const type = reader.tableField(field, 3);
  switch (id) {
    case 2:
      return `${reader.uint8Field(type, 1) === 1 ? "int" : "uint"}${reader.int32Field(type, 0)}`;
    case 3:
      return ["half", "float", "double"][reader.uint8Field(type, 0)] ?? "type 3";
    case 5:
      return "utf8";
    case 6:
      return "bool";
    case 10:
      return `timestamp ${["s", "ms", "us", "ns"][reader.uint8Field(type, 0)] ?? "?"}`;
    case 16: {
      const [item] = reader.tables(field, 5);
      return `${item === undefined ? "?" : typeName(reader, item)}[${reader.int32Field(type, 0)}]`;
    }
    default:
      return `type ${id}`;
  }
}

/** The header of a record batch, from its message. */
export function batchHeader(message: Uint8Array): BatchHeader {
  // Files have the length in front, since 2019 behind a mark.
  const prefixBytes = message.byteLength >= 8 && viewOf(message).getUint32(0, true) === CONTINUATION ? 8 : 4;
  const reader = new FlatReader(message.subarray(prefixBytes));
  const root = reader.root(0);
  if (reader.uint8Field(root, 1) !== RECORD_BATCH) throw new NotAnArrowFile("a record batch is something else");
  const batch = reader.tableField(root, 2);
  if (reader.field(batch, 3) !== 0) throw new NotAnArrowFile("its buffers are compressed");
  const nodes = reader.structs(batch, 1, 16);
  const buffers = reader.structs(batch, 2, 16);
  return {
    rows: reader.int64Field(batch, 0),
    nullCounts: Array.from({ length: nodes.count }, (_, i) => reader.int64(nodes.at + i * 16 + 8)),
    buffers: Array.from({ length: buffers.count }, (_, i) => {
      const at = buffers.at + i * 16;
      return { offset: reader.int64(at), sizeBytes: reader.int64(at + 8) };
    }),
  };
}

/** Bytes of the body behind a message of a file or stream, by its flat buffer. */
export function messageBodyBytes(message: Uint8Array): number {
  const reader = new FlatReader(message);
  return reader.int64Field(reader.root(0), 3);
}

/** Tables are known by their position; fields by their number in the schema. */
class FlatReader {
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.#view = viewOf(bytes);
  }

  root(at: number): number {
    return at + this.uint32(at);
  }

  /** Position of a table's field; 0 when it is left out. */
  field(table: number, number: number): number {
    const vtable = table - this.int32(table);
    const slot = 4 + 2 * number;
    const offset = slot < this.#uint16(vtable) ? this.#uint16(vtable + slot) : 0;
    return offset === 0 ? 0 : table + offset;
  }

  tableField(table: number, number: number): number {
    const at = this.field(table, number);
    if (at === 0) throw new NotAnArrowFile("a part of it is missing");
    return this.root(at);
  }

  uint8Field(table: number, number: number): number {
    const at = this.field(table, number);
    return at === 0 ? 0 : this.#view.getUint8(this.#within(at, 1));
  }

  int32Field(table: number, number: number): number {
    const at = this.field(table, number);
    return at === 0 ? 0 : this.int32(at);
  }

  /** The tables of a vector; none when it is left out. */
  tables(table: number, number: number): number[] {
    const { at, count } = this.structs(table, number, 4);
    return Array.from({ length: count }, (_, i) => this.root(at + i * 4));
  }

  text(table: number, number: number): string {
    const { at, count } = this.structs(table, number, 1);
    return Buffer.from(this.#view.buffer, this.#view.byteOffset + at, count).toString("utf8");
  }

  int64Field(table: number, number: number): number {
    const at = this.field(table, number);
    return at === 0 ? 0 : this.int64(at);
  }

  /** A vector of structs of that size; checked to be there in full. */
  structs(table: number, number: number, sizeBytes: number): { at: number; count: number } {
    const field = this.field(table, number);
    if (field === 0) return { at: 0, count: 0 };
    const vector = this.root(field);
    const count = this.uint32(vector);
    this.#within(vector + 4, count * sizeBytes);
    return { at: vector + 4, count };
  }

  uint32(at: number): number {
    return this.#view.getUint32(this.#within(at, 4), true);
  }

  int32(at: number): number {
    return this.#view.getInt32(this.#within(at, 4), true);
  }

  /** Sizes and counts: anything negative or past 2^53 is no such thing. */
  int64(at: number): number {
    this.#within(at, 8);
    const value = this.#view.getInt32(at + 4, true) * 0x1_0000_0000 + this.#view.getUint32(at, true);
    if (!Number.isSafeInteger(value) || value < 0) throw new NotAnArrowFile("a size in it is impossible");
    return value;
  }

  #uint16(at: number): number {
    return this.#view.getUint16(this.#within(at, 2), true);
  }

  #within(at: number, sizeBytes: number): number {
    if (at < 0 || at + sizeBytes > this.#view.byteLength) throw new NotAnArrowFile("a part of it lies outside");
    return at;
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function latin1(bytes: Uint8Array, start: number, length: number): string {
  return Buffer.from(
    bytes.buffer,
    bytes.byteOffset + start,
    Math.max(0, Math.min(length, bytes.byteLength - start)),
  ).toString("latin1");
}
