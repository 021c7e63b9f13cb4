import { formatColumnType, type ColumnType } from "../../format/types.ts";
import { quoteIdentifier, type DuckDb, type LogicalType } from "./duckdb.ts";

type TypeName = keyof DuckDb["Type"];

/** The types of tables' columns, as DuckDB has them (`sqlTypeOf`). */
const OWN: Partial<Record<TypeName, Exclude<ColumnType["kind"], "vector">>> = {
  BOOLEAN: "bool",
  INTEGER: "int",
  BIGINT: "long",
  DOUBLE: "real",
  VARCHAR: "string",
  TIMESTAMP_NS: "timestamp",
};

/** Where SQL spells a type otherwise than the bindings do. */
const SPELLED: Partial<Record<TypeName, string>> = {
  SQLNULL: "NULL",
  TIMESTAMP_TZ: "TIMESTAMP WITH TIME ZONE",
  TIME_TZ: "TIME WITH TIME ZONE",
};

const MADE_OF_OTHERS: Partial<Record<TypeName, (duckdb: DuckDb, type: LogicalType) => string>> = {
  DECIMAL: (duckdb, type) => `DECIMAL(${duckdb.decimal_width(type)},${duckdb.decimal_scale(type)})`,
  LIST: (duckdb, type) => `${sqlText(duckdb, duckdb.list_type_child_type(type))}[]`,
  ARRAY: (duckdb, type) =>
    `${sqlText(duckdb, duckdb.array_type_child_type(type))}[${duckdb.array_type_array_size(type)}]`,
  MAP: (duckdb, type) => {
    const [key, value] = [duckdb.map_type_key_type(type), duckdb.map_type_value_type(type)];
    return `MAP(${sqlText(duckdb, key)}, ${sqlText(duckdb, value)})`;
  },
  STRUCT: (duckdb, type) => `STRUCT(${fieldsOf(duckdb, type).join(", ")})`,
};

/** A struct may have thousands of fields; then its kind alone is told. */
const MAX_CHARS = 1_000;

/**
 * How the type of a result's column is told to clients. In lower case it is one of the product's own, as tables have
 * them: `int`, `timestamp`, `dynamic`, `vector(768)`; a column straight from a table has the table's type. What only a
 * computed column can have is spelled as DuckDB's SQL does: `DATE`, `DECIMAL(18,3)`, `VARCHAR[]`.
 */
export function resultType(duckdb: DuckDb, type: LogicalType): string {
  const name = nameOf(duckdb, type);
  if (isJson(duckdb, type)) return "dynamic";
  const own = OWN[name];
  if (own !== undefined) return own;
  if (name === "ARRAY" && nameOf(duckdb, duckdb.array_type_child_type(type)) === "FLOAT") {
    return formatColumnType({ kind: "vector", dimensions: duckdb.array_type_array_size(type) });
  }
  const text = sqlText(duckdb, type);
  return text.length > MAX_CHARS ? name : text;
}

function nameOf(duckdb: DuckDb, type: LogicalType): TypeName {
  return duckdb.Type[duckdb.get_type_id(type)] as TypeName;
}

/** DuckDB knows its JSON type by this alias alone. */
function isJson(duckdb: DuckDb, type: LogicalType): boolean {
  return nameOf(duckdb, type) === "VARCHAR" && duckdb.logical_type_get_alias(type) === "JSON";
}

function sqlText(duckdb: DuckDb, type: LogicalType): string {
  const name = nameOf(duckdb, type);
  if (isJson(duckdb, type)) return "JSON";
  return MADE_OF_OTHERS[name]?.(duckdb, type) ?? SPELLED[name] ?? name;
}

function fieldsOf(duckdb: DuckDb, type: LogicalType): string[] {
  return Array.from({ length: duckdb.struct_type_child_count(type) }, (_, i) => {
    const name = duckdb.struct_type_child_name(type, i);
    const text = sqlText(duckdb, duckdb.struct_type_child_type(type, i));
    if (name === "") return text;
    return `${/^[a-z_][a-z0-9_]*$/i.test(name) ? name : quoteIdentifier(name)} ${text}`;
  });
}
