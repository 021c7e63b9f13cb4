import type { ColumnRecord, TableRecord } from "../../catalog/catalog.ts";
import { columnAt } from "../../catalog/widening.ts";
import type { ColumnType } from "../../format/types.ts";
import { ITEM_IDS } from "../../format/parquet-ids.ts";

/** Tables as Iceberg sees them: https://iceberg.apache.org/spec/#schemas-and-data-types. */
export type IcebergSchema = { type: "struct"; "schema-id": number; fields: readonly IcebergField[] };
export type IcebergField = { id: number; name: string; required: false; type: IcebergType };
export type IcebergType =
  | "boolean"
  | "int"
  | "long"
  | "double"
  | "string"
  | "timestamptz"
  | { type: "list"; "element-id": number; element: "float"; "element-required": false };

/** What of a table its schemas are made of. */
export type Columns = Pick<TableRecord, "columns">;

/**
 * The id of the schema that a table had at a snapshot: it counts the snapshots up to that one that changed its columns, so
 * everybody who knows the columns gives it the same one.
 */
export function schemaIdAt({ columns }: Columns, snapshot: number): number {
  const changes = new Set(columns.flatMap(({ sinceSnapshot, widened }) => [sinceSnapshot, widened?.snapshot]));
  return [...changes].filter((change) => change !== undefined && change <= snapshot).length;
}

/** The columns that a table had at a snapshot, by their ids, which are the field ids of its files. None is required. */
export function schemaAt(table: Columns, snapshot: number): IcebergSchema {
  const columns = columnsAt(table, snapshot);
  return { type: "struct", "schema-id": schemaIdAt(table, snapshot), fields: columns.map(fieldOf) };
}

export function columnsAt({ columns }: Columns, snapshot: number): ColumnRecord[] {
  return columns
    .filter(({ sinceSnapshot }) => sinceSnapshot === undefined || sinceSnapshot <= snapshot)
    .map((column) => columnAt(column, snapshot));
}

function fieldOf({ id, name, type }: ColumnRecord): IcebergField {
  return { id, name, required: false, type: typeOf(type, id) };
}

function typeOf(type: ColumnType, id: number): IcebergType {
  switch (type.kind) {
    case "bool":
      return "boolean";
    case "real":
      return "double";
    case "timestamp":
      return "timestamptz";
    case "dynamic":
      return "string";
    case "vector":
      return { type: "list", "element-id": ITEM_IDS + id, element: "float", "element-required": false };
    case "int":
    case "long":
    case "string":
      return type.kind;
  }
}
