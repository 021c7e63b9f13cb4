import { prepareOne, type Connection, type DataChunk, type DuckDb } from "./duckdb.ts";
import { readTexts, STRUCT_BYTES } from "./text-vector.ts";

/** Texts are copied out in pieces of about this size: one chunk of 2,048 rows may hold gigabytes. */
const PIECE_BYTES = 8 * 1024 * 1024;
const LINE_FEED = 10;

/**
 * Runs a query of one VARCHAR column without NULLs and gives its rows as lines, in order, with `write`; returns how
 * many there were. Rows after `maxRows` are left out. Rows are fetched as DuckDB makes them. DuckDB's own `COPY … (FORMAT json)` makes the same texts, then
 * passes them through its CSV writer, which takes twice the CPU time.
 */
export async function writeLines(
  duckdb: DuckDb,
  connection: Connection,
  sql: string,
  write: (lines: Uint8Array) => void,
  maxRows = Infinity,
): Promise<number> {
  const statement = await prepareOne(duckdb, connection, sql, "SELECT");
  let next: Promise<DataChunk | null> | undefined;
  try {
    const result = await duckdb.execute_prepared_streaming(statement);
    let rows = 0;
    next = duckdb.fetch_chunk(result);
    for (;;) {
      const chunk = await next;
      const size = chunk === null ? 0 : duckdb.data_chunk_get_size(chunk);
      if (chunk === null || size === 0) return rows;
      // DuckDB works on the next chunk meanwhile.
      next = duckdb.fetch_chunk(result);
      const taken = Math.min(size, Math.max(0, maxRows - rows));
      rows += size;
      if (taken === 0) continue;
      const structs = duckdb.vector_get_data(duckdb.data_chunk_get_vector(chunk, 0), taken * STRUCT_BYTES);
      for (const piece of piecesOf(structs)) write(linesOf(duckdb, piece));
    }
  } finally {
    await Promise.allSettled([next]);
    duckdb.destroy_prepare_sync(statement);
  }
}

/** Runs of rows of about `PIECE_BYTES` of text. */
function* piecesOf(structs: Uint8Array): Generator<Uint8Array> {
  const view = new DataView(structs.buffer, structs.byteOffset, structs.byteLength);
  let start = 0;
  let sizeBytes = 0;
  for (let at = 0; at < structs.byteLength; at += STRUCT_BYTES) {
    const length = view.getUint32(at, true);
    if (sizeBytes > 0 && sizeBytes + length > PIECE_BYTES) {
      yield structs.subarray(start, at);
      start = at;
      sizeBytes = 0;
    }
    sizeBytes += length;
  }
  yield structs.subarray(start);
}

function linesOf(duckdb: DuckDb, structs: Uint8Array): Uint8Array {
  const { bytes, starts, lengths } = readTexts(duckdb, structs, () => true);
  const lines = new Uint8Array(lengths.reduce((sum, length) => sum + length + 1, 0));
  let at = 0;
  for (const [row, length] of lengths.entries()) {
    const start = starts[row] ?? 0;
    lines.set(bytes.subarray(start, start + length), at);
    at += length;
    lines[at++] = LINE_FEED;
  }
  return lines;
}
