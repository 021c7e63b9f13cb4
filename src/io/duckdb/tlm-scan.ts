import { messageOf } from "../../core/errors.ts";
import type { ColumnSpec } from "../../format/types.ts";
import { logicalTypeOf, type Connection, type DataChunk, type DuckDb } from "./duckdb.ts";
import { TlmReader, type TlmBatch, type TlmColumn, type TlmSource } from "./tlm-file.ts";
import { copyColumn, VECTOR_ROWS } from "./vector-copy.ts";

/**
 * The table function over `tlm` extents. DuckDB's own threads call it on the JavaScript thread of the connection's
 * process, one call per 2,048 rows; only the columns that the query needs are asked for. One extent's bytes are held
 * at a time per running scan.
 *
 *     const scans = registerTlmScan(duckdb, connection);
 *     const scan = scans.add({ columns, sources, rows });
 *     … SELECT * FROM engine_tlm_scan(<scan>) …
 *     scans.clear();
 */
export const TLM_SCAN = "engine_tlm_scan";

export type TlmScan = {
  /** The table's columns; an extent that lacks one reads as NULL there. */
  columns: readonly ColumnSpec[];
  sources: readonly TlmSource[];
  /** Rows of all sources together, for the optimizer. */
  rows: number;
  /** One more column, of type BIGINT, that numbers the rows of all sources from `first` on. */
  numbered?: { name: string; first: number };
};

export type TlmScans = {
  /** The argument for `engine_tlm_scan`. */
  add(scan: TlmScan): number;
  clear(): void;
};

type ScanState = {
  scan: TlmScan;
  /** Indexes into `scan.columns`, in the order of the chunk's vectors. */
  projected: readonly number[];
  reader: TlmReader;
  nextSource: number;
  batches: readonly TlmBatch[];
  nextBatch: number;
  batch: TlmBatch | undefined;
  row: number;
  /** The number of the next row, where rows are numbered. */
  number: number;
};

/** How an error begins that is about an extent, and not about the query. */
export const UNREADABLE_EXTENT = "an extent cannot be read: ";

/** Registers the function on the database of the connection. */
export function registerTlmScan(duckdb: DuckDb, connection: Connection): TlmScans {
  const scans = new Map<number, TlmScan>();
  let nextId = 1;
  const table = duckdb.create_table_function();
  duckdb.table_function_set_name(table, TLM_SCAN);
  duckdb.table_function_add_parameter(table, duckdb.create_logical_type(duckdb.Type.BIGINT));
  duckdb.table_function_supports_projection_pushdown(table, true);
  duckdb.table_function_set_bind(table, (info) => {
    const scan = scans.get(Number(duckdb.get_int64(duckdb.bind_get_parameter(info, 0))));
    if (scan === undefined) {
      duckdb.bind_set_error(info, "no such scan");
      return;
    }
    for (const column of scan.columns) {
      duckdb.bind_add_result_column(info, column.name, logicalTypeOf(duckdb, column.type));
    }
    if (scan.numbered !== undefined) {
      duckdb.bind_add_result_column(info, scan.numbered.name, duckdb.create_logical_type(duckdb.Type.BIGINT));
    }
    duckdb.bind_set_cardinality(info, scan.rows, true);
    duckdb.bind_set_bind_data(info, scan);
  });
  duckdb.table_function_set_init(table, (info) => {
    const scan = duckdb.init_get_bind_data(info) as TlmScan;
    const projected = Array.from({ length: duckdb.init_get_column_count(info) }, (_, i) =>
      duckdb.init_get_column_index(info, i),
    );
    const state: ScanState = {
      scan,
      projected,
      reader: new TlmReader(projected.flatMap((index) => scan.columns[index] ?? [])),
      nextSource: 0,
      batches: [],
      nextBatch: 0,
      batch: undefined,
      row: 0,
      number: scan.numbered?.first ?? 0,
    };
    duckdb.init_set_max_threads(info, 1);
    duckdb.init_set_init_data(info, state);
  });
  duckdb.table_function_set_function(table, (info, output) => {
    try {
      fill(duckdb, duckdb.function_get_init_data(info) as ScanState, output);
    } catch (error) {
      // An exception must not cross into native code; DuckDB turns this into the query's error.
      duckdb.function_set_error(info, UNREADABLE_EXTENT + messageOf(error));
    }
  });
  duckdb.register_table_function(connection, table);
  return {
    add(scan) {
      const id = nextId++;
      scans.set(id, scan);
      return id;
    },
    clear: () => scans.clear(),
  };
}

/** Fills the chunk with the next rows; none at the end. */
function fill(duckdb: DuckDb, state: ScanState, output: DataChunk): void {
  const batch = currentBatch(state);
  if (batch === undefined) {
    duckdb.data_chunk_set_size(output, 0);
    return;
  }
  const rows = Math.min(VECTOR_ROWS, batch.rows - state.row);
  const { columns, numbered } = state.scan;
  let read = 0;
  for (const [i, index] of state.projected.entries()) {
    const column = columns[index];
    const isNumber = numbered !== undefined && index === columns.length;
    if (column === undefined && !isNumber) continue;
    const vector = duckdb.data_chunk_get_vector(output, i);
    if (column === undefined) copyColumn(duckdb, vector, LONG, numbersFrom(state.number, rows), 0, rows);
    else copyColumn(duckdb, vector, column.type, batch.columns[read++], state.row, rows);
  }
  duckdb.data_chunk_set_size(output, rows);
  state.row += rows;
  state.number += rows;
}

const LONG = { kind: "long" } as const;

/** A column of consecutive numbers. */
function numbersFrom(first: number, rows: number): TlmColumn {
  const values = BigInt64Array.from({ length: rows }, (_, i) => BigInt(first + i));
  return { nullCount: 0, validity: new Uint8Array(0), values: new Uint8Array(values.buffer) };
}

function currentBatch(state: ScanState): TlmBatch | undefined {
  while (state.batch === undefined || state.row >= state.batch.rows) {
    state.row = 0;
    state.batch = state.batches[state.nextBatch++];
    if (state.batch !== undefined) continue;
    const source = state.scan.sources[state.nextSource++];
    if (source === undefined) return undefined;
    state.batches = state.reader.read(source);
    state.nextBatch = 0;
  }
  return state.batch;
}
