import type { ErrorRecord } from "../core/errors.ts";
import type { ColumnFilter } from "../format/filter/filter.ts";
import type { Misfit } from "../format/ndjson/misfits.ts";
import type { Rejected } from "../format/ndjson/scanner.ts";
import { specOf, type ColumnSpec, type ColumnStats, type ExtentFormat } from "../format/types.ts";
import type { ParquetEncodings } from "../io/duckdb/parquet-encodings.ts";
import type { BodyReading } from "./ingest.ts";

/**
 * Sealing: bodies of any encodings in, one extent out. It runs on a worker thread; everything here survives structured clone,
 * and byte buffers are transferred.
 *
 * All bodies of a flush are scanned into shared column builders, with a savepoint per body: a body that fails is
 * rolled back and reported alone. Columns found on the way extend the builders; rows before them read NULL.
 */
export type SealTask = {
  /** The table's columns as of `schemaVersion`, in order. */
  columns: readonly SealColumn[];
  bodies: readonly SealBody[];
  format: ExtentFormat;
  /** Of Parquet: see `ParquetFromOptions`. */
  encodings?: ParquetEncodings | undefined;
  /** Where the extent may be written, if it fits. */
  output?: SharedArrayBuffer;
};

/**
 * A column that a flush itself brings has no id: the catalog gives ids in the order of commits, and others of the same
 * snapshot may come first. Its extent, if it is to be Parquet, is of version 1, which has no field ids, until compaction
 * writes its rows again; every later flush of the table knows the ids.
 */
export type SealColumn = ColumnSpec & { id?: number };

/** What sealing needs of a table's column. */
export function columnToSeal(column: ColumnSpec & { id: number }): SealColumn {
  return { ...specOf(column), id: column.id };
}

export type SealBody = BodyReading & {
  /** As sent, less its `Content-Encoding`. */
  bytes: Uint8Array;
  /** `X-Schema-Evolve`: whether unknown fields become columns (else they are dropped). */
  evolve: boolean;
  /** Whether those columns get types by their values (else they are strings). */
  inferTypes?: boolean;
  /** Time of arrival, nanoseconds since the epoch: `at` of rows that have none. */
  arrivedAtNs: bigint;
  /** Columns that the body may add; `LIMITS.newColumnsPerRequest` unless given. */
  maxNewColumns?: number;
  /** Whether a body without rows is no failure: part of a larger one may have only blank lines. */
  mayBeEmpty?: boolean;
  /** Whether what does not fit a `vector` column goes to `props`, as with any other: what was acknowledged must get in. */
  lenient?: boolean;
};

export type SealResult = {
  /** Absent when no body contributed a row. */
  extent?: SealedExtent;
  /** Columns that the table did not have, in order of first appearance. */
  newColumns: ColumnSpec[];
  /** Those of type `long` that have a value which no double holds exactly. */
  wideLongs?: string[];
  /** One per body, in order. */
  outcomes: BodyOutcome[];
};

export type SealedExtent = {
  /** Give it back with `releaseShared` when it is written. */
  bytes: Uint8Array;
  format: ExtentFormat;
  /** The newest of the format unless given. */
  formatVersion?: number;
  rows: number;
  /** `checksumOf(bytes)`. */
  checksum: string;
  minAtNs: bigint;
  maxAtNs: bigint;
  stats: ColumnStats[];
  /** See `NewExtent.nanosecondColumns`. */
  nanosecondColumns?: readonly string[];
  /** Of columns that are worth one: see `filtersOf`. */
  filters: ColumnFilter[];
};

/**
 * `unknownFields` says that the body may have a field that none of `columns` is for (a stand-in for `at` that no column
 * is named for counts): under more columns other rows could come of it. It may be said of more bodies than it is true
 * of, never of fewer.
 *
 * `lines` counts blank ones too. `misfits` is there when anything did not fit, `rejected` when records were left out: then
 * the body may have no rows.
 */
export type BodyOutcome = SealedBody | { ok: false; error: ErrorRecord };
export type SealedBody = {
  ok: true;
  rows: number;
  lines: number;
  unknownFields?: true;
  misfits?: Misfit[];
  /** Inferred `long` columns that the body has a number for which `real` would hold: see `seal-widening.ts`. */
  fractions?: string[];
  rejected?: Rejected;
};

/** How the ingest service seals, on whatever thread. */
export type Sealer = (task: SealTask) => Promise<SealResult>;
