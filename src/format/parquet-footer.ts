import { THRIFT, ThriftError, ThriftReader } from "./thrift-compact.ts";

/**
 * Where the parts of a Parquet file lie, read from its footer: enough to fetch some columns of a file without the rest.
 *
 *     "PAR1"  column chunks …  bloom filters, page indexes …  FileMetaData (Thrift)  its length (uint32)  "PAR1"
 *
 * A column chunk is its dictionary page and its data pages, in one piece. Only what locates them is read.
 * (https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift)
 */
export type ParquetFooter = { rows: number; parts: readonly ParquetPart[] };

/** A run of bytes that readers of a column open: a column chunk, its bloom filter or one of its page indexes. */
export type ParquetPart = {
  /** The top-level column; nested ones have several chunks. */
  column: string;
  offset: number;
  sizeBytes: number;
};

/** The bytes are no footer that this reader understands. */
export class ParquetFooterError extends Error {
  constructor(problem: string, cause?: unknown) {
    super(`cannot read the Parquet footer: ${problem}`, cause === undefined ? undefined : { cause });
    this.name = "ParquetFooterError";
  }
}

export const PARQUET_MAGIC: Uint8Array = new Uint8Array([0x50, 0x41, 0x52, 0x31]);

/** The length and the magic after the metadata. */
const TRAILER_BYTES = 8;
/** No writer of ours comes near; a damaged length should not make anybody fetch gigabytes. */
const MAX_FOOTER_BYTES = 64 * 1024 * 1024;

/** Bytes from the start of the metadata to the end of the file, told from the file's last bytes (8 at least). */
export function parquetFooterSize(tail: Uint8Array, fileSizeBytes: number): number {
  const trailer = tail.subarray(tail.length - TRAILER_BYTES);
  if (trailer.length < TRAILER_BYTES) throw new ParquetFooterError("the file is too short");
  if (PARQUET_MAGIC.some((byte, i) => trailer[4 + i] !== byte)) throw new ParquetFooterError("the magic is missing");
  const view = new DataView(trailer.buffer, trailer.byteOffset, TRAILER_BYTES);
  const sizeBytes = view.getUint32(0, true) + TRAILER_BYTES;
  if (sizeBytes > MAX_FOOTER_BYTES) throw new ParquetFooterError("it is too large");
  if (sizeBytes > fileSizeBytes - PARQUET_MAGIC.length) throw new ParquetFooterError("it is larger than the file");
  return sizeBytes;
}

/** Reads a footer of exactly `parquetFooterSize` bytes. Throws `ParquetFooterError`. */
export function readParquetFooter(footer: Uint8Array, fileSizeBytes: number): ParquetFooter {
  try {
    const file = readFileMetadata(new ThriftReader(footer.subarray(0, footer.length - TRAILER_BYTES)));
    const endOfParts = fileSizeBytes - footer.length;
    for (const { column, offset, sizeBytes } of file.parts) {
      const fits = offset >= PARQUET_MAGIC.length && sizeBytes >= 0 && offset + sizeBytes <= endOfParts;
      if (!fits) throw new ParquetFooterError(`column ${JSON.stringify(column)} lies outside of the file`);
    }
    return file;
  } catch (error) {
    if (!(error instanceof ThriftError)) throw error;
    throw new ParquetFooterError(error.message, error);
  }
}

// Field ids of parquet.thrift.
const FILE = { rows: 3, rowGroups: 4, encryption: 8 };
const ROW_GROUP = { columns: 1 };
const CHUNK = {
  filePath: 1,
  metadata: 3,
  offsetIndexOffset: 4,
  offsetIndexSize: 5,
  columnIndexOffset: 6,
  columnIndexSize: 7,
  crypto: 8,
};
const COLUMN = { path: 3, size: 7, dataPage: 9, dictionaryPage: 11, bloomFilter: 14, bloomFilterSize: 15 };

function readFileMetadata(reader: ThriftReader): ParquetFooter {
  let rows: number | undefined;
  const parts: ParquetPart[] = [];
  reader.struct((id, type) => {
    if (id === FILE.encryption) throw new ParquetFooterError("the file is encrypted");
    if (id === FILE.rows) rows = integer(reader, type);
    else if (id === FILE.rowGroups && type === THRIFT.list) {
      reader.list(THRIFT.struct, () => readRowGroup(reader, parts));
    } else return false;
    return true;
  });
  if (rows === undefined || rows < 0) throw new ParquetFooterError("it tells no number of rows");
  return { rows, parts };
}

function readRowGroup(reader: ThriftReader, parts: ParquetPart[]): void {
  reader.struct((id, type) => {
    if (id !== ROW_GROUP.columns || type !== THRIFT.list) return false;
    reader.list(THRIFT.struct, () => readColumnChunk(reader, parts));
    return true;
  });
}

function readColumnChunk(reader: ThriftReader, parts: ParquetPart[]): void {
  const numbers = new Map<number, number>();
  let column: ColumnMetadata | undefined;
  reader.struct((id, type) => {
    if (id === CHUNK.filePath || id === CHUNK.crypto)
      throw new ParquetFooterError("a column is not stored plainly here");
    if (id === CHUNK.metadata && type === THRIFT.struct) column = readColumnMetadata(reader);
    else if (id >= CHUNK.offsetIndexOffset && id <= CHUNK.columnIndexSize) numbers.set(id, integer(reader, type));
    else return false;
    return true;
  });
  if (column === undefined) throw new ParquetFooterError("a column chunk has no metadata");
  const { name } = column;
  parts.push({ column: name, ...chunkOf(column) });
  const { numbers: own } = column;
  addPart(parts, name, own.get(COLUMN.bloomFilter), own.get(COLUMN.bloomFilterSize));
  addPart(parts, name, numbers.get(CHUNK.offsetIndexOffset), numbers.get(CHUNK.offsetIndexSize));
  addPart(parts, name, numbers.get(CHUNK.columnIndexOffset), numbers.get(CHUNK.columnIndexSize));
}

type ColumnMetadata = { name: string; numbers: ReadonlyMap<number, number> };

const COLUMN_NUMBERS = new Set(Object.values(COLUMN).filter((id) => id !== COLUMN.path));

function readColumnMetadata(reader: ThriftReader): ColumnMetadata {
  let name: string | undefined;
  const numbers = new Map<number, number>();
  reader.struct((id, type) => {
    if (id === COLUMN.path && type === THRIFT.list) {
      reader.list(THRIFT.text, () => {
        const segment = reader.text();
        name ??= segment;
      });
    } else if (COLUMN_NUMBERS.has(id)) numbers.set(id, integer(reader, type));
    else return false;
    return true;
  });
  if (name === undefined) throw new ParquetFooterError("a column chunk has no name");
  return { name, numbers };
}

/** Some writers leave a zero where there is no dictionary. */
function chunkOf({ name, numbers }: ColumnMetadata): { offset: number; sizeBytes: number } {
  const sizeBytes = numbers.get(COLUMN.size);
  const dataPage = numbers.get(COLUMN.dataPage);
  if (sizeBytes === undefined || dataPage === undefined) {
    throw new ParquetFooterError(`column ${JSON.stringify(name)} has no place`);
  }
  const dictionaryPage = numbers.get(COLUMN.dictionaryPage) ?? 0;
  return { offset: dictionaryPage > 0 ? Math.min(dictionaryPage, dataPage) : dataPage, sizeBytes };
}

function addPart(
  parts: ParquetPart[],
  column: string,
  offset: number | undefined,
  sizeBytes: number | undefined,
): void {
  if (offset === undefined) return;
  if (sizeBytes === undefined) throw new ParquetFooterError(`an index of ${JSON.stringify(column)} has no length`);
  parts.push({ column, offset, sizeBytes });
}

function integer(reader: ThriftReader, type: number): number {
  if (type !== THRIFT.integer32 && type !== THRIFT.integer64) throw new ParquetFooterError("a number is none");
  return reader.integer();
}
