import { z } from "zod";

import { checkMayUse, type Caller } from "../../auth/caller.ts";
import type { Catalog, TableRecord } from "../../catalog/catalog.ts";
import { isClusteredBy } from "../../catalog/cluster-columns.ts";
import { cleanup } from "../../compaction/cleanup.ts";
import { EngineError } from "../../core/errors.ts";
import { checkName } from "../../core/names.ts";
import { rfc3339ToNs } from "../../format/time-text.ts";
import { DEFAULT_SHAPE, formatColumnType } from "../../format/types.ts";
import { defineRoute, describeRoute, jsonResponse, type Route } from "../route.ts";
import type { IngestDeps } from "./deps.ts";
import { cleanupResult, provisionedTable, tableDescription, tablePath, tableToProvision } from "./schemas.ts";

const ADMIN_PATH = "/v1/admin/databases/{database}/tables/{table}";

export const provisionTableRow = describeRoute({
  method: "POST",
  path: ADMIN_PATH,
  role: "write",
  tag: "Tables",
  summary: "Create a table with the default shape, unless it exists",
  params: tablePath,
  json: tableToProvision,
  responses: [{ status: 200, description: "It exists.", type: "application/json", schema: provisionedTable }],
  errors: ["invalid_name", "conflict", "insufficient_storage"],
});

export function provisionTableRoute(deps: IngestDeps): Route {
  return defineRoute({
    ...provisionTableRow,
    handle: async ({ params, json, caller }) => {
      checkMayUse(caller, params.database);
      const clusterBy = json.cluster_by;
      const { table, created } = await deps.catalog.createTable({
        database: checkName("database", params.database),
        name: checkName("table", params.table),
        columns: DEFAULT_SHAPE,
        ...(clusterBy === undefined ? {} : { clusterBy }),
      });
      if (clusterBy !== undefined && !isClusteredBy(table, clusterBy)) throw clusteredOtherwise(table);
      return jsonResponse(200, { created, ...describe(table) });
    },
  });
}

export const describeTableRow = describeRoute({
  method: "GET",
  path: ADMIN_PATH,
  role: "write",
  tag: "Tables",
  summary: "Columns and row count of a table",
  params: tablePath,
  responses: [{ status: 200, description: "As of now.", type: "application/json", schema: tableDescription }],
  errors: ["table_not_found"],
});

export function describeTableRoute(deps: IngestDeps): Route {
  return defineRoute({
    ...describeTableRow,
    handle: async ({ params, caller }) => {
      const table = await existingTable(deps.catalog, caller, params.database, params.table);
      const { rows } = await deps.catalog.tableStats(table.id);
      return jsonResponse(200, { ...describe(table), row_count: rows });
    },
  });
}

export const cleanupTableRow = describeRoute({
  method: "POST",
  path: "/v1/database/{db}/table/{table}/cleanup",
  role: "write",
  tag: "Tables",
  summary: "Delete soft-deleted extents for good",
  description: "Deletes the bytes of extents whose soft deletion happened strictly before `before`.",
  params: z.object({ db: z.string(), table: z.string() }),
  query: z.object({
    before: z
      .string()
      .refine((text) => rfc3339ToNs(text) !== undefined, "accepted is an RFC 3339 time")
      .describe("RFC 3339 time."),
  }),
  responses: [{ status: 200, description: "What was freed.", type: "application/json", schema: cleanupResult }],
  errors: ["table_not_found", "invalid_parameter"],
});

export function cleanupTableRoute(deps: IngestDeps): Route {
  return defineRoute({
    ...cleanupTableRow,
    handle: async ({ params, query, caller }) => {
      const table = await existingTable(deps.catalog, caller, params.db, params.table);
      const beforeNs = rfc3339ToNs(query.before) ?? 0n;
      // The catalog keeps milliseconds: an instant is strictly before T if it is before T rounded up.
      const beforeMs = Number((beforeNs + 999_999n) / 1_000_000n);
      const freed = await cleanup(deps, table.id, beforeMs);
      return jsonResponse(200, {
        extents_deleted: freed.extents,
        rows_freed: freed.rows,
        bytes_freed: freed.sizeBytes,
      });
    },
  });
}

/** Throws `forbidden`, `table_not_found`. */
export async function existingTable(
  catalog: Pick<Catalog, "table">,
  caller: Caller,
  database: string,
  name: string,
): Promise<TableRecord> {
  checkMayUse(caller, database);
  const table = await catalog.table(database, name);
  if (table !== undefined) return table;
  throw new EngineError("table_not_found", `table ${JSON.stringify(`${database}.${name}`)} does not exist`);
}

function describe(table: TableRecord) {
  const { database, name, clusterBy } = table;
  return { database, table: name, columns: columnsOf(table), cluster_by: clusterBy };
}

function clusteredOtherwise({ database, name, clusterBy }: TableRecord): EngineError {
  const how = clusterBy.length === 0 ? "is not clustered" : `is clustered by ${JSON.stringify(clusterBy)}`;
  const message = `table ${JSON.stringify(`${database}.${name}`)} exists and ${how}; \`engine alter-table\` changes that`;
  return new EngineError("conflict", message);
}

export function columnsOf(table: TableRecord): { name: string; type: string }[] {
  return table.columns.map(({ name, type }) => ({ name, type: formatColumnType(type) }));
}
