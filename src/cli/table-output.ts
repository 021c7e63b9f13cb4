import type { TableRecord } from "../catalog/catalog.ts";
import { formatColumnType } from "../format/types.ts";
import { visible } from "../client/text.ts";

/** A table as the commands print it in JSON. */
export function tableJson(table: TableRecord) {
  return {
    database: table.database,
    table: table.name,
    columns: table.columns.map(({ name, type }) => ({ name, type: formatColumnType(type) })),
    retention_days: table.retentionDays ?? null,
    cluster_by: table.clusterBy,
    infer_types: table.inferTypes ?? null,
    open_lag_secs: table.openLagSecs ?? null,
  };
}

/** Columns as `--schema` reads them. */
export function columnsText(table: TableRecord): string {
  return table.columns.map(({ name, type }) => `${nameText(name)}:${formatColumnType(type)}`).join(", ");
}

/** A column's name as flags read it: in double quotes unless it is plain. */
export function nameText(name: string): string {
  const bare = /^[^\s",:]+$/.test(name);
  return visible(bare ? name : `"${name.replaceAll('"', '""')}"`);
}
