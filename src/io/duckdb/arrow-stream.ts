import { AsyncByteQueue, Field, makeData, RecordBatch, RecordBatchStreamWriter, Schema, Struct } from "apache-arrow";
import { bytesOf } from "../../format/tlm.ts";
import { TYPE_KEY } from "../../format/types.ts";
import { arrowColumn } from "./arrow-columns.ts";
import type { ArrowColumn } from "./arrow-flat.ts";
import { splitRows } from "./arrow-split.ts";
import { prepareOne, type Connection, type DataChunk, type DuckDb } from "./duckdb.ts";

/** Takes the next bytes, in pieces that are only good until it returns. */
type Write = (...pieces: readonly Uint8Array[]) => void;

export type ArrowStreamOptions = {
  /** Most bytes of a batch of more than one row, but for what pads its buffers. */
  maxBatchBytes?: number;
  /** Rows after so many are left out. */
  maxRows?: number;
  /** What the field of each column says of its type, for clients that know this product's; others pass it over. */
  types?: readonly string[];
};

/**
 * Gives the rows of a query as an Arrow IPC stream, with `write`, and returns how many there were. DuckDB's own Arrow extension is not part of
 * it, and is not to be installed at run time. Rows are fetched as DuckDB makes them, so nothing but one batch is in
 * memory. The columns must be of types that `arrowColumn` takes.
 */
export async function writeArrowStream(
  duckdb: DuckDb,
  connection: Connection,
  sql: string,
  write: Write,
  { maxBatchBytes = MAX_BATCH_BYTES, maxRows = Infinity, types = [] }: ArrowStreamOptions = {},
): Promise<number> {
  const statement = await prepareOne(duckdb, connection, sql, "SELECT");
  let next: Promise<DataChunk | null> | undefined;
  try {
    const result = await duckdb.execute_prepared_streaming(statement);
    const count = duckdb.column_count(result);
    const columns = Array.from({ length: count }, (_, i) => arrowColumn(duckdb, duckdb.column_logical_type(result, i)));
    const fields = columns.map((column, i) => {
      const type = types[i];
      const metadata = type === undefined ? undefined : new Map([[TYPE_KEY, type]]);
      return new Field(duckdb.column_name(result, i), column.type, true, metadata);
    });
    const batches = new Batches(columns, fields, { write, maxBytes: maxBatchBytes });
    next = duckdb.fetch_chunk(result);
    let found = 0;
    for (;;) {
      const chunk = await next;
      const size = chunk === null ? 0 : duckdb.data_chunk_get_size(chunk);
      if (chunk === null || size === 0) break;
      // DuckDB works on the next chunk meanwhile.
      next = duckdb.fetch_chunk(result);
      const rows = Math.min(size, Math.max(0, maxRows - found));
      found += size;
      if (rows === 0) continue;
      for (const [i, column] of columns.entries()) {
        column.load(duckdb.data_chunk_get_vector(chunk, i), size);
        column.append(0, rows);
      }
      batches.added(rows);
    }
    batches.close();
    return found;
  } finally {
    await Promise.allSettled([next]);
    duckdb.destroy_prepare_sync(statement);
  }
}

const BATCH_ROWS = 65_536;
/** Several clients of Arrow Flight take messages of 4 MiB at most, and a batch is one message. */
const MAX_BATCH_BYTES = 2 * 1024 * 1024;

class Batches {
  readonly #columns: readonly ArrowColumn[];
  readonly #schema: Schema;
  readonly #type: Struct;
  readonly #maxBytes: number;
  readonly #write: Write;
  readonly #sink = new Sink();
  readonly #writer = new RecordBatchStreamWriter();
  #rows = 0;
  #bytes = 0;

  constructor(
    columns: readonly ArrowColumn[],
    fields: Field[],
    { write, maxBytes }: { write: Write; maxBytes: number },
  ) {
    this.#maxBytes = maxBytes;
    this.#columns = columns;
    this.#schema = new Schema(fields);
    this.#type = new Struct(fields);
    this.#write = write;
    this.#writer.reset(this.#sink, this.#schema);
  }

  added(rows: number): void {
    const before = this.#bytes;
    this.#rows += rows;
    this.#bytes = this.#columns.reduce((sum, column) => sum + column.sizeBytes, 0);
    // The next chunk is likely to be as large as this one.
    if (this.#rows >= BATCH_ROWS || 2 * this.#bytes - before > this.#maxBytes) this.#end();
  }

  close(): void {
    if (this.#rows > 0) this.#end();
    this.#writer.finish();
    this.#write(...this.#sink.take());
  }

  #end(): void {
    const children = this.#columns.map((column) => column.take());
    const data = makeData({ type: this.#type, length: this.#rows, nullCount: 0, children });
    const parts = this.#bytes > this.#maxBytes ? splitRows(data, this.#maxBytes) : [data];
    for (const part of parts) this.#writer.write(new RecordBatch(this.#schema, part));
    this.#write(...this.#sink.take());
    this.#rows = 0;
    this.#bytes = 0;
  }
}

/** Gathers the writer's pieces: dozens for a batch, most of them its buffers as they are. */
class Sink extends AsyncByteQueue {
  #pieces: Uint8Array[] = [];

  override write(piece: ArrayBufferView | ArrayBufferLike | string): void {
    this.#pieces.push(bytesOf(piece));
  }

  take(): Uint8Array[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    return pieces;
  }
}
