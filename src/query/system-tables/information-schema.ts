import type { ColumnSpec, ColumnType, ScalarTypeName } from "../../format/types.ts";
import type { TableRecord } from "../../catalog/catalog.ts";
import { sqlTypeOf } from "../../io/duckdb/duckdb.ts";
import type { SystemRow } from "../../feature/system-table.ts";

/**
 * The SQL standard's description of what there is, which tools ask for it: the databases that the caller may read as
 * schemas of one catalog, their tables, and the columns of those. Names, order and types of the columns are DuckDB's;
 * what has no meaning here is NULL.
 */
export const INFORMATION_SCHEMA = "information_schema";

/** The catalog that all databases are schemas of, as in `engine.default.logs`. */
export const CATALOG_NAME = "engine";

const column = (name: string, kind: ScalarTypeName): ColumnSpec => ({ name, type: { kind } });
const texts = (...names: string[]): ColumnSpec[] => names.map((name) => column(name, "string"));
const ints = (...names: string[]): ColumnSpec[] => names.map((name) => column(name, "int"));
const bools = (...names: string[]): ColumnSpec[] => names.map((name) => column(name, "bool"));

export const INFORMATION_TABLES = {
  "information_schema.schemata": [
    ...texts("catalog_name", "schema_name", "schema_owner"),
    ...texts("default_character_set_catalog", "default_character_set_schema", "default_character_set_name", "sql_path"),
  ],
  "information_schema.tables": [
    ...texts("table_catalog", "table_schema", "table_name", "table_type"),
    ...texts("self_referencing_column_name", "reference_generation"),
    ...texts("user_defined_type_catalog", "user_defined_type_schema", "user_defined_type_name"),
    ...texts("is_insertable_into", "is_typed", "commit_action", "TABLE_COMMENT"),
  ],
  "information_schema.columns": [
    ...texts("table_catalog", "table_schema", "table_name", "column_name"),
    ...ints("ordinal_position"),
    ...texts("column_default", "is_nullable", "data_type"),
    ...ints("character_maximum_length", "character_octet_length"),
    ...ints("numeric_precision", "numeric_precision_radix", "numeric_scale", "datetime_precision"),
    ...texts("interval_type"),
    ...ints("interval_precision"),
    ...texts("character_set_catalog", "character_set_schema", "character_set_name"),
    ...texts("collation_catalog", "collation_schema", "collation_name"),
    ...texts("domain_catalog", "domain_schema", "domain_name", "udt_catalog", "udt_schema", "udt_name"),
    ...texts("scope_catalog", "scope_schema", "scope_name"),
    column("maximum_cardinality", "long"),
    ...texts("dtd_identifier"),
    ...bools("is_self_referencing", "is_identity"),
    ...texts("identity_generation", "identity_start", "identity_increment", "identity_maximum", "identity_minimum"),
    ...bools("identity_cycle"),
    ...texts("is_generated", "generation_expression"),
    ...bools("is_updatable"),
    ...texts("COLUMN_COMMENT"),
  ],
} as const satisfies Record<string, readonly ColumnSpec[]>;

export type InformationTableName = keyof typeof INFORMATION_TABLES;

/** The rows of each, for databases and tables that the caller may read. */
export function schemaRow(database: string): SystemRow {
  return { catalog_name: CATALOG_NAME, schema_name: database, schema_owner: CATALOG_NAME };
}

export function tableRow({ database, name }: TableRecord): SystemRow {
  // A query only reads.
  const told = { table_type: "BASE TABLE", is_insertable_into: "NO", is_typed: "NO" };
  return { table_catalog: CATALOG_NAME, table_schema: database, table_name: name, ...told };
}

export function* columnRows({ database, name: table, columns }: TableRecord): Generator<SystemRow> {
  for (const [i, { name, type }] of columns.entries()) {
    yield {
      table_catalog: CATALOG_NAME,
      table_schema: database,
      table_name: table,
      column_name: name,
      ordinal_position: i + 1,
      // A vector is never NULL; every other field may be left out of a row.
      is_nullable: type.kind === "vector" ? "NO" : "YES",
      data_type: sqlTypeOf(type),
      ...numberOf(type),
    };
  }
}

const PRECISION: Partial<Record<ColumnType["kind"], number>> = { int: 32, long: 64, real: 53 };

function numberOf({ kind }: ColumnType): SystemRow {
  const numeric_precision = PRECISION[kind];
  return numeric_precision === undefined ? {} : { numeric_precision, numeric_precision_radix: 2, numeric_scale: 0 };
}
