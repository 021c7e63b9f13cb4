import { AsyncByteQueue, Field, makeData, RecordBatch, RecordBatchStreamWriter, Schema, Struct } from "apache-arrow";
import { bytesOf } from "../../format/tlm.ts";
import { arrowColumn } from "./arrow-columns.ts";
import type { ArrowColumn } from "./arrow-flat.ts";
import { prepareOne, type Connection, type DuckDb } from "./duckdb.ts";

/**
 * Gives the rows of a query as an Arrow IPC stream, with `write`, and returns how many. DuckDB's own Arrow extension is not part of
 * it, and is not to be installed at run time. Rows are fetched as DuckDB makes them, so nothing but one batch is in
 * memory. The columns must be of types that `arrowColumn` takes.
 */
export async function writeArrowStream(
  duckdb: DuckDb,
  connection: Connection,
  sql: string,
  write: (bytes: Uint8Array) => void,
): Promise<number> {
  const statement = await prepareOne(duckdb, connection, sql, "SELECT");
  try {
    const result = await duckdb.execute_prepared_streaming(statement);
    const count = duckdb.column_count(result);
    const columns = Array.from({ length: count }, (_, i) => arrowColumn(duckdb, duckdb.column_logical_type(result, i)));
    const fields = columns.map((column, i) => new Field(duckdb.column_name(result, i), column.type, true));
    const batches = new Batches(columns, fields, write);
    for (;;) {
      const chunk = await duckdb.fetch_chunk(result);
      const rows = chunk === null ? 0 : duckdb.data_chunk_get_size(chunk);
      if (chunk === null || rows === 0) break;
      for (const [i, column] of columns.entries()) {
        column.load(duckdb.data_chunk_get_vector(chunk, i), rows);
        column.append(0, rows);
      }
      batches.added(rows);
    }
    return batches.close();
  } finally {
    duckdb.destroy_prepare_sync(statement);
  }
}

/** A batch ends with whichever it reaches first. */
const BATCH_ROWS = 65_536;
const BATCH_BYTES = 8 * 1024 * 1024;

class Batches {
  readonly #columns: readonly ArrowColumn[];
  readonly #schema: Schema;
  readonly #type: Struct;
  readonly #sink: Sink;
  readonly #writer = new RecordBatchStreamWriter();
  #rows = 0;
  #total = 0;

  constructor(columns: readonly ArrowColumn[], fields: Field[], write: (bytes: Uint8Array) => void) {
    this.#columns = columns;
    this.#schema = new Schema(fields);
    this.#type = new Struct(fields);
    this.#sink = new Sink(write);
    this.#writer.reset(this.#sink, this.#schema);
  }

  added(rows: number): void {
    this.#rows += rows;
    if (this.#rows >= BATCH_ROWS || this.#sizeBytes() >= BATCH_BYTES) this.#end();
  }

  close(): number {
    if (this.#rows > 0) this.#end();
    this.#writer.finish();
    this.#sink.flush();
    return this.#total;
  }

  #sizeBytes(): number {
    return this.#columns.reduce((sum, column) => sum + column.sizeBytes, 0);
  }

  #end(): void {
    const children = this.#columns.map((column) => column.take());
    const data = makeData({ type: this.#type, length: this.#rows, nullCount: 0, children });
    this.#writer.write(new RecordBatch(this.#schema, data));
    this.#total += this.#rows;
    this.#rows = 0;
    this.#sink.flush();
  }
}

/** Takes the writer's pieces, and passes them on when told to: a batch is hundreds of small ones. */
class Sink extends AsyncByteQueue {
  readonly #write: (bytes: Uint8Array) => void;
  #pieces: Uint8Array[] = [];

  constructor(write: (bytes: Uint8Array) => void) {
    super();
    this.#write = write;
  }

  override write(piece: ArrayBufferView | ArrayBufferLike | string): void {
    this.#pieces.push(bytesOf(piece));
  }

  flush(): void {
    this.#write(Buffer.concat(this.#pieces));
    this.#pieces = [];
  }
}
