import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Semaphore } from "../../core/concurrency.ts";
import { foldName } from "../../core/names.ts";
import { ITEM_IDS, NANOSECOND_IDS } from "../../format/parquet-ids.ts";
import { hasFinerTimes, nanosecondName } from "../../format/parquet-times.ts";
import { FORMAT_VERSION, PARQUET_WITHOUT_IDS, type ColumnSpec, type ColumnType } from "../../format/types.ts";
import { loadDuckDb, quoteIdentifier, quoteText, sqlTypeOf, type Connection, type DuckDb } from "./duckdb.ts";
import { encodingsFor, IntRanges, type ParquetEncodings } from "./parquet-encodings.ts";
import { columnsOfTlm, TlmReader, type TlmSource } from "./tlm-file.ts";
import { registerTlmScan, TLM_SCAN, type TlmScans } from "./tlm-scan.ts";

/**
 * Turns a `tlm` extent into a Parquet file with the same rows and columns: zstd, row groups of 122,880 rows, times as
 * `format/parquet-times.ts` says, `dynamic` with the JSON logical type, vectors as lists (Parquet has no fixed-size list;
 * a reader casts them back to `FLOAT[N]`). Every column is optional.
 *
 * A file in which a column has no id is of version 1, without field ids and with times as `TIMESTAMP_NS`.
 *
 * Meant for a worker thread: reading the rows is JavaScript on the calling thread. DuckDB writes to files only, so
 * the bytes pass through a temporary file that is gone when the promise settles. Calls of one thread run in turn.
 */
export async function parquetFrom(tlm: Uint8Array, options: ParquetFromOptions): Promise<ParquetExtent> {
  opening ??= openWriter();
  const writer = await opening;
  return turn.run(() => write(writer, tlm, options));
}

export type ParquetFromOptions = {
  /** Of columns by folded name. */
  ids?: ReadonlyMap<string, number> | undefined;
  /** `v2` unless given, and where it is, values that could not be read are `plain` all the same (`encodingsFor`). */
  encodings?: ParquetEncodings | undefined;
};

export type ParquetExtent = {
  bytes: Uint8Array<ArrayBuffer>;
  formatVersion: number;
  /** Names of columns of which the file has nanoseconds as well. */
  nanosecondColumns: readonly string[];
};

/** Rows of a row group, a multiple of DuckDB's own vectors. */
export const ROW_GROUP_ROWS = 122_880;

/** What a file of version 2 has. */
export type ParquetLayout = {
  /** Their ids become field ids, by which open table formats know columns across files. */
  columns: readonly IdentifiedColumn[];
  /** Names of the columns that have times finer than microseconds. */
  finer: ReadonlySet<string>;
};
export type IdentifiedColumn = ColumnSpec & { id: number };

export type ParquetOptions = {
  encodings: ParquetEncodings;
  rowGroupRows?: number;
  /** Absent for files of version 1. */
  layout?: ParquetLayout;
  /** The target is a folder, of files that each end with the row group that reaches the size. */
  fileSizeBytes?: number;
  /** Of zstd; DuckDB's own choice is 3. */
  compressionLevel?: number;
};

/** The options of a COPY that writes an extent. */
export function parquetOptions({ encodings, rowGroupRows = ROW_GROUP_ROWS, ...options }: ParquetOptions): string {
  const { layout, fileSizeBytes, compressionLevel } = options;
  const parts = ["FORMAT parquet", "COMPRESSION zstd", `ROW_GROUP_SIZE ${rowGroupRows}`];
  if (encodings === "v2") parts.push("PARQUET_VERSION V2");
  if (compressionLevel !== undefined) parts.push(`COMPRESSION_LEVEL ${compressionLevel}`);
  if (layout !== undefined) parts.push(`FIELD_IDS {${fieldIdsOf(layout).join(", ")}}`);
  if (fileSizeBytes !== undefined) parts.push(`FILE_SIZE_BYTES ${fileSizeBytes}`);
  return parts.join(", ");
}

function fieldIdsOf({ columns, finer }: ParquetLayout): string[] {
  const own = columns.map(({ name, type, id }) => {
    const ids = type.kind === "vector" ? `{__duckdb_field_id: ${id}, element: ${ITEM_IDS + id}}` : String(id);
    return `${quoteIdentifier(name)}: ${ids}`;
  });
  const nanoseconds = columns
    .filter(({ name }) => finer.has(name))
    .map(({ name, id }) => `${quoteIdentifier(nanosecondName(name))}: ${NANOSECOND_IDS + id}`);
  return [...own, ...nanoseconds];
}

/** What a file of that layout is written from: columns of the product's types become those of the file. */
export function itemsToWrite({ columns, finer }: ParquetLayout): string {
  const own = columns.map(({ name, type }) => {
    const column = quoteIdentifier(name);
    if (type.kind === "vector") return `CAST(${column} AS ${typeInFile(type)}) AS ${column}`;
    if (type.kind !== "timestamp") return column;
    // A cast to TIMESTAMPTZ asks a calendar about each value, which takes ten times as long.
    if (!finer.has(name)) return `make_timestamptz(epoch_us(${column})) AS ${column}`;
    return `${microsecondsOf(name)} AS ${column}`;
  });
  // Last, so that columns have the same places in every file.
  const nanoseconds = columns
    .filter(({ name }) => finer.has(name))
    .map(({ name }) => `${quoteIdentifier(name)} AS ${quoteIdentifier(nanosecondName(name))}`);
  return [...own, ...nanoseconds].join(", ");
}

/** Parquet has no fixed-size list, and DuckDB takes no field ids for the items of one. */
export function typeInFile(type: ColumnType): string {
  return type.kind === "vector" ? "FLOAT[]" : sqlTypeOf(type);
}

/** What a file has in microseconds of a `TIMESTAMP_NS`: rounded down. */
export function microsecondsOf(column: string): string {
  const ns = `epoch_ns(${quoteIdentifier(column)})`;
  return `make_timestamptz(${ns} // 1000 - CAST(${ns} % 1000 < 0 AS BIGINT))`;
}

/** The `TIMESTAMP_NS` of a column that a file has in microseconds. All of its values are whole ones. */
export function nanosecondsOf(column: string): string {
  return `make_timestamp_ns(epoch_ns(${quoteIdentifier(column)}))`;
}

type Writer = { duckdb: DuckDb; connection: Connection; scans: TlmScans };

let opening: Promise<Writer> | undefined;
const turn = new Semaphore(1);

async function openWriter(): Promise<Writer> {
  const duckdb = await loadDuckDb();
  const connection = await duckdb.connect(await duckdb.open(":memory:"));
  // Sealing runs on as many threads as the machine has cores already.
  await duckdb.query(connection, "SET threads = 1");
  return { duckdb, connection, scans: registerTlmScan(duckdb, connection) };
}

async function write(
  { duckdb, connection, scans }: Writer,
  tlm: Uint8Array,
  { ids, encodings }: ParquetFromOptions,
): Promise<ParquetExtent> {
  const folder = await mkdtemp(join(tmpdir(), "engine-parquet-"));
  try {
    const file = join(folder, "extent.parquet");
    const columns = columnsOfTlm({ bytes: tlm });
    const scan = scans.add({ columns, sources: [{ bytes: tlm }], rows: 0 });
    const layout = layoutOf(columns, tlm, ids);
    const options = {
      encodings: encodings === "plain" ? encodings : encodingsOf(columns, tlm),
      ...(layout && { layout }),
    };
    const items = layout === undefined ? "*" : itemsToWrite(layout);
    const target = `${quoteText(file)} (${parquetOptions(options)})`;
    await duckdb.query(connection, `COPY (SELECT ${items} FROM ${TLM_SCAN}(${scan})) TO ${target}`);
    const formatVersion = layout === undefined ? PARQUET_WITHOUT_IDS : FORMAT_VERSION.parquet;
    const bytes = Uint8Array.from(await readFile(file));
    return { bytes, formatVersion, nanosecondColumns: [...(layout?.finer ?? [])] };
  } finally {
    scans.clear();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Undefined where a column has no id. */
function layoutOf(
  specs: readonly ColumnSpec[],
  tlm: Uint8Array,
  ids: ReadonlyMap<string, number> | undefined,
): ParquetLayout | undefined {
  const columns = specs.flatMap((spec) => {
    const id = ids?.get(foldName(spec.name));
    return id === undefined ? [] : [{ ...spec, id }];
  });
  return columns.length < specs.length ? undefined : { columns, finer: finerColumnsOf(specs, { bytes: tlm }) };
}

function encodingsOf(columns: readonly ColumnSpec[], tlm: Uint8Array): ParquetEncodings {
  const ints = new IntRanges(columns);
  ints.addTlm({ bytes: tlm });
  return encodingsFor(ints);
}

/** Names of the columns that have a time in the extent that is no whole microsecond. */
export function finerColumnsOf(columns: readonly ColumnSpec[], source: TlmSource): Set<string> {
  const times = columns.filter(({ type }) => type.kind === "timestamp");
  const finer = new Set<string>();
  for (const batch of new TlmReader(times).read(source)) {
    for (const [i, column] of batch.columns.entries()) {
      const { name = "" } = times[i] ?? {};
      if (column !== undefined && !finer.has(name) && hasFinerTimes(column, batch.rows)) finer.add(name);
    }
  }
  return finer;
}
