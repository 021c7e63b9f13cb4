import { quoteIdentifier, quoteText, sqlTypeOf } from "../io/duckdb/duckdb.ts";
import { TLM_SCAN, type TlmScans } from "../io/duckdb/tlm-scan.ts";
import type { ColumnSpec, ColumnType } from "../format/types.ts";
import type { LocalExtent, ResolvedTable } from "./protocol.ts";

/** The SELECT that yields a table's rows from exactly the given extents, its columns in order and of their types. */
export function tableQuery(table: ResolvedTable, scans: TlmScans): string {
  const { columns } = table;
  const parts = [
    tlmPart(
      columns,
      table.extents.filter((extent) => extent.format === "tlm"),
      scans,
    ),
    parquetPart(
      columns,
      table.extents.filter((extent) => extent.format === "parquet"),
    ),
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? emptyPart(columns, sqlTypeOf) : parts.join(" UNION ALL ");
}

function tlmPart(columns: readonly ColumnSpec[], extents: readonly LocalExtent[], scans: TlmScans): string | undefined {
  if (extents.length === 0) return undefined;
  const rows = extents.reduce((total, extent) => total + extent.rows, 0);
  const scan = scans.add({ columns, sources: extents.map(({ path }) => ({ path })), rows });
  return `SELECT ${columns.map((column) => quoteIdentifier(column.name)).join(", ")} FROM ${TLM_SCAN}(${scan})`;
}

/** Columns that no file has come from the empty first branch, as NULL. */
function parquetPart(columns: readonly ColumnSpec[], extents: readonly LocalExtent[]): string | undefined {
  if (extents.length === 0) return undefined;
  const files = extents.map(({ path }) => quoteText(path)).join(", ");
  // Parquet has no fixed-size list, so a vector comes back as a list of unknown length.
  const items = columns.map((column) => {
    const name = quoteIdentifier(column.name);
    return column.type.kind === "vector" ? `CAST(${name} AS ${sqlTypeOf(column.type)}) AS ${name}` : name;
  });
  return `SELECT ${items.join(", ")} FROM (${emptyPart(columns, parquetTypeOf)} UNION ALL BY NAME
    SELECT * FROM read_parquet([${files}], union_by_name = true))`;
}

function parquetTypeOf(type: ColumnType): string {
  return type.kind === "vector" ? "FLOAT[]" : sqlTypeOf(type);
}

function emptyPart(columns: readonly ColumnSpec[], typeOf: (type: ColumnType) => string): string {
  const items = columns.map(({ name, type }) => `CAST(NULL AS ${typeOf(type)}) AS ${quoteIdentifier(name)}`);
  return `SELECT ${items.join(", ")} WHERE false`;
}
