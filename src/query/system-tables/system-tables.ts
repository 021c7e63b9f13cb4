import { foldName } from "../../core/names.ts";
import type { ColumnSpec, ScalarTypeName } from "../../format/types.ts";
import type { SystemTable } from "../../feature/system-table.ts";
import { quoteIdentifier, quoteText } from "../../io/duckdb/duckdb.ts";
import { INFORMATION_SCHEMA, INFORMATION_TABLES, type InformationTableName } from "./information-schema.ts";

/**
 * The schema `system`: what the engine knows about the caller's own database, as tables of every query. No database
 * and no table can be called `system` (`names.ts`), so `system.tables` never means anything else; a table of the
 * user's that is called `tables` stays theirs, since these are only ever reached by the name with `system.` before it. Beside it is `information_schema`, of all databases that the caller may read.
 *
 * | table | one row per |
 * |---|---|
 * | tables | table, with its rows, extents and bytes at the head |
 * | columns | column |
 * | extents | extent that is alive at the head |
 * | column_stats | column, with what the statistics of the extents that are alive at the head say of it |
 * | snapshots | snapshot and table that it changed, of the newest `MAX_SNAPSHOTS` that can still be read; numbers are the whole catalog's, so one that changed no table of the database has a row without a table |
 * | queries | query of this node, the newest `QUERY_LOG_RECORDS`, those that run now included |
 * | sandbox_events | event of a sandbox, of any database: of the caller's own sandboxes, for admins of all |
 * | staged | staged write that is not committed, of all databases: the first `MAX_STAGED` that the store lists |
 *
 * Features add tables of their own: see `SystemTable`.
 *
 * A query process never reaches the catalog: the server writes the rows of the tables that a query names as CSV into
 * the process's folder (`rows.ts`), and the process reads them through a view. Not as JSON, because DuckDB's
 * reader of that takes 32 MiB per thread, which is more than a small query may have.
 */
export const SYSTEM_SCHEMA = "system";

/** The view of a system table in a query's database. */
export const systemView = (name: SystemTableName): string => `engine_${name.replace(".", "_")}`;

const column = (name: string, kind: ScalarTypeName): ColumnSpec => ({ name, type: { kind } });
const longs = (...names: string[]): ColumnSpec[] => names.map((name) => column(name, "long"));
const texts = (...names: string[]): ColumnSpec[] => names.map((name) => column(name, "string"));
const reals = (...names: string[]): ColumnSpec[] => names.map((name) => column(name, "real"));
const times = (...names: string[]): ColumnSpec[] => names.map((name) => column(name, "timestamp"));

const OWN_TABLES = {
  "system.tables": [
    ...texts("name"),
    ...longs("columns", "rows", "extents", "bytes", "schema_version"),
    // Days that rows are kept; NULL for ever.
    ...longs("retention_days"),
    // Names as a JSON array; NULL without.
    ...texts("cluster_by"),
    // Whether new columns get types by their values; NULL where the configuration says.
    column("infer_types", "bool"),
    // Seconds after which rows are published for other programs; NULL where the configuration says.
    ...longs("open_lag_secs"),
  ],
  // The origin is `inferred` where the type was taken from values, else `declared`; misfits are values that did not fit
  // the column and were kept in `props`, in extents that are alive.
  "system.columns": [
    ...texts("table_name"),
    ...longs("position"),
    ...texts("name", "type", "origin"),
    ...longs("misfits"),
  ],
  "system.extents": [
    ...texts("table_name", "id", "format"),
    ...longs("rows", "bytes"),
    ...times("min_at", "max_at"),
    ...longs("begin_snapshot", "schema_version"),
    ...texts("checksum"),
    ...longs("format_version"),
    // Whether other programs can read the file as it is: see `isPublished`.
    column("is_publishable", "bool"),
  ],
  // Extents that have the column, values that are there and NULLs of all extents; bounds as text, NULL where one is not
  // known of all values.
  "system.column_stats": [
    ...texts("table_name", "name", "type"),
    ...longs("extents", "values", "nulls"),
    ...texts("min", "max"),
  ],
  // `operation`: append, replace (a merge), overwrite (rows were deleted), delete. NULLs from `table_name` on where the
  // snapshot changed no rows of the database's tables.
  "system.snapshots": [
    ...longs("id"),
    ...times("committed_at"),
    ...texts("table_name", "operation"),
    ...longs("rows_added", "rows_removed", "extents_added", "extents_removed"),
  ],
  "system.queries": [
    ...texts("request_id", "database"),
    ...times("started_at"),
    // `running`, `ok`, or the code of the error.
    ...texts("text", "language", "outcome"),
    ...longs("rows", "result_bytes", "extents_total", "extents_pruned", "extents_read", "rows_read", "bytes_read"),
    ...longs("cache_hits", "spill_bytes"),
    ...reals("cpu_ms", "total_ms", "queue_ms", "translate_ms", "parse_ms", "plan_ms", "fetch_ms", "scan_ms"),
    ...reals("stream_ms"),
    // As clients name it, and the routes about running queries.
    ...texts("query_id"),
    ...longs("memory_bytes"),
    // Who ended it by that id.
    ...texts("ended_by"),
  ],
  "system.staged": [
    // `pending` or `damaged`.
    ...texts("state", "node", "id", "key"),
    ...longs("size_bytes"),
    ...times("staged_at"),
    // Why it was set aside; NULL while it is pending.
    ...texts("reason"),
  ],
  "system.sandbox_events": [
    ...times("at"),
    ...texts("sandbox_id"),
    // Its number among the events of the sandbox.
    ...longs("seq"),
    // Whose sandbox it is.
    ...texts("tenant", "event_type", "session_id"),
    // A JSON object.
    ...texts("data"),
  ],
} as const satisfies Record<string, readonly ColumnSpec[]>;

/** A table of this folder. */
export type OwnTableName = keyof typeof OWN_TABLES | InformationTableName;

export type SystemTableName = OwnTableName | `system.${string}`;

export const SYSTEM_TABLES: Readonly<Record<OwnTableName, readonly ColumnSpec[]>> = {
  ...OWN_TABLES,
  ...INFORMATION_TABLES,
};

/** A table of a feature, as a query process knows it. */
export type DeclaredTable = Pick<SystemTable, "name" | "columns">;

export function fullNameOf({ name }: Pick<SystemTable, "name">): SystemTableName {
  return `${SYSTEM_SCHEMA}.${name}`;
}

/** Throws for a name that no table can have, or that is taken, and for a type of column that no such table has. */
export function checkDeclared(tables: readonly DeclaredTable[]): void {
  const taken = new Set<string>(Object.keys(SYSTEM_TABLES));
  for (const table of tables) {
    const name = fullNameOf(table);
    if (!/^system\.[a-z][a-z0-9_]*$/.test(name)) throw new Error(`no system table can be called ${name}`);
    if (taken.has(name)) throw new Error(`two system tables are called ${name}`);
    for (const { type } of table.columns) fileTypeOf(type.kind);
    taken.add(name);
  }
}

/** The tables of features: all of them, with those of this folder, are what a query may name in this process. */
const declared = new Map<string, readonly ColumnSpec[]>();

/** A query process declares what the server has told it, once and before its first query. */
export function declareSystemTables(tables: readonly DeclaredTable[]): void {
  for (const table of tables) declared.set(fullNameOf(table), table.columns);
}

/** The columns of a table of this folder, or of one that was declared. */
export function columnsOf(name: SystemTableName): readonly ColumnSpec[] {
  const columns = declared.get(name) ?? SYSTEM_TABLES[name as OwnTableName];
  if (columns === undefined) throw new Error(`there is no system table ${name}`);
  return columns;
}

function allNames(): readonly SystemTableName[] {
  return [...Object.keys(SYSTEM_TABLES), ...declared.keys()] as SystemTableName[];
}

/** Rows of one system table, on this machine. */
export type SystemTableFile = { name: SystemTableName; path: string };

const SCHEMAS: ReadonlySet<string> = new Set([SYSTEM_SCHEMA, INFORMATION_SCHEMA]);

/** Whether the name (any case) is one of a schema of ours, and never a database's. */
export function isSystemSchema(name: string): boolean {
  return SCHEMAS.has(foldName(name));
}

/** The system table of that name (any case). */
export function systemTableNamed(schema: string, name: string): SystemTableName | undefined {
  const folded = `${foldName(schema)}.${foldName(name)}`;
  return allNames().find((known) => known === folded);
}

/** The names of the tables that such a schema has. */
export function tablesOfSchema(schema: string): string[] {
  const prefix = `${foldName(schema)}.`;
  return allNames()
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length));
}

/** What stands for NULL in a file; text is always quoted, and never is this. */
export const NULL_MARK = "\\N";

/** Well above the longest line, which has the text of a query, or the data of an event. */
const MAX_LINE_BYTES = 256 * 1024;

const CSV_OPTIONS = Object.entries({
  auto_detect: "false",
  header: "false",
  delim: "','",
  quote: "'\"'",
  escape: "'\"'",
  nullstr: quoteText(NULL_MARK),
  allow_quoted_nulls: "false",
  // Text has line breaks in it.
  parallel: "false",
  max_line_size: String(MAX_LINE_BYTES),
  buffer_size: String(4 * MAX_LINE_BYTES),
})
  .map(([option, value]) => `${option} = ${value}`)
  .join(", ");

/** Nanoseconds travel as integers, so that nothing reads times from text. */
const FILE_TYPES: Partial<Record<ScalarTypeName, string>> = {
  bool: "BOOLEAN",
  int: "INTEGER",
  long: "BIGINT",
  real: "DOUBLE",
  string: "VARCHAR",
  timestamp: "BIGINT",
};

function fileTypeOf(kind: string): string {
  const fileType = FILE_TYPES[kind as ScalarTypeName];
  if (fileType === undefined) throw new Error(`system tables have no column of type ${kind}`);
  return fileType;
}

/**
 * Columns that a table has only for a query that names one: the name of Trino's, which its SQLAlchemy dialect reads,
 * over the column of DuckDB's that holds the same. `*` and DESCRIBE show DuckDB's columns.
 */
const HIDDEN_COLUMNS: Partial<Record<string, Readonly<Record<string, string>>>> = {
  "information_schema.columns": { comment: "COLUMN_COMMENT" },
};

/**
 * The statements that make the tables visible to a query that names columns of these names, in folded form. One without
 * a file has no rows.
 */
export function systemViews(
  files: readonly (SystemTableFile | SystemTableName)[],
  named: ReadonlySet<string>,
): string[] {
  return files.map((file) => {
    const name = typeof file === "string" ? file : file.name;
    const columns = columnsOf(name);
    const types = columns.map(({ name: own, type }) => {
      return `${quoteIdentifier(own)}: ${quoteText(fileTypeOf(type.kind))}`;
    });
    const items = columns.map(({ name: own, type }) =>
      type.kind === "timestamp"
        ? `make_timestamp_ns(${quoteIdentifier(own)}) AS ${quoteIdentifier(own)}`
        : quoteIdentifier(own),
    );
    for (const [hidden, own] of Object.entries(HIDDEN_COLUMNS[name] ?? {})) {
      if (named.has(hidden)) items.push(`${quoteIdentifier(own)} AS ${quoteIdentifier(hidden)}`);
    }
    const rows =
      typeof file === "string"
        ? noRows(columns)
        : `read_csv(${quoteText(file.path)}, ${CSV_OPTIONS}, columns = {${types.join(", ")}})`;
    return `CREATE TEMP VIEW ${systemView(name)} AS SELECT ${items.join(", ")}
      FROM ${rows}`;
  });
}

function noRows(columns: readonly ColumnSpec[]): string {
  const items = columns.map(({ name, type }) => `CAST(NULL AS ${fileTypeOf(type.kind)}) AS ${quoteIdentifier(name)}`);
  return `(SELECT ${items.join(", ")} WHERE false)`;
}
