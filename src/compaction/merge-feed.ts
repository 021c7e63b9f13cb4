import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { checksumOf } from "../format/checksum.ts";
import type { ColumnSpec } from "../format/types.ts";
import type { DataChunk, DuckDb } from "../io/duckdb/duckdb.ts";
import { TlmReader, type TlmBatch } from "../io/duckdb/tlm-file.ts";
import { CHUNK_ROWS, ColumnWriter, type Run } from "./merge-column.ts";
import { ExtentMemory, openExtent, wordsOf, type OpenExtent } from "./merge-extent.ts";
import { InputIndex, type RowOrder } from "./merge-order.ts";
import { DamagedInputs, type MergeInput } from "./merge.ts";

/**
 * The rows of a merge in order, chunk by chunk. An input is open from its first row's place in the order to its last
 * one's, so that inputs which follow each other in time are open one at a time; `openBytesOf` says beforehand how much
 * is open at once at the worst.
 */
export type FeedInputs = {
  columns: readonly ColumnSpec[];
  inputs: readonly MergeInput[];
  order: RowOrder;
};

/**
 * Rows are put together column by column for several chunks at once, as many as fit into this: those of a few inputs that
 * overlap in time lie all over their columns, one of which stays in the processor's cache that long.
 */
const WINDOW_BYTES = 16 * 1024 * 1024;
const MAX_WINDOW_ROWS = 16 * CHUNK_ROWS;

/** The most bytes of files that are open at once. */
export function openBytesOf(order: RowOrder, sizes: readonly number[]): number {
  const { first, last } = order.spans;
  const places = sizes.flatMap((sizeBytes, i) =>
    (first[i] as number) > (last[i] as number)
      ? []
      : [
          { place: first[i] as number, change: sizeBytes },
          { place: (last[i] as number) + MAX_WINDOW_ROWS, change: -sizeBytes },
        ],
  );
  let open = 0;
  let most = 0;
  for (const { change } of places.sort((a, b) => a.place - b.place || b.change - a.change)) {
    open += change;
    most = Math.max(most, open);
  }
  return most;
}

/** Called with each input whose rows are about to come. */
export type OnOpen = (batches: readonly TlmBatch[]) => void;

type Open = { extent: OpenExtent; memory: ExtentMemory };

export class Feed {
  readonly #duckdb: DuckDb;
  readonly #source: FeedInputs;
  readonly #reader: TlmReader;
  readonly #open = new Map<number, Open>();
  /** Of inputs that are over. */
  readonly #spare: ExtentMemory[] = [];
  #file: Buffer = Buffer.alloc(0);
  readonly #picks: Picks;
  readonly #writers: ColumnWriter[];
  /** Rows that have been put together, and how many of them have been written. */
  readonly #maxWindowRows: number;
  #windowRows = 0;
  #written = 0;
  #place = 0;

  constructor(duckdb: DuckDb, source: FeedInputs) {
    this.#duckdb = duckdb;
    this.#source = source;
    this.#reader = new TlmReader(source.columns);
    this.#maxWindowRows = windowRowsFor(source.columns);
    this.#picks = new Picks(source.order, this.#maxWindowRows);
    this.#writers = source.columns.map(({ type }) => new ColumnWriter(type, this.#maxWindowRows));
  }

  /** The place in the order of the row that comes next. */
  get place(): number {
    return this.#place;
  }

  /** Fills the chunk with the next rows, of which `ahead` at least are wanted. What the chunk before pointed to may be gone then. */
  fill(output: DataChunk, ahead: number, onOpen: OnOpen): void {
    if (this.#written === this.#windowRows) this.#nextWindow(Math.min(ahead, this.#maxWindowRows), onOpen);
    const rows = Math.min(CHUNK_ROWS, this.#windowRows - this.#written);
    for (const [i, writer] of this.#writers.entries()) {
      writer.write(this.#duckdb, this.#duckdb.data_chunk_get_vector(output, i), this.#written, rows);
    }
    this.#duckdb.data_chunk_set_size(output, rows);
    this.#written += rows;
    this.#place += rows;
  }

  #nextWindow(rows: number, onOpen: OnOpen): void {
    this.#closeBefore(this.#place);
    const runs = this.#picks.pick(this.#place, rows);
    const extents = runs.map(({ input }) => this.#openInput(input, onOpen));
    for (const [i, writer] of this.#writers.entries()) {
      const columns = extents.map((extent) => extent.columns[i]);
      writer.pick(runs, columns);
    }
    this.#windowRows = rows;
    this.#written = 0;
  }

  /** Has every input that is open, and goes on, be seen by the next `onOpen` again. */
  reopen(): void {
    this.#closeBefore(Infinity);
  }

  #openInput(input: number, onOpen: OnOpen): OpenExtent {
    const known = this.#open.get(input);
    if (known !== undefined) return known.extent;
    const batches = this.#reader.read({ bytes: this.#readInput(input) });
    const memory = this.#spare.pop() ?? new ExtentMemory(this.#duckdb);
    const extent = openExtent(memory, batches, this.#source.columns);
    onOpen(batches);
    this.#open.set(input, { extent, memory });
    return extent;
  }

  /** All bytes of an input, until the next one is read. Throws when they are not those that were committed. */
  #readInput(input: number): Uint8Array {
    const { id, path, checksum } = this.#source.inputs[input] as MergeInput;
    const descriptor = openSync(path, "r");
    try {
      const sizeBytes = fstatSync(descriptor).size;
      if (sizeBytes > this.#file.byteLength) this.#file = Buffer.allocUnsafeSlow(sizeBytes);
      const bytes = this.#file.subarray(0, sizeBytes);
      let filled = 0;
      for (let got = 1; got > 0 && filled < sizeBytes; filled += got) {
        got = readSync(descriptor, bytes, filled, sizeBytes - filled, filled);
      }
      if (filled < sizeBytes || checksumOf(bytes) !== checksum) throw new DamagedInputs([id]);
      return bytes;
    } finally {
      closeSync(descriptor);
    }
  }

  #closeBefore(place: number): void {
    const { last } = this.#source.order.spans;
    for (const [input, { memory }] of this.#open) {
      if ((last[input] as number) >= place) continue;
      this.#open.delete(input);
      memory.reset();
      this.#spare.push(memory);
    }
  }
}

function windowRowsFor(columns: readonly ColumnSpec[]): number {
  const rowBytes = columns.reduce((sum, { type }) => sum + wordsOf(type) * 4, 0);
  const chunks = Math.floor(WINDOW_BYTES / rowBytes / CHUNK_ROWS);
  return Math.min(Math.max(chunks * CHUNK_ROWS, CHUNK_ROWS), MAX_WINDOW_ROWS);
}

/** A run's rows are sorted where they are one in so many of those between its first and its last. */
const MAX_RANGE_PER_ROW = 8;

/**
 * Sorts the rows of a window by the input that has them, so that each input's columns are looked at once, and those of
 * an input by their place there: to read them in order, and write them out of it into a window that is in the
 * processor's cache, takes half as long as the other way round.
 */
class Picks {
  readonly #order: RowOrder;
  readonly #inputOf: InputIndex;
  readonly #inputs: Uint16Array;
  readonly #sources: Uint32Array;
  readonly #targets: Uint16Array;
  readonly #counts: Uint32Array;
  /** By place in the input, one more than the row of the window; 0 for none. */
  #marks = new Uint16Array(0);

  constructor(order: RowOrder, maxRows: number) {
    this.#inputs = new Uint16Array(maxRows);
    this.#sources = new Uint32Array(maxRows);
    this.#targets = new Uint16Array(maxRows);
    this.#order = order;
    this.#inputOf = new InputIndex(order.starts);
    this.#counts = new Uint32Array(order.starts.length);
  }

  pick(place: number, rows: number): Run[] {
    const { starts, rows: order } = this.#order;
    const counts = this.#counts;
    const runs: Run[] = [];
    for (let i = 0; i < rows; i++) {
      const input = this.#inputOf.of(order[place + i] as number);
      this.#inputs[i] = input;
      if (counts[input] === 0) runs.push({ input, from: 0, to: 0, sources: this.#sources, targets: this.#targets });
      counts[input] = (counts[input] as number) + 1;
    }
    let at = 0;
    for (const run of runs) {
      run.from = at;
      run.to = at;
      at += counts[run.input] as number;
      counts[run.input] = run.from;
    }
    for (let i = 0; i < rows; i++) {
      const owner = this.#inputs[i] as number;
      const to = counts[owner] as number;
      counts[owner] = to + 1;
      this.#sources[to] = (order[place + i] as number) - (starts[owner] as number);
      this.#targets[to] = i;
    }
    for (const run of runs) {
      run.to = counts[run.input] as number;
      counts[run.input] = 0;
      this.#sortBySource(run);
    }
    return runs;
  }

  #sortBySource({ from, to, sources, targets }: Run): void {
    let first = sources[from] as number;
    let last = first;
    for (let i = from; i < to; i++) {
      const source = sources[i] as number;
      if (source < first) first = source;
      if (source > last) last = source;
    }
    const range = last - first + 1;
    if (range > (to - from) * MAX_RANGE_PER_ROW) return;
    if (range > this.#marks.length) this.#marks = new Uint16Array(range);
    const marks = this.#marks;
    for (let i = from; i < to; i++) marks[(sources[i] as number) - first] = (targets[i] as number) + 1;
    let at = from;
    for (let i = 0; i < range; i++) {
      const mark = marks[i] as number;
      if (mark === 0) continue;
      marks[i] = 0;
      sources[at] = first + i;
      targets[at] = mark - 1;
      at++;
    }
  }
}
