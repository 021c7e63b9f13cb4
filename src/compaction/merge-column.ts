import type { ColumnType } from "../format/types.ts";
import type { DuckDb, Vector } from "../io/duckdb/duckdb.ts";
import { wordsOf, type PickedColumn } from "./merge-extent.ts";

/** Rows of one vector of DuckDB's. */
export const CHUNK_ROWS = 2_048;

/** Rows of one input in a window: those of `sources[from, to)` go to the rows `targets[from, to)` of the window. */
export type Run = { input: number; from: number; to: number; sources: Uint32Array; targets: Uint16Array };

/** One column of a window, put together from the inputs. */
export class ColumnWriter {
  readonly #perRow: number;
  readonly #isVector: boolean;
  readonly #words: Uint32Array<ArrayBuffer>;
  readonly #isBool: boolean;
  readonly #valid: Uint8Array;
  #hasNulls = false;

  constructor(type: ColumnType, maxRows: number) {
    this.#perRow = wordsOf(type);
    this.#isVector = type.kind === "vector";
    this.#isBool = type.kind === "bool";
    this.#words = new Uint32Array(maxRows * this.#perRow);
    this.#valid = new Uint8Array(maxRows);
  }

  pick(runs: readonly Run[], columns: readonly (PickedColumn | undefined)[]): void {
    this.#hasNulls = columns.some((column) => column?.valid !== undefined || column === undefined);
    for (const [i, run] of runs.entries()) {
      const column = columns[i];
      if (column === undefined) clearWords(this.#words, run, this.#perRow);
      else if (this.#perRow === 4) pickFour(this.#words, column.words, run);
      else if (this.#perRow === 2) pickTwo(this.#words, column.words, run);
      else pickWords(this.#words, column.words, run, this.#perRow);
      if (this.#hasNulls) pickValid(this.#valid, column === undefined ? 0 : column.valid, run);
    }
  }

  /** Writes rows `from` to `from + rows` of the window to the first ones of the vector. */
  write(duckdb: DuckDb, vector: Vector, from: number, rows: number): void {
    if (this.#hasNulls) {
      duckdb.vector_ensure_validity_writable(vector);
      const bits = toBits(this.#valid.subarray(from, from + rows));
      duckdb.copy_data_to_vector_validity(vector, 0, bits.buffer, 0, Math.ceil(rows / 8));
    }
    if (this.#isBool) {
      chunkBytes.set(this.#words.subarray(from, from + rows));
      duckdb.copy_data_to_vector(vector, 0, chunkBytes.buffer, 0, rows);
      return;
    }
    const target = this.#isVector ? duckdb.array_vector_get_child(vector) : vector;
    const rowBytes = this.#perRow * 4;
    duckdb.copy_data_to_vector(target, 0, this.#words.buffer, from * rowBytes, rows * rowBytes);
  }
}

const chunkBytes = new Uint8Array(CHUNK_ROWS);
const chunkBits = new Uint8Array(CHUNK_ROWS / 8);

function toBits(valid: Uint8Array): Uint8Array<ArrayBuffer> {
  chunkBits.fill(0);
  for (let row = 0; row < valid.length; row++) {
    chunkBits[row >> 3] = (chunkBits[row >> 3] as number) | ((valid[row] as number) << (row & 7));
  }
  return chunkBits;
}

function pickTwo(target: Uint32Array, words: Uint32Array, { from, to, sources, targets }: Run): void {
  for (let i = from; i < to; i++) {
    const source = (sources[i] as number) * 2;
    const at = (targets[i] as number) * 2;
    target[at] = words[source] as number;
    target[at + 1] = words[source + 1] as number;
  }
}

function pickFour(target: Uint32Array, words: Uint32Array, { from, to, sources, targets }: Run): void {
  for (let i = from; i < to; i++) {
    const source = (sources[i] as number) * 4;
    const at = (targets[i] as number) * 4;
    target[at] = words[source] as number;
    target[at + 1] = words[source + 1] as number;
    target[at + 2] = words[source + 2] as number;
    target[at + 3] = words[source + 3] as number;
  }
}

function pickWords(target: Uint32Array, words: Uint32Array, run: Run, perRow: number): void {
  const { from, to, sources, targets } = run;
  for (let i = from; i < to; i++) {
    const source = (sources[i] as number) * perRow;
    const at = (targets[i] as number) * perRow;
    for (let word = 0; word < perRow; word++) target[at + word] = words[source + word] as number;
  }
}

function clearWords(target: Uint32Array, { from, to, targets }: Run, perRow: number): void {
  for (let i = from; i < to; i++) {
    const at = (targets[i] as number) * perRow;
    target.fill(0, at, at + perRow);
  }
}

/** `valid` is 0 where no row has a value, undefined where every row has one. */
function pickValid(target: Uint8Array, valid: Uint8Array | undefined | 0, { from, to, sources, targets }: Run): void {
  for (let i = from; i < to; i++) {
    target[targets[i] as number] = valid === undefined ? 1 : valid === 0 ? 0 : (valid[sources[i] as number] as number);
  }
}
