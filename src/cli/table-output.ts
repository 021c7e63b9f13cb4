import type { TableRecord } from "../catalog/catalog.ts";
import { formatColumnType } from "../format/types.ts";
import { visible } from "./text.ts";

/** A table as the commands print it in JSON. */
export function tableJson(table: TableRecord) {
  return {
    database: table.database,
    table: table.name,
    columns: table.columns.map(({ name, type }) => ({ name, type: formatColumnType(type) })),
    retention_days: table.retentionDays ?? null,
  };
}

/** Columns as `--schema` reads them. */
export function columnsText(table: TableRecord): string {
  return table.columns
    .map(({ name, type }) => {
      const bare = /^[^\s",:]+$/.test(name);
      return `${visible(bare ? name : `"${name.replaceAll('"', '""')}"`)}:${formatColumnType(type)}`;
    })
    .join(", ");
}
