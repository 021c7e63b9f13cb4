import type { Connection } from "../../db/sqlite/connection.ts";
import { LEFT_OUT, NUMBERS, NUMBERS_COLUMNS, type TransferColumn, type TransferTable } from "../transfer/transfer.ts";

/** How a table of the common form is read from SQLite. */
export type SqliteTable = TransferTable & {
  /** SELECT with the columns in their order. */
  select: string;
};

/**
 * Extents that can still be read, and the live ones; the others are pending deletion, and their bytes may be gone. Those
 * of dropped tables and of deleted rows are left out as well: nobody may read them any more.
 */
const KEPT =
  "JOIN tables b ON b.id = e.table_id WHERE e.end_snapshot IS NULL OR (b.dropped_at_ms IS NULL AND " +
  "e.end_snapshot > max(b.oldest_snapshot, b.readable_from, (SELECT oldest_snapshot FROM meta)))";

/** What is not read as it lies there. */
const SPECIAL: Readonly<Record<string, Special>> = {
  extents: {
    omit: ["span_class"],
    add: ["column_ids", "stats"],
    expressions: { column_ids: "s.column_ids", stats: "s.stats" },
    from: `(SELECT e.* FROM extents e ${KEPT}) t JOIN extent_stats s ON s.seq = t.seq`,
  },
  extent_filters: { from: `extent_filters t JOIN (SELECT e.seq FROM extents e ${KEPT}) k ON k.seq = t.seq` },
  // Without the extents of deleted rows nothing before the deletion is whole.
  tables: { expressions: { oldest_snapshot: "max(t.oldest_snapshot, t.readable_from)" } },
};

type Special = { omit?: string[]; add?: string[]; expressions?: Record<string, string>; from?: string };

const NUMBERS_SELECT =
  "SELECT (SELECT max(id) FROM snapshots), m.oldest_snapshot, m.schema_generation, " +
  "(SELECT coalesce(max(seq), 0) FROM extents), " +
  "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'databases'), 0), " +
  "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'tables'), 0) FROM meta m";

/** The tables that travel, as this database has them. */
export function sqliteTables(connection: Connection): SqliteTable[] {
  const names = connection
    .all("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name")
    .map(({ name }) => String(name))
    .filter((name) => !Object.hasOwn(LEFT_OUT, name));
  const numbers = NUMBERS_COLUMNS.map((name) => ({ name, type: "int" }) as const);
  return [
    { name: NUMBERS, columns: numbers, select: NUMBERS_SELECT },
    ...names.map((name) => tableOf(connection, name)),
  ];
}

function tableOf(connection: Connection, name: string): SqliteTable {
  const { omit = [], add = [], expressions = {}, from = `${quoted(name)} t` } = SPECIAL[name] ?? {};
  const own = connection.all("SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid", name);
  const columns: TransferColumn[] = [
    ...own
      .filter((column) => !omit.includes(String(column["name"])))
      .map((column) => ({ name: String(column["name"]), type: typeOf(name, String(column["type"])) })),
    ...add.map((added) => ({ name: added, type: "text" }) as const),
  ];
  const key = own.filter(({ pk }) => Number(pk) > 0).toSorted((a, b) => Number(a["pk"]) - Number(b["pk"]));
  const order = key.length === 0 ? "t.rowid" : key.map((column) => `t.${quoted(String(column["name"]))}`).join(", ");
  const selected = columns.map((column) => expressions[column.name] ?? `t.${quoted(column.name)}`).join(", ");
  return { name, columns, select: `SELECT ${selected} FROM ${from} ORDER BY ${order}` };
}

function typeOf(table: string, declared: string): TransferColumn["type"] {
  const type = declared.toLowerCase();
  if (type === "integer" || type === "bigint" || type === "int") return "int";
  if (type === "text" || type === "blob") return type;
  throw new Error(`table ${table} has a column of the type ${declared}, of which no backup can be made`);
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
