import type { ColumnSpec, ColumnType } from "../format/types.ts";
import { quoteText, runSql, type Connection, type DuckDb } from "../io/duckdb/duckdb.ts";

/** What the footer of a Parquet file that DuckDB has just written says of a column. */
export type FooterColumn<Column extends ColumnSpec> = {
  spec: Column;
  /** Undefined where it speaks of items of lists. */
  nullCount: number | undefined;
  /** As text; undefined where it has none (texts of more than 10,000 bytes, NaN) or they are no use: times are asked for. */
  bounds: readonly [min: string, max: string] | undefined;
};

/** The columns of a file, which begins with these in this order; nanoseconds of times come behind them. */
export async function readFooter<Column extends ColumnSpec>(
  duckdb: DuckDb,
  connection: Connection,
  path: string,
  columns: readonly Column[],
): Promise<FooterColumn<Column>[]> {
  // Every column of ours is one of Parquet's, that of a vector's items included.
  const sql = `SELECT column_id, num_values, stats_null_count,
      CASE WHEN min_is_exact THEN stats_min_value END, CASE WHEN max_is_exact THEN stats_max_value END
    FROM parquet_metadata(${quoteText(path)})`;
  const pieces: Piece[][] = columns.map(() => []);
  for (const [id, values, nulls, min = null, max = null] of await runSql(duckdb, connection, sql)) {
    pieces[Number(id)]?.push({ values: Number(values), nulls: nulls === null ? undefined : Number(nulls), min, max });
  }
  return columns.map((spec, i) => summed(spec, pieces[i] ?? []));
}

/** A row group's part of a column. */
type Piece = { values: number; nulls: number | undefined; min: string | null; max: string | null };

function summed<Column extends ColumnSpec>(spec: Column, pieces: readonly Piece[]): FooterColumn<Column> {
  // Those of a list count its items.
  if (spec.type.kind === "vector") return { spec, nullCount: undefined, bounds: undefined };
  const counts = pieces.map(({ nulls }) => nulls);
  const nullCount = counts.reduce(
    (sum, nulls) => (sum === undefined || nulls === undefined ? undefined : sum + nulls),
    0,
  );
  const withValues = pieces.filter(({ values, nulls }) => values !== nulls);
  return { spec, nullCount, bounds: boundsOf(spec.type, withValues) };
}

function boundsOf({ kind }: ColumnType, pieces: readonly Piece[]): FooterColumn<ColumnSpec>["bounds"] {
  const compare = COMPARING[kind];
  if (compare === undefined || pieces.length === 0) return undefined;
  const texts = pieces.flatMap(({ min, max }) => (min === null || max === null ? [] : [min, max]));
  if (texts.length < pieces.length * 2) return undefined;
  // Infinity bounds nothing that could be compared here.
  if (kind === "real" && !texts.every((text) => Number.isFinite(Number(text)))) return undefined;
  const [min = "", ...others] = texts.sort(compare);
  return [min, others.at(-1) ?? min];
}

/** Of the types whose bounds are taken from here, by which of two comes first. */
const COMPARING: Readonly<Partial<Record<ColumnType["kind"], (a: string, b: string) => number>>> = {
  bool: compareBytes,
  int: (a, b) => Number(a) - Number(b),
  long: (a, b) => Number(BigInt(a) > BigInt(b)) - Number(BigInt(a) < BigInt(b)),
  real: (a, b) => Number(a) - Number(b),
  string: compareBytes,
};

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
