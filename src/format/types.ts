import { LIMITS } from "../core/limits.ts";

/**
 * The column types of the product, in one place: the names the specification gives them, and what each becomes in
 * Arrow (`tlm` extents) and in DuckDB.
 *
 * | type | Arrow | DuckDB | value |
 * |---|---|---|---|
 * | bool | Bool | BOOLEAN | |
 * | int | Int32 | INTEGER | exactly integral numbers only |
 * | long | Int64 | BIGINT | exact over the whole 64-bit range |
 * | real | Float64 | DOUBLE | |
 * | string | Utf8 | VARCHAR | any value; what is not a string is stored as its compact JSON text |
 * | timestamp | Timestamp(ns, UTC) | TIMESTAMP_NS | nanoseconds since the Unix epoch |
 * | dynamic | Utf8 | JSON | compact JSON text |
 * | vector(N) | FixedSizeList(N, Float32) | FLOAT[N] | never null in a row that was ingested with the column |
 */
export type ScalarTypeName = "bool" | "int" | "long" | "real" | "string" | "timestamp" | "dynamic";

export type ColumnType = { kind: ScalarTypeName } | { kind: "vector"; dimensions: number };

const SCALARS: ReadonlySet<string> = new Set<ScalarTypeName>([
  "bool",
  "int",
  "long",
  "real",
  "string",
  "timestamp",
  "dynamic",
]);
const VECTOR = /^vector\(\s*([1-9][0-9]{0,4})\s*\)$/;

/** Parses `bool`, `vector(3)`, …; undefined when it is no type of ours. */
export function parseColumnType(text: string): ColumnType | undefined {
  const trimmed = text.trim().toLowerCase();
  if (SCALARS.has(trimmed)) return { kind: trimmed as ScalarTypeName };
  const dimensions = Number(VECTOR.exec(trimmed)?.[1]);
  return dimensions >= 1 && dimensions <= LIMITS.vectorDimensions ? { kind: "vector", dimensions } : undefined;
}

export function formatColumnType(type: ColumnType): string {
  return type.kind === "vector" ? `vector(${type.dimensions})` : type.kind;
}

export function sameColumnType(a: ColumnType, b: ColumnType): boolean {
  return formatColumnType(a) === formatColumnType(b);
}

/** A column as the scanner, the extents and the query path need it. */
export type ColumnSpec = {
  name: string;
  type: ColumnType;
  /**
   * Its type was taken from data (`ndjson/infer-types.ts`): it takes only what it gives back exactly, where a declared
   * column rounds a number and reads a time with an offset.
   */
  inferred?: true;
};

/** Whose type a column has. */
export type ColumnOrigin = "declared" | "inferred";

export function originOf({ inferred }: ColumnSpec): ColumnOrigin {
  return inferred === true ? "inferred" : "declared";
}

/** The column alone, without what the catalog or anybody else knows of it besides. */
export function specOf({ name, type, inferred }: ColumnSpec): ColumnSpec {
  return inferred === true ? { name, type, inferred } : { name, type };
}

/** Every table has these two by default; `at` always. */
export const TIME_COLUMN = "at";
export const CATCH_ALL_COLUMN = "props";

/** Fields that the time is taken from where a row has no `at`, in this order. */
export const TIME_STAND_INS = ["timestamp", "_timestamp"] as const;

/** The shape of a table that is created without a schema (specification: Tables and columns). */
export const DEFAULT_SHAPE: readonly ColumnSpec[] = [
  { name: TIME_COLUMN, type: { kind: "timestamp" } },
  { name: "label", type: { kind: "string" } },
  { name: "body", type: { kind: "string" } },
  { name: CATCH_ALL_COLUMN, type: { kind: "dynamic" } },
];

/**
 * Statistics of one column of one extent. `min` and `max` order as the type orders: integers and timestamps as decimal
 * text (exact past 2^53), reals as JSON numbers, strings as at most 64 bytes of UTF-8 (the minimum cut down, the
 * maximum cut and rounded up so that it still bounds every value). Absent where the column has no value, or no order
 * (`dynamic`, `vector`), or where no such bound exists.
 *
 * `distinct` estimates how many different values there are (`columns/distinct.ts`), nulls not counted: from one to the
 * number of values, and exact up to a few hundred of them. Absent where the column has no value, or nobody counted.
 *
 * `misfits` is how many values were kept in `props` because they did not fit the column; absent where there are none.
 */
export type ColumnStats = {
  name: string;
  nullCount: number;
  distinct?: number;
  min?: string;
  max?: string;
  misfits?: number;
};

/** How an extent's bytes are encoded; recorded per extent so that old extents stay readable. */
export type ExtentFormat = "tlm" | "parquet";
export const FORMAT_VERSION: Readonly<Record<ExtentFormat, number>> = { tlm: 1, parquet: 2 };

/**
 * Parquet of version 1 has nanoseconds where version 2 has microseconds (`parquet-times.ts`), and may lack field ids.
 * It is still written where a column has no id yet when its rows are sealed.
 */
export const PARQUET_WITHOUT_IDS = 1;

/** Whether clients of open table formats can read the extent's file as it is: its columns by id, its times as they are. */
export function isPublishable({ format, formatVersion }: { format: ExtentFormat; formatVersion: number }): boolean {
  return format === "parquet" && formatVersion > PARQUET_WITHOUT_IDS;
}

/** Whether this program reads extents of that format: a newer one may have written them in a version of its own. */
export function isReadable({ format, formatVersion }: { format: ExtentFormat; formatVersion: number }): boolean {
  return formatVersion <= FORMAT_VERSION[format];
}

/** Metadata keys of `tlm` files: of the schema, and of each field. */
export const FORMAT_VERSION_KEY = "engine.format_version";
export const TYPE_KEY = "engine.type";
