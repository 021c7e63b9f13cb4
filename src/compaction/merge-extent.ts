import type { ColumnSpec, ColumnType } from "../format/types.ts";
import type { DataChunk, DuckDb } from "../io/duckdb/duckdb.ts";
import type { TlmBatch, TlmColumn } from "../io/duckdb/tlm-file.ts";
import { INLINE_BYTES } from "../io/duckdb/text-vector.ts";
import { ownedCopy, writeStructs } from "../io/duckdb/vector-copy.ts";

/**
 * An extent of which rows are picked one by one, in the form in which DuckDB's vectors take them: of every column as
 * many 32-bit words a row as its values have. Those of a text are its struct, which points to one copy of the column's
 * bytes in memory of DuckDB's; so no text is copied when its row is picked, but by DuckDB when it writes it.
 */
export type PickedColumn = {
  words: Uint32Array;
  /** One byte a row, 1 where there is a value; undefined without NULLs. */
  valid: Uint8Array | undefined;
};

export type OpenExtent = {
  /** Undefined for a column that the extent does not have. */
  columns: readonly (PickedColumn | undefined)[];
};

/** Memory for one open extent, which others use after it. */
export class ExtentMemory {
  readonly #duckdb: DuckDb;
  /** A chunk of one VARCHAR, whose vector takes the texts. */
  readonly #texts: DataChunk;
  readonly #words: Uint32Array[] = [];

  constructor(duckdb: DuckDb) {
    this.#duckdb = duckdb;
    this.#texts = duckdb.create_data_chunk([duckdb.create_logical_type(duckdb.Type.VARCHAR)]);
  }

  /** Forgets the extent before: nothing may point to it any more. */
  reset(): void {
    this.#duckdb.data_chunk_reset(this.#texts);
  }

  /** Copies texts to where they stay until `reset`; their address. */
  placeTexts(bytes: Uint8Array): number {
    return ownedCopy(this.#duckdb, this.#duckdb.data_chunk_get_vector(this.#texts, 0), bytes);
  }

  /** So many words for a column, which hold anything. */
  wordsFor(column: number, count: number): Uint32Array {
    const known = this.#words[column];
    if (known !== undefined && known.length >= count) return known.subarray(0, count);
    const words = new Uint32Array(count);
    this.#words[column] = words;
    return words;
  }
}

/** Words of one value; a bool has a whole one. */
export function wordsOf(type: ColumnType): number {
  switch (type.kind) {
    case "bool":
    case "int":
      return 1;
    case "long":
    case "real":
    case "timestamp":
      return 2;
    case "string":
    case "dynamic":
      return 4;
    case "vector":
      return type.dimensions;
  }
}

/** Takes over batches, whose memory may be used again afterwards. */
export function openExtent(
  memory: ExtentMemory,
  batches: readonly TlmBatch[],
  columns: readonly ColumnSpec[],
): OpenExtent {
  const rows = batches.reduce((sum, batch) => sum + batch.rows, 0);
  const picked = columns.map(({ type }, i) => {
    const parts = batches.map((batch): Part => ({ rows: batch.rows, column: batch.columns[i] }));
    if (parts.every(({ column }) => column === undefined)) return undefined;
    return takeColumn(memory, memory.wordsFor(i, rows * wordsOf(type)), type, parts);
  });
  return { columns: picked };
}

type Part = { rows: number; column: TlmColumn | undefined };

function takeColumn(memory: ExtentMemory, words: Uint32Array, type: ColumnType, parts: readonly Part[]): PickedColumn {
  const perRow = wordsOf(type);
  const hasNulls = parts.some(({ column }) => column === undefined || column.nullCount > 0);
  const valid = hasNulls ? new Uint8Array(words.length / perRow) : undefined;
  let row = 0;
  for (const { rows, column } of parts) {
    const own = words.subarray(row * perRow, (row + rows) * perRow);
    if (column === undefined) {
      own.fill(0);
    } else {
      if (valid !== undefined) takeValidity(column, valid.subarray(row, row + rows));
      takeValues(memory, type, column, own, rows);
    }
    row += rows;
  }
  return { words, valid };
}

function takeValidity({ nullCount, validity }: TlmColumn, valid: Uint8Array): void {
  if (nullCount === 0) {
    valid.fill(1);
    return;
  }
  for (let row = 0; row < valid.length; row++) valid[row] = ((validity[row >> 3] as number) >> (row & 7)) & 1;
}

function takeValues(
  memory: ExtentMemory,
  type: ColumnType,
  { values, offsets }: TlmColumn,
  words: Uint32Array,
  rows: number,
): void {
  if (type.kind === "bool") {
    for (let row = 0; row < rows; row++) words[row] = ((values[row >> 3] as number) >> (row & 7)) & 1;
    return;
  }
  if (offsets === undefined) {
    words.set(new Uint32Array(values.buffer, values.byteOffset, words.length));
    return;
  }
  const bytes = values.subarray(offsets[0], offsets[rows]);
  // Texts that are short enough have no address.
  const base = bytes.byteLength > INLINE_BYTES ? memory.placeTexts(bytes) : 0;
  writeStructs(words, 0, { offsets, bytes: values, base }, 0, rows);
}
