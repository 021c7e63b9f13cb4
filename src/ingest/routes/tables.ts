import { checkMayUse } from "../../auth/caller.ts";
import type { TableRecord } from "../../catalog/catalog.ts";
import { isClusteredBy } from "../../catalog/cluster-columns.ts";
import { unpublishedTotals } from "../../catalog/publishable.ts";
import { EngineError } from "../../core/errors.ts";
import { checkName } from "../../core/names.ts";
import { DEFAULT_SHAPE } from "../../format/types.ts";
import { existingTable } from "../../auth/existing-table.ts";
import { columnsOf } from "../../server/schemas.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import type { IngestDeps } from "./deps.ts";
import { provisionedTable, tableDescription, tablePath, tableToProvision } from "./schemas.ts";

const ADMIN_PATH = "/v1/admin/databases/{database}/tables/{table}";

export const provisionTableRoute = defineRoute({
  method: "POST",
  path: ADMIN_PATH,
  role: "write",
  tag: "Tables",
  summary: "Create a table with the default shape, unless it exists",
  params: tablePath,
  json: tableToProvision,
  responses: [{ status: 200, description: "It exists.", type: "application/json", schema: provisionedTable }],
  errors: ["invalid_name", "conflict", "insufficient_storage"],
  handler:
    (deps: IngestDeps) =>
    async ({ params, json, caller }) => {
      checkMayUse(caller, params.database);
      const { cluster_by: clusterBy, open_lag_secs: openLagSecs } = json;
      const { table, created } = await deps.catalog.createTable({
        database: checkName("database", params.database),
        name: checkName("table", params.table),
        columns: DEFAULT_SHAPE,
        ...(clusterBy === undefined ? {} : { clusterBy }),
        ...(openLagSecs === undefined ? {} : { openLagSecs }),
      });
      if (clusterBy !== undefined && !isClusteredBy(table, clusterBy)) throw clusteredOtherwise(table);
      if (openLagSecs !== undefined && openLagSecs !== table.openLagSecs) throw publishedOtherwise(table);
      return jsonResponse(200, { created, ...describe(table) });
    },
});

export const describeTableRoute = defineRoute({
  method: "GET",
  path: ADMIN_PATH,
  role: "write",
  tag: "Tables",
  summary: "Columns and row count of a table",
  params: tablePath,
  responses: [{ status: 200, description: "As of now.", type: "application/json", schema: tableDescription }],
  errors: ["table_not_found"],
  handler:
    (deps: IngestDeps) =>
    async ({ params, caller }) => {
      const table = await existingTable(deps.catalog, caller, params.database, params.table);
      const [{ rows }, unpublished] = await Promise.all([
        deps.catalog.tableStats(table.id),
        unpublishedTotals(deps.catalog, table.id),
      ]);
      return jsonResponse(200, {
        ...describe(table),
        row_count: rows,
        unpublished_rows: unpublished.rows,
        unpublished_bytes: unpublished.sizeBytes,
      });
    },
});

function describe(table: TableRecord) {
  const { database, name, clusterBy, openLagSecs = null } = table;
  return { database, table: name, columns: columnsOf(table), cluster_by: clusterBy, open_lag_secs: openLagSecs };
}

function clusteredOtherwise({ database, name, clusterBy }: TableRecord): EngineError {
  return existsOtherwise(
    { database, name },
    clusterBy.length === 0 ? "is not clustered" : `is clustered by ${JSON.stringify(clusterBy)}`,
  );
}

function publishedOtherwise({ openLagSecs, ...named }: TableRecord): EngineError {
  return existsOtherwise(
    named,
    openLagSecs === undefined ? "has no open lag of its own" : `has an open lag of ${openLagSecs} s`,
  );
}

function existsOtherwise({ database, name }: Pick<TableRecord, "database" | "name">, how: string): EngineError {
  const message = `table ${JSON.stringify(`${database}.${name}`)} exists and ${how}; \`engine alter-table\` changes that`;
  return new EngineError("conflict", message);
}
