import { createHash } from "node:crypto";
import { z } from "zod";

import { checkMayUse, mayUseDatabase } from "../../auth/caller.ts";
import { atHead } from "../../catalog/at-head.ts";
import type { Dropped } from "../../catalog/catalog.ts";
import { DELETE_ROWS, deletionResult, type Matcher, type MatchRequest } from "../delete-rows.ts";
import { DeletionReports, type DeletionReport } from "../deletion-reports.ts";
import { groupsOf } from "../rewrite.ts";
import { EngineError } from "../../core/errors.ts";
import { JOB_STATUSES, type Job } from "../../fabric/job.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import { originOf } from "../../server/origin.ts";
import type { AuditLog } from "../../auth/audit.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { RecordStore } from "../../catalog/records.ts";
import type { Fabric } from "../../fabric/fabric.ts";
import { databaseHeader } from "../../server/schemas.ts";
import { existingTable } from "../../auth/existing-table.ts";

/**
 * Deletion on request, for admins: tables, databases, and rows by a condition.
 *
 * What names a table or a database elsewhere is left alone, and goes by the name: tokens that are limited to a dropped
 * database reach one that is made again under the name (an admin who drops it to take their rights away revokes them);
 * its jobs, exports and schedules fail with `database_not_found` or `table_not_found` as long as it is not there.
 */
export type DeletionDeps = {
  catalog: Catalog;
  records: RecordStore;
  fabric: Fabric;
  audit: AuditLog;
  matcher: Matcher;
};

const common = { role: "admin", tag: "Tables" } as const;
const TABLE = "/v1/catalog/tables/{table}";
const DELETIONS = "/v1/catalog/deletions";
const tablePath = z.object({ table: z.string() });
const inDatabase = z.object({ "x-database": databaseHeader });

const drop = {
  snapshot_id: z.string().describe("From this snapshot on it is gone."),
  rows: z.int(),
  extents: z.int(),
  bytes: z.int().describe("Freed once the grace of physical deletion is over."),
};
const droppedTable = z.object({ database: z.string(), table: z.string(), ...drop });
const droppedDatabase = z.object({ database: z.string(), tables: z.int(), ...drop });

export const dropTableRoute = defineRoute({
  ...common,
  method: "DELETE",
  path: TABLE,
  summary: "Drop a table",
  description:
    "Its rows are gone from every query, at every snapshot, and its name is free at once. Writes to it that are under " +
    "way make it anew where they may create tables. Irreversible.",
  params: tablePath,
  headers: inDatabase,
  responses: [{ status: 200, description: "What went.", type: "application/json", schema: droppedTable }],
  errors: ["table_not_found", "insufficient_storage"],
  handler:
    ({ catalog, audit }: DeletionDeps) =>
    async (call) => {
      const table = await existingTable(catalog, call.caller, call.headers["x-database"], call.params.table);
      const { id, database, name } = table;
      const entry = audit.statement({
        origin: originOf(call),
        action: "table.drop",
        target: `${database}.${name}`,
        outcome: "ok",
      });
      const dropped = await catalog.dropTable(id, [entry]);
      if (dropped === undefined) throw new EngineError("table_not_found", `table ${database}.${name} was just dropped`);
      return jsonResponse(200, { database, table: name, ...wentWith(dropped) });
    },
});

export const dropDatabaseRoute = defineRoute({
  ...common,
  method: "DELETE",
  path: "/v1/catalog/databases/{database}",
  summary: "Drop a database with all its tables",
  description: "As each of its tables is dropped, in one step. Irreversible.",
  params: z.object({ database: z.string() }),
  responses: [{ status: 200, description: "What went.", type: "application/json", schema: droppedDatabase }],
  errors: ["database_not_found", "insufficient_storage"],
  handler:
    ({ catalog, audit }: DeletionDeps) =>
    async (call) => {
      checkMayUse(call.caller, call.params.database);
      const known = await catalog.database(call.params.database);
      const missing = new EngineError("database_not_found", `there is no database ${call.params.database}`);
      if (known === undefined) throw missing;
      const entry = audit.statement({
        origin: originOf(call),
        action: "database.drop",
        target: known.name,
        outcome: "ok",
      });
      const dropped = await catalog.dropDatabase(known.id, [entry]);
      if (dropped === undefined) throw missing;
      return jsonResponse(200, { database: known.name, tables: dropped.tables, ...wentWith(dropped) });
    },
});

function wentWith({ snapshot, rows, extents, sizeBytes }: Dropped) {
  return { snapshot_id: String(snapshot.id), rows, extents, bytes: sizeBytes };
}

const deletionBody = z.object({
  id: z.string().describe("Of the job, and of the report."),
  status: z.enum(JOB_STATUSES),
  database: z.string(),
  table: z.string(),
  where: z.string(),
  deleted_by: z.string(),
  progress: z.unknown().describe("`{phase, extents, of}`: `count`, `rewrite`, then `commit`."),
  error: z.string().nullable().describe("Why it failed, or why it is tried again."),
  rows: z.int().nullable().describe("How many were deleted; null until then, as the following."),
  extents_ended: z.int().nullable().describe("Extents of which all rows went."),
  extents_rewritten: z.int().nullable().describe("Extents whose other rows were written again."),
  snapshot_id: z
    .int()
    .nullable()
    .describe("From this snapshot on no query sees the rows; earlier ones cannot be read."),
  committed_at: z.string().nullable(),
  bytes_gone_at: z.string().nullable().describe("When the object store had none of their bytes any more."),
});

const dryRunBody = z.object({
  dry_run: z.literal(true),
  database: z.string(),
  table: z.string(),
  rows: z.int().describe("Rows that match now, those past their retention included."),
  extents: z.int().describe("Extents that they are in."),
  extents_ended: z.int().describe("Of these, how many have no other rows."),
  extents_total: z.int().describe("Extents of the table."),
});

export const deleteRowsRoute = defineRoute({
  ...common,
  method: "POST",
  path: `${TABLE}/delete`,
  summary: "Delete rows by a condition",
  description:
    "A job, which deletes all rows that match or none: see `GET /v1/catalog/deletions/{id}`. The condition is one " +
    "expression over the table's columns, without sub-queries and without what changes by itself (`now()`, `random()`). " +
    "Rows that come after the job has begun need not go. `dry_run` counts, and changes nothing.",
  params: tablePath,
  headers: inDatabase,
  json: z.strictObject({
    where: z.string().min(1).max(65_536).describe("As after WHERE: `who = 'somebody' AND at < '2026-01-01'`."),
    dry_run: z.boolean().default(false),
  }),
  responses: [
    { status: 200, description: "What would go.", type: "application/json", schema: dryRunBody },
    { status: 202, description: "The deletion.", type: "application/json", schema: deletionBody },
  ],
  errors: [
    "table_not_found",
    "invalid_query",
    "parse_error",
    "budget_exceeded",
    "query_failed",
    "too_many_requests",
    "insufficient_storage",
  ],
  handler:
    ({ catalog, fabric, audit, matcher }: DeletionDeps) =>
    async (call) => {
      const { caller, json, requestId, request } = call;
      const table = await existingTable(catalog, caller, call.headers["x-database"], call.params.table);
      const { id: tableId, database, name } = table;
      const { where } = json;
      const asked = { caller, database, table: name, where, requestId, signal: request.signal };
      if (json.dry_run) {
        const counted = await atHead(catalog, (snapshot) => count({ catalog, matcher }, { tableId, snapshot, asked }));
        return jsonResponse(200, { dry_run: true, database, table: name, ...counted });
      }
      // What is wrong with the condition is said now, and not by a job that fails.
      await atHead(catalog, (snapshot) => matcher.count({ ...asked, extentIds: [], snapshot }));
      await audit.record({
        origin: originOf(call),
        action: "rows.delete",
        target: `${database}.${name}`,
        outcome: "ok",
        // The condition itself may name what is to be forgotten.
        details: { where_sha256: createHash("sha256").update(where).digest("hex") },
      });
      const payload = { database, table: name, table_id: tableId, where };
      const { job } = await fabric.enqueue({ kind: DELETE_ROWS.name, database, payload }, caller);
      return jsonResponse(202, bodyOf(job, undefined));
    },
});

async function count(
  { catalog, matcher }: Pick<DeletionDeps, "catalog" | "matcher">,
  { tableId, snapshot, asked }: { tableId: number; snapshot: number; asked: Asked },
) {
  const live = await catalog.extents(tableId, snapshot, {}, []);
  const counted = { rows: 0, extents: 0, extents_ended: 0, extents_total: live.length };
  for (const group of live.length === 0 ? [[]] : groupsOf(live)) {
    const rowsOf = new Map(group.map(({ id, rows }) => [id, rows]));
    for (const [id, rows] of await matcher.count({ ...asked, extentIds: [...rowsOf.keys()], snapshot })) {
      counted.rows += rows;
      counted.extents++;
      if (rows === rowsOf.get(id)) counted.extents_ended++;
    }
  }
  return counted;
}

type Asked = Omit<MatchRequest, "extentIds" | "snapshot">;

const oneDeletion = { description: "The deletion.", type: "application/json", schema: deletionBody };

export const getDeletionRoute = defineRoute({
  ...common,
  method: "GET",
  path: `${DELETIONS}/{id}`,
  summary: "How far a deletion of rows is, and its report",
  description: "The report stays when the job is forgotten.",
  params: z.object({ id: z.string() }),
  responses: [{ status: 200, ...oneDeletion }],
  errors: ["not_found"],
  handler: ({ fabric, records }: DeletionDeps) => {
    const reports = new DeletionReports(records);
    return async ({ caller, params: { id } }) => {
      const [job, report] = await Promise.all([fabric.find(id, caller), reports.find(id)]);
      if (report !== undefined && mayUseDatabase(caller, report.database))
        return jsonResponse(200, bodyOf(job, report));
      if (job?.kind === DELETE_ROWS.name) return jsonResponse(200, bodyOf(job, undefined));
      throw new EngineError("not_found", `there is no deletion ${id}`);
    };
  },
});

export const listDeletionsRoute = defineRoute({
  ...common,
  method: "GET",
  path: DELETIONS,
  summary: "Reports of deletions of rows",
  description: "Those that took place, the newest first.",
  query: z.object({
    limit: z.coerce.number().int().min(1).max(1_000).default(100),
    before: z.string().optional().describe("Id of the last one of the page before."),
  }),
  responses: [
    {
      status: 200,
      description: "One page.",
      type: "application/json",
      schema: z.object({ deletions: z.array(deletionBody) }),
    },
  ],
  errors: [],
  handler: ({ records }: DeletionDeps) => {
    const reports = new DeletionReports(records);
    return async ({ caller, query }) => {
      const page = await reports.list({ ...query, databases: caller.databases });
      return jsonResponse(200, { deletions: page.map((report) => bodyOf(undefined, report)) });
    };
  },
});

/** Of a job that is still there, or of a report, or both. */
function bodyOf(job: Job | undefined, report: DeletionReport | undefined): z.output<typeof deletionBody> {
  const asked = job?.payload as { database: string; table: string; where: string } | undefined;
  const nothing = {
    rows: null,
    extents_ended: null,
    extents_rewritten: null,
    snapshot_id: null,
    committed_at: null,
    bytes_gone_at: null,
  };
  return {
    id: job?.id ?? report?.id ?? "",
    // The commit is what counts; the job may be about to say so.
    status: report === undefined ? (job?.status ?? "queued") : "done",
    database: report?.database ?? asked?.database ?? "",
    table: report?.table ?? asked?.table ?? "",
    where: report?.where ?? asked?.where ?? "",
    deleted_by: report?.deletedBy ?? job?.owner.subject ?? "",
    progress: job?.progress ?? null,
    error: report === undefined ? (job?.error ?? null) : null,
    ...(report === undefined ? nothing : deletionResult(report)),
  };
}

export const DELETION_ROUTES = [
  dropTableRoute,
  dropDatabaseRoute,
  deleteRowsRoute,
  listDeletionsRoute,
  getDeletionRoute,
];
