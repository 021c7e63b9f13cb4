import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import {
  compressionRegistry,
  CompressionType,
  DataType,
  Dictionary,
  Field,
  Int16,
  Int32,
  Int8,
  makeData,
  RecordBatch,
  RecordBatchFileWriter,
  RecordBatchReader,
  Schema,
  Struct,
  Utf8,
  Vector,
  type Data,
} from "apache-arrow";
import { hashBytes } from "../../src/format/columns/hash.ts";

/**
 * What `tlm` could be instead of plain: text columns by dictionary, buffers under zstd. One record batch, made from the
 * one of a plain extent, so that what differs in time is the encoding alone.
 */

const LEVEL_1 = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

export function zstd(bytes: Uint8Array): Uint8Array {
  return zstdCompressSync(bytes, LEVEL_1);
}

compressionRegistry.set(CompressionType.ZSTD, { encode: zstd, decode: (bytes) => zstdDecompressSync(bytes) });

/** The record batch of an extent that has only one. Plain buffers are views of `bytes`, compressed ones unpacked. */
export function openBatch(bytes: Uint8Array): RecordBatch {
  const [batch, another] = [...(RecordBatchReader.from(bytes) as Iterable<RecordBatch>)];
  if (batch === undefined || another !== undefined) throw new Error("an extent of one record batch is wanted");
  return batch;
}

/** The batch as an Arrow file. */
export function encodeBatch(batch: RecordBatch, compressed: boolean): Uint8Array {
  const writer = new RecordBatchFileWriter(compressed ? { compressionType: CompressionType.ZSTD } : undefined);
  writer.write(batch);
  writer.finish();
  return writer.toUint8Array(true);
}

/** The batch with these columns only. */
export function project(batch: RecordBatch, names: readonly string[]): RecordBatch {
  return withColumns(batch, (field, data) => (names.includes(field.name) ? [field, data] : undefined));
}

/** The batch with those of the named columns under a dictionary that have few enough values for one. */
export function toDictionaries(batch: RecordBatch, names: ReadonlySet<string>): RecordBatch {
  return withColumns(batch, (field, data) => {
    const encoded = names.has(field.name) ? dictionaryOf(data) : undefined;
    return encoded === undefined ? [field, data] : [new Field(field.name, encoded.type, true, field.metadata), encoded];
  });
}

/** The batch with every dictionary resolved, which is what the scan takes. */
export function fromDictionaries(batch: RecordBatch): RecordBatch {
  return withColumns(batch, (field, data) => {
    if (!DataType.isDictionary(field.type)) return [field, data];
    const plain = resolve(data);
    return [new Field(field.name, plain.type, true, field.metadata), plain];
  });
}

type Column = [Field, Data];

function withColumns(batch: RecordBatch, map: (field: Field, data: Data) => Column | undefined): RecordBatch {
  const columns = batch.schema.fields.flatMap((field, i) => {
    const data = batch.data.children[i];
    const column = data && map(field, data);
    return column === undefined ? [] : [column];
  });
  const fields = columns.map(([field]) => field);
  const children = columns.map(([, data]) => data);
  const type = new Struct(fields);
  const data = makeData({ type, length: batch.numRows, nullCount: 0, children });
  return new RecordBatch(new Schema(fields, batch.schema.metadata), data);
}

/** More are not worth a dictionary, and their table would not stay in the cache. */
const MAX_ENTRIES = 4_096;
const SLOT_BITS = 14;
const slots = new Int32Array(1 << SLOT_BITS);

/** By a hash table over the bytes; undefined when there are too many different values. Text of NULL rows is empty. */
function dictionaryOf(data: Data): Data | undefined {
  const offsets = data.valueOffsets as Int32Array;
  const bytes = data.values as Uint8Array;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const places = new Int32Array(data.length);
  const firstRows = new Int32Array(MAX_ENTRIES);
  const hashes = new Int32Array(MAX_ENTRIES);
  let entries = 0;
  slots.fill(0);
  for (let row = 0; row < data.length; row++) {
    const start = offsets[row] ?? 0;
    const length = (offsets[row + 1] ?? 0) - start;
    const hash = hashBytes(view, start, length);
    let slot = hash >>> (32 - SLOT_BITS);
    for (;;) {
      const place = (slots[slot] ?? 0) - 1;
      if (place < 0) {
        if (entries === MAX_ENTRIES) return undefined;
        firstRows[entries] = row;
        hashes[entries] = hash;
        places[row] = entries++;
        slots[slot] = entries;
        break;
      }
      const first = firstRows[place] ?? 0;
      const from = offsets[first] ?? 0;
      const isLong = (offsets[first + 1] ?? 0) - from === length && hashes[place] === hash;
      if (isLong && areEqual(bytes, from, start, length)) {
        places[row] = place;
        break;
      }
      slot = (slot + 1) & (slots.length - 1);
    }
  }
  return dictionaryData(data, places, firstRows.subarray(0, entries));
}

function areEqual(bytes: Uint8Array, a: number, b: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (bytes[a + i] !== bytes[b + i]) return false;
  return true;
}

let nextDictionaryId = 0;

function dictionaryData(data: Data, places: Int32Array, firstRows: Int32Array): Data {
  const entries = gather(data.valueOffsets as Int32Array, data.values as Uint8Array, firstRows);
  const dictionary = new Vector([makeData({ type: new Utf8(), length: firstRows.length, nullCount: 0, ...entries })]);
  const { length, nullCount, nullBitmap } = data;
  const common = { length, nullCount, nullBitmap, dictionary };
  const id = nextDictionaryId++;
  if (firstRows.length <= 0x80) {
    return makeData({ type: new Dictionary(new Utf8(), new Int8(), id), ...common, data: Int8Array.from(places) });
  }
  if (firstRows.length <= 0x8000) {
    return makeData({ type: new Dictionary(new Utf8(), new Int16(), id), ...common, data: Int16Array.from(places) });
  }
  return makeData({ type: new Dictionary(new Utf8(), new Int32(), id), ...common, data: places });
}

function resolve(data: Data): Data {
  const entries = data.dictionary?.data[0];
  if (entries === undefined) throw new Error("a dictionary column without its dictionary");
  const plain = gather(entries.valueOffsets as Int32Array, entries.values as Uint8Array, data.values as Int32Array);
  const { length, nullCount, nullBitmap } = data;
  return makeData({ type: new Utf8(), length, nullCount, nullBitmap, ...plain });
}

/** The text of the picked places, one behind the other. */
function gather(offsets: Int32Array, bytes: Uint8Array, picked: ArrayLike<number>) {
  const valueOffsets = new Int32Array(picked.length + 1);
  for (let i = 0; i < picked.length; i++) {
    const place = picked[i] ?? 0;
    valueOffsets[i + 1] = (valueOffsets[i] ?? 0) + (offsets[place + 1] ?? 0) - (offsets[place] ?? 0);
  }
  const data = new Uint8Array(valueOffsets[picked.length] ?? 0);
  for (let i = 0, to = 0; i < picked.length; i++) {
    const place = picked[i] ?? 0;
    const end = offsets[place + 1] ?? 0;
    for (let from = offsets[place] ?? 0; from < end; from++, to++) data[to] = bytes[from] ?? 0;
  }
  return { valueOffsets, data };
}
