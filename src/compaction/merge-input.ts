import { closeSync, openSync, readSync, statSync } from "node:fs";
import { foldName } from "../core/names.ts";
import { RunningChecksum } from "../format/checksum.ts";
import { isNanosecondName, nanosecondName } from "../format/parquet-times.ts";
import { quoteIdentifier, quoteText, runSql, type Connection, type DuckDb } from "../io/duckdb/duckdb.ts";
import { finerColumnsOf, nanosecondsOf, typeInFile } from "../io/duckdb/parquet.ts";
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
  /** Names of the columns with times finer than microseconds, of each input; reads those of some. */
  finer(): Promise<ReadonlySet<string>[]>;
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

/** `columns` are the folded names of the table's columns that the file has. */
type Located = MergeInput & Layout;
type Layout = { columns: ReadonlyMap<string, StoredAs>; sizeBytes: number };

/** How a file has a column, as far as that differs: by its type in DuckDB, or in nanoseconds apart. */
type StoredAs = "long" | "microseconds" | "nanoseconds apart" | "plain";

export async function openInputs(
  task: Pick<MergeTask, "columns" | "inputs">,
  { duckdb, connection, scans }: { duckdb: DuckDb; connection: Connection; scans: TlmScans },
): Promise<MergeSource> {
  const located: Located[] = [];
  for (const input of task.inputs) located.push({ ...input, ...(await layoutOf(duckdb, connection, input)) });
  const present = new Set(located.flatMap((input) => [...input.columns.keys()]));
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
    async finer() {
      const finer: ReadonlySet<string>[] = [];
      for (const input of located) finer.push(await finerIn(duckdb, connection, columns, input));
      return finer;
    },
  };
}

/** What is in a file, and how large it is when nothing is compressed. */
async function layoutOf(duckdb: DuckDb, connection: Connection, { path, format }: MergeInput): Promise<Layout> {
  if (format === "tlm") {
    // Whoever reads the file converts what is to be converted.
    const columns = columnsOfTlm({ path }).map(({ name }) => [foldName(name), "plain"] as const);
    return { columns: new Map(columns), sizeBytes: statSync(path).size };
  }
  const file = quoteText(path);
  const describe = `SELECT column_name, column_type FROM (DESCRIBE FROM read_parquet(${file}))`;
  const described = await runSql(duckdb, connection, describe);
  const sizes = `SELECT CAST(sum(total_uncompressed_size) AS BIGINT) FROM parquet_metadata(${file})`;
  const [size] = await runSql(duckdb, connection, sizes);
  const names = new Set(described.map(([name]) => foldName(String(name))));
  const columns = described.flatMap(([name, type]) =>
    isNanosecondName(String(name))
      ? []
      : [[foldName(String(name)), storedAs(String(name), String(type), names)] as const],
  );
  return { columns: new Map(columns), sizeBytes: Number(size?.[0] ?? 0) };
}

function storedAs(name: string, type: string, names: ReadonlySet<string>): StoredAs {
  if (names.has(foldName(nanosecondName(name)))) return "nanoseconds apart";
  if (type === "TIMESTAMP WITH TIME ZONE") return "microseconds";
  return type === "BIGINT" ? "long" : "plain";
}

/**
 * Files that have the same columns are one `read_parquet`, which opens them one after the other. A `real` column may be
 * `long` in a file, which is of the time before it was widened.
 */
function parquetParts(columns: readonly MergeColumn[], inputs: readonly Located[]): string[] {
  const itemsOf = ({ columns: own }: Located): string[] =>
    columns.map(({ name, type }) => {
      const column = quoteIdentifier(name);
      switch (own.get(foldName(name))) {
        case undefined:
          return `CAST(NULL AS ${typeInFile(type)}) AS ${column}`;
        case "long":
          return type.kind === "real" ? `CAST(${column} AS ${typeInFile(type)}) AS ${column}` : column;
        case "microseconds":
          return `${nanosecondsOf(name)} AS ${column}`;
        case "nanoseconds apart":
          return `${quoteIdentifier(nanosecondName(name))} AS ${column}`;
        case "plain":
          return column;
      }
    });
  const parts = Map.groupBy(inputs, (input) => itemsOf(input).join(", "));
  return [...parts].map(([items, own]) => {
    const paths = own.map(({ path }) => quoteText(path));
    return `SELECT ${items} FROM read_parquet([${paths.join(", ")}])`;
  });
}

/** Names of the columns with times that are no whole microseconds. Of a file with nanoseconds apart it is known. */
async function finerIn(
  duckdb: DuckDb,
  connection: Connection,
  columns: readonly MergeColumn[],
  { path, format, columns: own }: Located,
): Promise<ReadonlySet<string>> {
  if (format === "tlm") return finerColumnsOf(columns, { path });
  const times = columns.filter(({ type }) => type.kind === "timestamp");
  const storedSo = (wanted: StoredAs): string[] =>
    times.flatMap(({ name }) => (own.get(foldName(name)) === wanted ? [name] : []));
  const finer = new Set(storedSo("nanoseconds apart"));
  const asked = storedSo("plain");
  if (asked.length === 0) return finer;
  const items = asked.map((name) => `CAST(bool_or(epoch_ns(${quoteIdentifier(name)}) % 1000 <> 0) AS VARCHAR)`);
  const sql = `SELECT ${items.join(", ")} FROM read_parquet(${quoteText(path)})`;
  const [answers = []] = await runSql(duckdb, connection, sql);
  for (const [i, name] of asked.entries()) if (answers[i] === "true") finer.add(name);
  return finer;
}
