import {
  DuckDBArrayType,
  DuckDBArrayValue,
  DuckDBBlobValue,
  DuckDBInstance,
  DuckDBListType,
  DuckDBListValue,
  DuckDBMapType,
  DuckDBMapValue,
  DuckDBStructType,
  DuckDBStructValue,
  DuckDBTimestampNanosecondsValue,
  DuckDBTimestampValue,
  DuckDBTypeId,
  type DuckDBConnection,
  type DuckDBType,
  type DuckDBValue,
} from "@duckdb/node-api";
import type { FixtureValue } from "../../../src/io/duckdb/tlm.test-kit.ts";
import { quoteIdentifier, sqlTypeOf } from "../../../src/io/duckdb/duckdb.ts";
import type { ColumnSpec } from "../../../src/format/types.ts";
import { parseExact, ExactNumber, type Exact } from "./compare.test-kit.ts";
import type { DataTable } from "./dataset.test-kit.ts";
import { textLiteral } from "./sql.test-kit.ts";

/** Plain DuckDB in this process, with the same rows in tables of its own: what the engine is held against. */
export type Oracle = { rows(sql: string): Promise<Map<string, Exact>[]>; close(): void };

/** What our engine does to instants, said in plain DuckDB. */
const MACROS = [
  `o_us(t) AS make_timestamp(CASE WHEN epoch_ns(t) >= 0 THEN epoch_ns(t) // 1000 ELSE -((999 - epoch_ns(t)) // 1000) END)`,
  `o_shift(t, i) AS make_timestamp_ns(epoch_ns(o_us(t) + i) + epoch_ns(t) - epoch_ns(o_us(t)))`,
  `o_trunc(part, t) AS CAST(date_trunc(part, o_us(t)) AS TIMESTAMP_NS)`,
  `o_bucket(w, t) AS CAST(time_bucket(w, o_us(t)) AS TIMESTAMP_NS)`,
  `o_wall(zone, t) AS timezone(zone, CAST(o_us(t) AS TIMESTAMPTZ))`,
];

/** The view that is the table as it was at a snapshot. */
export const travelName = (table: string, version: number): string => `${table}_at_${version}`;

export async function createOracle(tables: readonly DataTable[], newest: number): Promise<Oracle> {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  await connection.run("SET TimeZone = 'UTC'");
  await connection.run("SET threads = 1");
  for (const macro of MACROS) await connection.run(`CREATE MACRO ${macro}`);
  for (const table of tables) await load(connection, table, newest);
  return {
    async rows(sql) {
      const reader = await connection.runAndReadAll(sql);
      const names = reader.columnNames();
      const types = reader.columnTypes();
      return reader.getRows().map((row) => {
        return new Map(row.map((value, i) => [names[i] ?? "", exactOf(value, types[i])]));
      });
    },
    close() {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

async function load(
  connection: DuckDBConnection,
  { name, columns, versions }: DataTable,
  newest: number,
): Promise<void> {
  const shape = columns.map((column) => `${quoteIdentifier(column.name)} ${sqlTypeOf(column.type)}`);
  await connection.run(`CREATE TABLE _${name} (_version INTEGER, ${shape.join(", ")})`);
  for (const [i, version] of versions.entries()) {
    const existed = new Set(version.columns);
    const rows = version.rows.map((row) => {
      const values = columns.map((column) => literal(existed.has(column) ? row[column.name] : null, column));
      return `(${i + 1}, ${values.join(", ")})`;
    });
    await connection.run(`INSERT INTO _${name} VALUES ${rows.join(", ")}`);
  }
  const view = (title: string, version: number): string =>
    `CREATE VIEW ${title} AS SELECT * EXCLUDE (_version) FROM _${name} WHERE _version <= ${version}`;
  await connection.run(view(name, newest));
  for (let version = 0; version <= newest; version++) await connection.run(view(travelName(name, version), version));
}

function literal(value: FixtureValue | undefined, { type }: ColumnSpec): string {
  if (value === null || value === undefined) return "NULL";
  if (type.kind === "timestamp") return `make_timestamp_ns(${String(value)})`;
  if (typeof value === "string") return textLiteral(value);
  return Array.isArray(value) ? `[${value.join(", ")}]` : String(value);
}

/** The shortest digits that read back as the same number of the type. */
function digitsOf(value: number, type: DuckDBType | undefined): string {
  if (type?.typeId !== DuckDBTypeId.FLOAT) return String(value);
  const enough = [6, 7, 8, 9].find((digits) => Math.fround(Number(value.toPrecision(digits))) === value) ?? 9;
  return String(Number(value.toPrecision(enough)));
}

/** A DuckDB value as the JSON that it should become. */
function exactOf(value: DuckDBValue | undefined, type: DuckDBType | undefined): Exact {
  if (value === null || value === undefined) return null;
  if (typeof value === "boolean") return value;
  if (typeof value === "bigint") return new ExactNumber(String(value));
  if (typeof value === "number") return Number.isFinite(value) ? new ExactNumber(digitsOf(value, type)) : null;
  if (typeof value === "string") return type?.alias === "JSON" ? parseExact(value) : value;
  if (value instanceof DuckDBTimestampNanosecondsValue) return `${value.toString().replace(" ", "T")}Z`;
  if (value instanceof DuckDBTimestampValue) return value.toString().replace(" ", "T");
  if (value instanceof DuckDBBlobValue) return Buffer.from(value.bytes).toString("base64");
  if (value instanceof DuckDBListValue || value instanceof DuckDBArrayValue) {
    const item = type instanceof DuckDBListType || type instanceof DuckDBArrayType ? type.valueType : undefined;
    return value.items.map((one) => exactOf(one, item));
  }
  if (value instanceof DuckDBStructValue) {
    const types = type instanceof DuckDBStructType ? type.entryTypes : [];
    return new Map(Object.entries(value.entries).map(([key, one], i) => [key, exactOf(one, types[i])]));
  }
  if (value instanceof DuckDBMapValue) {
    const item = type instanceof DuckDBMapType ? type.valueType : undefined;
    return new Map(value.entries.map(({ key, value: one }) => [String(key), exactOf(one, item)]));
  }
  const text = String(value);
  return type?.toString().startsWith("DECIMAL") === true ? new ExactNumber(text) : text;
}
