import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { foldName } from "../../core/names.ts";
import {
  batchHeader,
  batchPlaces,
  fieldsOf,
  footerLength,
  NotAnArrowFile,
  schemaPart,
  TRAILER_BYTES,
  type BatchHeader,
  type BatchPlace,
  type BufferPlace,
} from "../../format/arrow-file.ts";
import { formatColumnType, parseColumnType, TYPE_KEY, type ColumnSpec, type ColumnType } from "../../format/types.ts";

/**
 * Reads some columns of `tlm` extents (Arrow IPC files). Of a file only its footer, the headers of its
 * batches and the buffers of the columns asked for are read: a query for one column of ten touches a tenth of it.
 */
export type TlmSource = { path: string } | { bytes: Uint8Array };

/** The columns of one record batch in the order asked for; undefined where the extent has no such column. */
export type TlmBatch = { rows: number; columns: (TlmColumn | undefined)[] };

/** A column's Arrow buffers. */
export type TlmColumn = {
  nullCount: number;
  /** One bit a row, set where there is a value; empty without nulls. */
  validity: Uint8Array;
  /** Little-endian values; of text its UTF-8, of a vector its items one behind the other. */
  values: Uint8Array;
  /** Of text: where each row begins, and one more. */
  offsets?: Int32Array;
};

/** Readable bytes behind the values of a column, whatever they hold. */
export const TEXT_SLACK_BYTES = 16;

/** Opens one source after the other, and reads each into the memory of the one before. Of bytes in memory little is copied. */
export class TlmReader {
  readonly #wanted: readonly ColumnSpec[];
  #memory = Buffer.alloc(0);

  /** `wanted`: columns in any order; names match without regard to case. */
  constructor(wanted: readonly ColumnSpec[]) {
    this.#wanted = wanted;
  }

  /**
   * The batches that have rows. They are views of the source's bytes, or of memory that the next call uses again. A `long`
   * column that is asked for as `real` was widened since (`catalog/widening.ts`), and comes as doubles. Throws when the
   * source is no Arrow file, lacks a part, or has a column of another type than asked for, naming what is wrong.
   */
  read(source: TlmSource): TlmBatch[] {
    const file = openBytes(source);
    try {
      const { fields, batches } = readLayout(file);
      const picked = this.#wanted.map((column) => fieldFor(column, fields));
      const headers = batches.map((place) => ({
        place,
        header: batchHeader(file.read(place.offset, place.headerBytes)),
      }));
      return this.#load(
        file,
        headers.filter(({ header }) => header.rows > 0),
        picked,
      );
    } finally {
      file.close();
    }
  }

  #load(
    file: ByteFile,
    batches: readonly { place: BatchPlace; header: BatchHeader }[],
    picked: readonly (FieldPlace | undefined)[],
  ): TlmBatch[] {
    const sizeBytes = batches.reduce((sum, { header }) => sum + neededBytes(header, picked), 0);
    // Sizes are only claims so far; memory is taken for what the file can hold.
    if (sizeBytes > 2 * file.sizeBytes) throw new NotAnArrowFile("it claims more than it has");
    let used = 0;
    const take = (place: BatchPlace, buffer: BufferPlace): Uint8Array => {
      if (buffer.offset + buffer.sizeBytes > place.bodyBytes) throw new NotAnArrowFile("a buffer lies outside");
      const own = file.view?.(place.offset + place.headerBytes + buffer.offset, buffer.sizeBytes);
      if (own !== undefined) return own;
      const memory = this.#room(sizeBytes + TEXT_SLACK_BYTES);
      const target = memory.subarray(used, used + buffer.sizeBytes);
      file.readInto(target, place.offset + place.headerBytes + buffer.offset);
      used += padded(buffer.sizeBytes);
      return target;
    };
    return batches.map(({ place, header }) => ({
      rows: header.rows,
      columns: picked.map((field, i) => {
        if (field === undefined) return undefined;
        const column = readColumn(field, header, (buffer) => take(place, buffer));
        return isWidened(field.spec, this.#wanted[i]) ? { ...column, values: asDoubles(column.values) } : column;
      }),
    }));
  }

  #room(sizeBytes: number): Buffer {
    if (sizeBytes > this.#memory.byteLength) this.#memory = Buffer.allocUnsafeSlow(sizeBytes);
    return this.#memory;
  }
}

/** The columns of an extent, as its fields' metadata says. Throws when the bytes are no extent. */
export function columnsOfTlm(source: TlmSource): ColumnSpec[] {
  const file = openBytes(source);
  try {
    return readLayout(file).fields.map(({ spec }) => spec);
  } finally {
    file.close();
  }
}

/** A field, and which of a batch's buffers and nodes are its own. */
type FieldPlace = { spec: ColumnSpec; firstBuffer: number; node: number };

function neededBytes(header: BatchHeader, picked: readonly (FieldPlace | undefined)[]): number {
  let sum = 0;
  for (const field of picked) {
    if (field === undefined) continue;
    const end = field.firstBuffer + buffersOf(field.spec);
    for (let i = field.firstBuffer; i < end; i++) sum += padded(header.buffers[i]?.sizeBytes ?? 0);
  }
  return sum;
}

function readColumn(field: FieldPlace, header: BatchHeader, take: (buffer: BufferPlace) => Uint8Array): TlmColumn {
  const { spec, firstBuffer, node } = field;
  const nullCount = header.nullCounts[node];
  const buffers = header.buffers.slice(firstBuffer, firstBuffer + buffersOf(spec));
  const [first, second, third, fourth] = buffers;
  if (nullCount === undefined || first === undefined || second === undefined) throw missing(spec);
  const validity = nullCount === 0 ? NOTHING : take(first);
  if (validity.byteLength * 8 < (nullCount === 0 ? 0 : header.rows)) throw missing(spec);
  switch (spec.type.kind) {
    case "string":
    case "dynamic": {
      if (third === undefined) throw missing(spec);
      const bytes = take(second);
      const offsets = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 2);
      const values = take(third);
      checkOffsets(spec, offsets, header.rows, values.byteLength);
      return { nullCount, validity, offsets, values };
    }
    case "vector":
      if (fourth !== undefined || third === undefined) throw missing(spec);
      return { nullCount, validity, values: enough(spec, take(third), header.rows * spec.type.dimensions * 4) };
    case "bool":
      return { nullCount, validity, values: enough(spec, take(second), Math.ceil(header.rows / 8)) };
    case "int":
      return { nullCount, validity, values: enough(spec, take(second), header.rows * 4) };
    case "long":
    case "real":
    case "timestamp":
      return { nullCount, validity, values: enough(spec, take(second), header.rows * 8) };
  }
}

function isWidened(has: ColumnSpec, wants: ColumnSpec | undefined): boolean {
  return has.type.kind === "long" && wants?.type.kind === "real";
}

const TWO_32 = 2 ** 32;

/** 64-bit integers within ±2^53, which aligned bytes hold, as doubles. What stands at a NULL may become anything. */
function asDoubles(values: Uint8Array): Uint8Array {
  const words = new Int32Array(values.buffer, values.byteOffset, values.byteLength >> 2);
  const doubles = new Float64Array(words.length >> 1);
  for (let i = 0; i < doubles.length; i++) {
    doubles[i] = (words[i * 2 + 1] as number) * TWO_32 + ((words[i * 2] as number) >>> 0);
  }
  return new Uint8Array(doubles.buffer);
}

const NOTHING = new Uint8Array(0);

/** Every offset is used as a length and an address: one that points elsewhere would read foreign memory. */
function checkOffsets(spec: ColumnSpec, offsets: Int32Array, rows: number, sizeBytes: number): void {
  if (offsets.length < rows + 1) throw missing(spec);
  let before = 0;
  for (let row = 0; row <= rows; row++) {
    const offset = offsets[row] as number;
    if (offset < before) throw missing(spec);
    before = offset;
  }
  if (before > sizeBytes) throw missing(spec);
}

function enough(spec: ColumnSpec, bytes: Uint8Array, neededSize: number): Uint8Array {
  if (bytes.byteLength < neededSize) throw missing(spec);
  return bytes;
}

function missing(spec: ColumnSpec): Error {
  return new NotAnArrowFile(`column ${JSON.stringify(spec.name)} is not there in full`);
}

/** Validity and values; text has offsets, a vector the validity of its items. */
function buffersOf({ type }: ColumnSpec): number {
  return type.kind === "string" || type.kind === "dynamic" || type.kind === "vector" ? 3 : 2;
}

function padded(sizeBytes: number): number {
  return Math.ceil(sizeBytes / 8) * 8;
}

function fieldFor(column: ColumnSpec, fields: readonly FieldPlace[]): FieldPlace | undefined {
  const field = fields.find(({ spec }) => foldName(spec.name) === foldName(column.name));
  if (field === undefined || isWidened(field.spec, column)) return field;
  if (formatColumnType(field.spec.type) !== formatColumnType(column.type)) {
    const [has, wants] = [formatColumnType(field.spec.type), formatColumnType(column.type)];
    throw new Error(`column ${JSON.stringify(column.name)} is ${has}, not ${wants}`);
  }
  return field;
}

/** Most footers are smaller. */
const FIRST_READ_BYTES = 8 * 1024;

function readLayout(file: ByteFile): { fields: readonly FieldPlace[]; batches: BatchPlace[] } {
  const tailBytes = Math.min(FIRST_READ_BYTES, file.sizeBytes);
  const tail = file.read(file.sizeBytes - tailBytes, tailBytes);
  const length = footerLength(tail);
  const end = tailBytes - TRAILER_BYTES;
  const footer =
    length <= end ? tail.subarray(end - length, end) : file.read(file.sizeBytes - TRAILER_BYTES - length, length);
  return { fields: placesOf(footer), batches: batchPlaces(footer) };
}

/** Extents of a table mostly have one schema: decoding it takes longer than reading a small extent. */
const KNOWN_SCHEMAS = 32;
const known: { schema: Buffer; fields: readonly FieldPlace[] }[] = [];

function placesOf(footer: Uint8Array): readonly FieldPlace[] {
  const schema = schemaPart(footer);
  const found = known.findIndex((entry) => entry.schema.equals(schema));
  const entry = known[found] ?? { schema, fields: decodePlaces(footer) };
  if (found > 0) known.splice(found, 1);
  if (found !== 0) known.unshift(entry);
  known.length = Math.min(known.length, KNOWN_SCHEMAS);
  return entry.fields;
}

function decodePlaces(footer: Uint8Array): FieldPlace[] {
  const places: FieldPlace[] = [];
  let firstBuffer = 0;
  let node = 0;
  for (const { name, arrowType, metadata } of fieldsOf(footer)) {
    const type = parseColumnType(metadata.get(TYPE_KEY) ?? "");
    if (type === undefined) throw new Error(`field ${JSON.stringify(name)} has no ${TYPE_KEY}`);
    if (arrowType !== storedAs(type)) {
      throw new Error(`column ${JSON.stringify(name)} is ${arrowType}, not ${formatColumnType(type)}`);
    }
    const spec = { name, type };
    places.push({ spec, firstBuffer, node });
    firstBuffer += buffersOf(spec);
    node += type.kind === "vector" ? 2 : 1;
  }
  return places;
}

/** The Arrow type of a column (the table is in `format/types.ts`), in the words of `arrow-file.ts`. */
function storedAs(type: ColumnType): string {
  switch (type.kind) {
    case "bool":
      return "bool";
    case "int":
      return "int32";
    case "long":
      return "int64";
    case "real":
      return "double";
    case "timestamp":
      return "timestamp ns";
    case "string":
    case "dynamic":
      return "utf8";
    case "vector":
      return `float[${type.dimensions}]`;
  }
}

type ByteFile = {
  sizeBytes: number;
  /** Exactly these bytes; throws when they are not there. */
  read(offset: number, sizeBytes: number): Uint8Array;
  readInto(target: Uint8Array, offset: number): void;
  /** The same without a copy; undefined where values could not be read from there. */
  view?(offset: number, sizeBytes: number): Uint8Array | undefined;
  close(): void;
};

function openBytes(source: TlmSource): ByteFile {
  return "path" in source ? openPath(source.path) : ofMemory(source.bytes);
}

function openPath(path: string): ByteFile {
  const descriptor = openSync(path, "r");
  const sizeBytes = fstatSync(descriptor).size;
  const readInto = (target: Uint8Array, offset: number): void => {
    for (let filled = 0; filled < target.byteLength;) {
      const got = readSync(descriptor, target, filled, target.byteLength - filled, offset + filled);
      if (got === 0) throw new NotAnArrowFile("a part of it lies outside");
      filled += got;
    }
  };
  return withReads(sizeBytes, readInto, () => closeSync(descriptor));
}

function ofMemory(bytes: Uint8Array): ByteFile {
  const readInto = (target: Uint8Array, offset: number): void =>
    target.set(bytes.subarray(offset, offset + target.byteLength));
  const view = (offset: number, length: number): Uint8Array | undefined => {
    const isAligned = (bytes.byteOffset + offset) % MAX_ALIGNMENT === 0;
    const hasSlack = offset >= 0 && offset + length + TEXT_SLACK_BYTES <= bytes.byteLength;
    return isAligned && hasSlack ? bytes.subarray(offset, offset + length) : undefined;
  };
  return { ...withReads(bytes.byteLength, readInto, () => {}), view };
}

/** Of the widest values. */
const MAX_ALIGNMENT = 8;

function withReads(sizeBytes: number, readInto: ByteFile["readInto"], close: () => void): ByteFile {
  const read = (offset: number, length: number): Uint8Array => {
    if (offset < 0 || offset + length > sizeBytes) throw new NotAnArrowFile("a part of it lies outside");
    const bytes = new Uint8Array(length);
    readInto(bytes, offset);
    return bytes;
  };
  return {
    sizeBytes,
    read,
    readInto(target, offset) {
      if (offset + target.byteLength > sizeBytes) throw new NotAnArrowFile("a part of it lies outside");
      readInto(target, offset);
    },
    close,
  };
}
