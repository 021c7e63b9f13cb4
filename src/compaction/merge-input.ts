import { closeSync, openSync, readSync, statSync } from "node:fs";
import { foldName } from "../core/names.ts";
import { RunningChecksum } from "../format/checksum.ts";
import type { ColumnType } from "../format/types.ts";
import { quoteIdentifier, quoteText, runSql, sqlTypeOf, type Connection, type DuckDb } from "../io/duckdb/duckdb.ts";
import { encodingsFor, IntRanges, type ParquetEncodings } from "../io/duckdb/parquet-encodings.ts";
import { columnsOfTlm } from "../io/duckdb/tlm-file.ts";
import { TLM_SCAN, type TlmScans } from "../io/duckdb/tlm-scan.ts";
import { DamagedInputs, type MergeColumn, type MergeInput, type MergeTask } from "./merge.ts";

/** The inputs of a merge, as one SELECT. */
export type MergeSource = {
  /** The columns that any input has, in the table's order. */
  columns: readonly MergeColumn[];
  /** Yields their rows in the order of arrival, as far as it is known: merged ones before fresh ones. */
  sql: string;
  rows: number;
  /** About as many bytes as the rows take in memory. */
  sizeBytes: number;
  /** The same of each input. */
  inputBytes: readonly number[];
  /** What suits the values of all of them; reads some. */
  encodings(): Promise<ParquetEncodings>;
};

const PIECE_BYTES = 1024 * 1024;

/** Reads all bytes of all inputs. Throws `DamagedInputs` naming those that are not what was committed. */
export function verifyInputs(inputs: readonly MergeInput[]): void {
  const piece = new Uint8Array(PIECE_BYTES);
  const damaged = inputs.filter(({ path, checksum }) => checksumOfFile(path, piece).checksum !== checksum);
  if (damaged.length > 0) throw new DamagedInputs(damaged.map(({ id }) => id));
}

/** Checksum and size of a file; `piece` is used for reading. */
export function checksumOfFile(
  path: string,
  piece: Uint8Array = new Uint8Array(PIECE_BYTES),
): { checksum: string; sizeBytes: number } {
  const descriptor = openSync(path, "r");
  try {
    const checksum = new RunningChecksum();
    let sizeBytes = 0;
    for (let got = readSync(descriptor, piece); got > 0; got = readSync(descriptor, piece)) {
      checksum.add(piece.subarray(0, got));
      sizeBytes += got;
    }
    return { checksum: checksum.toString(), sizeBytes };
  } finally {
    closeSync(descriptor);
  }
}

/** `columns` are the folded names of those that the file has, `longs` of those that are 64-bit integers in it. */
type Located = MergeInput & Layout;
type Layout = { columns: ReadonlySet<string>; longs: ReadonlySet<string>; sizeBytes: number };

export async function openInputs(
  task: Pick<MergeTask, "columns" | "inputs">,
  { duckdb, connection, scans }: { duckdb: DuckDb; connection: Connection; scans: TlmScans },
): Promise<MergeSource> {
  const located: Located[] = [];
  for (const input of task.inputs) located.push({ ...input, ...(await layoutOf(duckdb, connection, input)) });
  const present = new Set(located.flatMap(({ columns }) => [...columns]));
  const columns = task.columns.filter(({ name }) => present.has(foldName(name)));
  if (columns.length < present.size) throw new Error("an input has a column that its table does not have");
  const tlm = located.filter(({ format }) => format === "tlm");
  const parts = parquetParts(
    columns,
    located.filter(({ format }) => format === "parquet"),
  );
  if (tlm.length > 0) {
    const tlmRows = tlm.reduce((sum, input) => sum + input.rows, 0);
    const scan = scans.add({ columns, sources: tlm.map(({ path }) => ({ path })), rows: tlmRows });
    const items = columns.map(({ name, type }) => {
      const column = quoteIdentifier(name);
      return type.kind === "vector" ? `CAST(${column} AS ${typeInFile(type)}) AS ${column}` : column;
    });
    parts.push(`SELECT ${items.join(", ")} FROM ${TLM_SCAN}(${scan})`);
  }
  const rows = task.inputs.reduce((sum, input) => sum + input.rows, 0);
  const inputBytes = located.map((input) => input.sizeBytes);
  const sizeBytes = inputBytes.reduce((sum, size) => sum + size, 0);
  return {
    columns,
    sql: parts.join(" UNION ALL "),
    rows,
    sizeBytes,
    inputBytes,
    async encodings() {
      const ints = new IntRanges(columns);
      for (const { path, format, columns: own } of located) {
        const has = (name: string): boolean => own.has(foldName(name));
        if (format === "tlm") ints.addTlm({ path });
        else await ints.addSql(duckdb, connection, `read_parquet(${quoteText(path)})`, has);
      }
      return encodingsFor(ints);
    },
  };
}

/** What is in a file, and how large it is when nothing is compressed. */
async function layoutOf(duckdb: DuckDb, connection: Connection, { path, format }: MergeInput): Promise<Layout> {
  if (format === "tlm") {
    const names = columnsOfTlm({ path }).map(({ name }) => foldName(name));
    // Whoever reads the file converts what is to be converted.
    return { columns: new Set(names), longs: new Set(), sizeBytes: statSync(path).size };
  }
  const file = quoteText(path);
  const describe = `SELECT column_name, column_type FROM (DESCRIBE FROM read_parquet(${file}))`;
  const described = await runSql(duckdb, connection, describe);
  const sizes = `SELECT CAST(sum(total_uncompressed_size) AS BIGINT) FROM parquet_metadata(${file})`;
  const [size] = await runSql(duckdb, connection, sizes);
  const columns = new Set(described.map(([name]) => foldName(String(name))));
  const longs = new Set(described.flatMap(([name, type]) => (type === "BIGINT" ? [foldName(String(name))] : [])));
  return { columns, longs, sizeBytes: Number(size?.[0] ?? 0) };
}

/**
 * Files that have the same columns are one `read_parquet`, which opens them one after the other. A `real` column may be
 * `long` in a file, which is of the time before it was widened.
 */
function parquetParts(columns: readonly MergeColumn[], inputs: readonly Located[]): string[] {
  const itemsOf = ({ columns: own, longs }: Located): string[] =>
    columns.map(({ name, type }) => {
      const column = quoteIdentifier(name);
      if (!own.has(foldName(name))) return `CAST(NULL AS ${typeInFile(type)}) AS ${column}`;
      const isWidened = type.kind === "real" && longs.has(foldName(name));
      return isWidened ? `CAST(${column} AS ${typeInFile(type)}) AS ${column}` : column;
    });
  const parts = Map.groupBy(inputs, (input) => itemsOf(input).join(", "));
  return [...parts].map(([items, own]) => {
    const paths = own.map(({ path }) => quoteText(path));
    return `SELECT ${items} FROM read_parquet([${paths.join(", ")}])`;
  });
}

/** Parquet has no fixed-size list, and DuckDB takes no field ids for the items of one. */
export function typeInFile(type: ColumnType): string {
  return type.kind === "vector" ? "FLOAT[]" : sqlTypeOf(type);
}
