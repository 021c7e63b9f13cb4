import { createWriteStream } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { MIN_SHARED_BYTES, takeShared } from "../../../core/buffer-pool.ts";
import type { Clock } from "../../../core/clock.ts";
import { LIMITS } from "../../../core/limits.ts";
import { visible } from "../../../core/visible.ts";
import type { ColumnSpec } from "../../../format/types.ts";
import type { Confinement } from "../../../io/confinement/confinement.ts";
import { readPieces } from "../../../io/objectstore/read-pieces.ts";
import type { ObjectInfo, ObjectStore } from "../../../io/objectstore/objectstore.ts";
import { Batcher, hasRows, type Batch, type Cutter, type Origin } from "../../../io/rows/batcher.ts";
import { readCsv } from "../../../io/rows/csv-reader.ts";
import { csvRows } from "../../../io/rows/csv-rows.ts";
import { decodeInput } from "../../../io/rows/decode-input.ts";
import { parquetReader } from "../../../io/rows/parquet-rows.ts";
import { PeekedInput } from "../../../io/rows/peeked.ts";
import { RowCutter } from "../../../io/rows/row-cutter.ts";
import { BOM, foreignContent, SNIFFED_BYTES, startsWithBom } from "../../../io/rows/sniff.ts";
import { UnreadableRows } from "../../../io/rows/unreadable-rows.ts";
import type { DropFormat } from "./drop-file.ts";

/** A dropped file as batches of NDJSON, in bounded memory whatever its size. */
export type ReadOptions = {
  store: Pick<ObjectStore, "get">;
  info: ObjectInfo;
  format: DropFormat;
  /** Of the table as it is: what the values of CSV are goes by them. */
  columns: readonly ColumnSpec[];
  /** Hears of the columns of a file that says what they are, before its first batch. */
  onColumns: (columns: readonly ColumnSpec[]) => void;
  /** Files are copied here that must be read from their end. */
  tempFolder: string;
  /** Of the processes that read CSV and Parquet. */
  confinement: Confinement;
  clock: Clock;
  signal: AbortSignal;
};

/** About the size of a batch: large enough for all threads, small enough for several files at a time. */
export const PIECE_BYTES = 16 * 1024 * 1024;

/** Parsed in some milliseconds, for which no process need start. */
const SMALL_CSV_BYTES = 256 * 1024;

/** What the processes that read may have: DuckDB's own limit, and what Node takes besides. */
const PARQUET_MEMORY_MIB = 512;
const READER_DATA_BYTES = 1_536 * 1024 * 1024;
const MOST_SILENCE_MS = 120_000;
/** Of the line with the columns of a Parquet file, which is held and parsed whole. */
const MOST_DESCRIPTION_BYTES = 2 * 1024 * 1024;

/** Fails with `UnreadableRows` for what is wrong with the file, `ObjectChanged` when it is another one by now. */
export async function* readFile(options: ReadOptions): AsyncGenerator<Batch> {
  for await (const batch of READERS[options.format](options)) if (hasRows(batch.body)) yield batch;
}

export function originOf({ info, format }: Pick<ReadOptions, "info" | "format">): Origin {
  return { shown: visible(info.key), unit: format === "parquet" ? "row" : "line" };
}

const READERS: Readonly<Record<DropFormat, (options: ReadOptions) => AsyncGenerator<Batch>>> = {
  async *ndjson(options) {
    const input = await openText(options);
    yield* cut(input, pieceBatcher(options));
  },

  async *csv(options) {
    const { columns } = options;
    const origin = originOf(options);
    const input = await openText(options);
    const head = await input.head(SMALL_CSV_BYTES + 1);
    if (head.length <= SMALL_CSV_BYTES) {
      yield* cut(csvRows(input, { origin, delimiter: ",", columns }), new RowCutter(origin, PIECE_BYTES));
    } else {
      const task = { shown: origin.shown, columns, batchBytes: PIECE_BYTES };
      yield* readCsv(input, task, limitsOf(options));
    }
  },

  async *parquet(options) {
    const { info, store, signal, tempFolder } = options;
    await mkdir(tempFolder, { recursive: true, mode: 0o700 });
    const folder = await mkdtemp(join(tempFolder, "parquet-"));
    try {
      // A copy of ours: nobody can change it under the reader, nor put a link to another file in its place.
      const file = join(folder, "input.parquet");
      const pieces = Readable.from(readPieces(store, info, { signal }));
      await pipeline(pieces, createWriteStream(file, { mode: 0o600 }), { signal });
      yield* parquetBatches(file, options);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

async function* parquetBatches(file: string, options: ReadOptions): AsyncGenerator<Batch> {
  const task = { file, memoryMib: PARQUET_MEMORY_MIB, isDescribed: true, isWatched: true };
  const reader = parquetReader(task, originOf(options).shown, limitsOf(options));
  const rows = withoutColumns(reader.output(), options);
  yield* cut(rows, pieceBatcher(options));
}

/** Large pieces lie in memory that the threads share: they are sealed where they are. */
function pieceBatcher(options: ReadOptions): Batcher {
  return new Batcher(originOf(options), PIECE_BYTES, LIMITS.ingestBodyBytes, (sizeBytes) =>
    sizeBytes < MIN_SHARED_BYTES ? Buffer.allocUnsafe(sizeBytes) : Buffer.from(takeShared(sizeBytes)),
  );
}

function limitsOf({ confinement, clock, signal }: ReadOptions) {
  return { dataBytes: READER_DATA_BYTES, confinement, signal, silence: { clock, mostMs: MOST_SILENCE_MS } };
}

/** The text of the file without its coding, when it can be one. */
async function openText(options: ReadOptions): Promise<PeekedInput> {
  const { store, info, signal } = options;
  const { shown } = originOf(options);
  const input = new PeekedInput(decodeInput(readPieces(store, info, { signal }), shown));
  try {
    const head = await input.head(SNIFFED_BYTES);
    const foreign = foreignContent(head);
    if (foreign !== undefined) throw new UnreadableRows(`${shown} is ${foreign}`);
    if (head.includes(0)) throw new UnreadableRows(`${shown} is no text: neither NDJSON nor CSV`);
    if (startsWithBom(head)) input.skip(BOM.length);
    const text = head.toString("latin1").trimStart();
    if (options.format === "ndjson" && text.startsWith("[")) {
      throw new UnreadableRows(`${shown} is a JSON array, not NDJSON; make a line of each item, as by \`jq -c '.[]'\``);
    }
    return input;
  } catch (error) {
    await input.return();
    throw error;
  }
}

async function* cut<Piece>(input: AsyncIterable<Piece>, cutter: Cutter<Piece>): AsyncGenerator<Batch> {
  for await (const piece of input) {
    cutter.push(piece);
    for (let batch = cutter.takeFull(); batch !== undefined; batch = cutter.takeFull()) yield batch;
  }
  const rest = cutter.takeRest();
  if (rest !== undefined) yield rest;
}

const NEWLINE = 0x0a;

/** The rows behind the line that describes the columns. */
async function* withoutColumns(output: AsyncIterable<Uint8Array>, options: ReadOptions): AsyncGenerator<Uint8Array> {
  let held: Buffer | undefined = Buffer.alloc(0);
  for await (const piece of output) {
    if (held === undefined) yield piece;
    else {
      held = Buffer.concat([held, piece]);
      const end = held.indexOf(NEWLINE);
      if ((end < 0 ? held.length : end) > MOST_DESCRIPTION_BYTES) {
        const { shown } = originOf(options);
        throw new UnreadableRows(`the names of the columns of ${shown} have more than ${MOST_DESCRIPTION_BYTES} bytes`);
      }
      if (end < 0) continue;
      options.onColumns(JSON.parse(held.toString("utf8", 0, end)) as ColumnSpec[]);
      if (end + 1 < held.length) yield held.subarray(end + 1);
      held = undefined;
    }
  }
}
