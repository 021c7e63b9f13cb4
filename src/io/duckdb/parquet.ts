import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Semaphore } from "../../core/concurrency.ts";
import type { ColumnSpec } from "../../format/types.ts";
import { loadDuckDb, quoteIdentifier, quoteText, type Connection, type DuckDb } from "./duckdb.ts";
import { encodingsFor, IntRanges, type ParquetEncodings } from "./parquet-encodings.ts";
import { columnsOfTlm } from "./tlm-file.ts";
import { registerTlmScan, TLM_SCAN, type TlmScans } from "./tlm-scan.ts";

/**
 * Turns a `tlm` extent into a Parquet file with the same rows and columns: zstd, row groups of 122,880 rows,
 * TIMESTAMP_NS as nanosecond timestamps, `dynamic` with the JSON logical type, vectors as lists (Parquet has no
 * fixed-size list; a reader casts them back to `FLOAT[N]`).
 *
 * Meant for a worker thread: reading the rows is JavaScript on the calling thread. DuckDB writes to files only, so
 * the bytes pass through a temporary file that is gone when the promise settles. Calls of one thread run in turn.
 */
export async function tlmToParquet(tlm: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  opening ??= openWriter();
  const writer = await opening;
  return turn.run(() => write(writer, tlm));
}

/** Rows of a row group, a multiple of DuckDB's own vectors. */
export const ROW_GROUP_ROWS = 122_880;

export type ParquetOptions = {
  encodings: ParquetEncodings;
  rowGroupRows?: number;
  /** Columns whose ids the file records as field ids, by which open table formats know columns across files. */
  fieldIds?: readonly (ColumnSpec & { id: number })[];
  /** The target is a folder, of files that each end with the row group that reaches the size. */
  fileSizeBytes?: number;
  /** Of zstd; DuckDB's own choice is 3. */
  compressionLevel?: number;
};

/** The options of a COPY that writes an extent. */
export function parquetOptions({ encodings, rowGroupRows = ROW_GROUP_ROWS, ...options }: ParquetOptions): string {
  const { fieldIds, fileSizeBytes, compressionLevel } = options;
  const parts = ["FORMAT parquet", "COMPRESSION zstd", `ROW_GROUP_SIZE ${rowGroupRows}`];
  if (encodings === "v2") parts.push("PARQUET_VERSION V2");
  if (compressionLevel !== undefined) parts.push(`COMPRESSION_LEVEL ${compressionLevel}`);
  if (fieldIds !== undefined) parts.push(`FIELD_IDS {${fieldIds.map(fieldIdOf).join(", ")}}`);
  if (fileSizeBytes !== undefined) parts.push(`FILE_SIZE_BYTES ${fileSizeBytes}`);
  return parts.join(", ");
}

/** Ids of the items of vectors lie that far above their columns' own: a table has never had as many columns. */
const ITEM_IDS = 1_000_000;

function fieldIdOf({ name, type, id }: ColumnSpec & { id: number }): string {
  const ids = type.kind === "vector" ? `{__duckdb_field_id: ${id}, element: ${ITEM_IDS + id}}` : String(id);
  return `${quoteIdentifier(name)}: ${ids}`;
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

async function write({ duckdb, connection, scans }: Writer, tlm: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const folder = await mkdtemp(join(tmpdir(), "engine-parquet-"));
  try {
    const file = join(folder, "extent.parquet");
    const columns = columnsOfTlm({ bytes: tlm });
    const scan = scans.add({ columns, sources: [{ bytes: tlm }], rows: 0 });
    const ints = new IntRanges(columns);
    ints.addTlm({ bytes: tlm });
    const target = `${quoteText(file)} (${parquetOptions({ encodings: encodingsFor(ints) })})`;
    await duckdb.query(connection, `COPY (SELECT * FROM ${TLM_SCAN}(${scan})) TO ${target}`);
    return Uint8Array.from(await readFile(file));
  } finally {
    scans.clear();
    await rm(folder, { recursive: true, force: true });
  }
}
