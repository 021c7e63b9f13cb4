import type { Connection, Row } from "../../db/postgres/connection.ts";
import { LEFT_OUT, NUMBERS, NUMBERS_COLUMNS, type TransferColumn, type TransferTable } from "../transfer/transfer.ts";

/** How a table of the common form is read from PostgreSQL, and written to it. */
export type PostgresTable = TransferTable & {
  /** SELECT with the columns in their order. */
  select: string;
  /** What PostgreSQL calls the types of the columns. */
  types: readonly string[];
};

/** As in SQLite: see `sqlite/transfer-layout.ts`. */
const KEPT =
  "JOIN engine.tables b ON b.id = e.table_id WHERE e.end_snapshot IS NULL OR (b.dropped_at_ms IS NULL AND " +
  "e.end_snapshot > greatest(b.oldest_snapshot, b.readable_from, (SELECT oldest_snapshot FROM engine.horizon)))";

type Special = {
  /** Columns that the other database does without; a load computes them. */
  omit?: string[];
  add?: string[];
  expressions?: Record<string, string>;
  from?: string;
};

const SPECIAL: Readonly<Record<string, Special>> = {
  extents: {
    add: ["stats"],
    expressions: { stats: "s.stats" },
    from: `(SELECT e.* FROM engine.extents e ${KEPT}) t JOIN engine.extent_stats s ON s.seq = t.seq`,
  },
  extent_filters: {
    from: `engine.extent_filters t JOIN (SELECT e.seq FROM engine.extents e ${KEPT}) k ON k.seq = t.seq`,
  },
  tables: { expressions: { oldest_snapshot: "greatest(t.oldest_snapshot, t.readable_from)" } },
  table_totals: { omit: ["forgotten_extents"] },
  ledger: { omit: ["key_hash"] },
  staged: { omit: ["id_hash"] },
};

const lastOf = (sequence: string): string =>
  `(SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM engine.${sequence})`;

const NUMBERS_SELECT =
  "SELECT h.snapshot_id, (SELECT oldest_snapshot FROM engine.horizon), h.schema_generation, h.last_seq, " +
  `${lastOf("databases_id_seq")}, ${lastOf("tables_id_seq")} FROM engine.head h`;

const COLUMNS =
  "SELECT c.relname AS table_name, a.attname AS column_name, format_type(a.atttypid, NULL) AS type_name, " +
  "array_position(i.indkey::int2[], a.attnum) AS key_position FROM pg_catalog.pg_class c " +
  "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace " +
  "JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped " +
  "LEFT JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisprimary " +
  "WHERE n.nspname = 'engine' AND c.relkind = 'r' ORDER BY c.relname, a.attnum";

/** The tables that travel, as this database has them. */
export async function postgresTables(connection: Connection): Promise<PostgresTable[]> {
  const byTable = Map.groupBy(await connection.query(COLUMNS), (row) => String(row["table_name"]));
  const numbers = NUMBERS_COLUMNS.map((name) => ({ name, type: "int" }) as const);
  const travelling = [...byTable].filter(([name]) => !Object.hasOwn(LEFT_OUT, name));
  return [
    { name: NUMBERS, columns: numbers, select: NUMBERS_SELECT, types: numbers.map(() => "bigint") },
    ...travelling.map(([name, columns]) => tableOf(name, columns)),
  ];
}

function tableOf(name: string, rows: readonly Row[]): PostgresTable {
  const { omit = [], add = [], expressions = {}, from = `engine.${quoted(name)} t` } = SPECIAL[name] ?? {};
  const own = rows.map((row) => ({
    name: String(row["column_name"]),
    type: String(row["type_name"]),
    key: row["key_position"] === null ? undefined : Number(row["key_position"]),
  }));
  const kept = [
    ...own.filter((column) => !omit.includes(column.name)),
    ...add.map((added) => ({ name: added, type: "text", key: undefined })),
  ];
  const key = own.filter((column) => column.key !== undefined).toSorted((a, b) => Number(a.key) - Number(b.key));
  if (key.length === 0) throw new Error(`table ${name} has no primary key, so no backup can be made of it`);
  const selected = kept.map((column) => readAs(column.type, expressions[column.name] ?? `t.${quoted(column.name)}`));
  const order = key.map((column) => `t.${quoted(column.name)}`).join(", ");
  return {
    name,
    columns: kept.map((column) => ({ name: column.name, type: typeOf(name, column.type) })),
    select: `SELECT ${selected.join(", ")} FROM ${from} ORDER BY ${order}`,
    types: kept.map(({ type }) => type),
  };
}

function readAs(type: string, expression: string): string {
  if (type === "boolean") return `(${expression})::integer`;
  // Lines of base64 are broken after 76 characters.
  if (type === "bytea") return `replace(encode(${expression}, 'base64'), E'\\n', '')`;
  return expression;
}

const TYPES: Readonly<Record<string, TransferColumn["type"]>> = {
  bigint: "int",
  integer: "int",
  numeric: "int",
  boolean: "int",
  text: "text",
  bytea: "blob",
};

function typeOf(table: string, type: string): TransferColumn["type"] {
  const found = TYPES[type];
  if (found === undefined)
    throw new Error(`table ${table} has a column of the type ${type}, of which no backup can be made`);
  return found;
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
