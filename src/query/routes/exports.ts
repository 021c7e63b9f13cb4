import { z } from "zod";

import { mayUseDatabase, type Caller } from "../../auth/caller.ts";
import { ownerOf } from "../../auth/owner.ts";
import { EngineError } from "../../core/errors.ts";
import { JOB_STATUSES, type Job } from "../../fabric/job.ts";
import { ObjectNotFound, rangeOf, type GetOptions, type ObjectStore } from "../../io/objectstore/objectstore.ts";
import { EXPORT_KEPT_MS } from "../exports/sweep.ts";
import { existingTable } from "../../auth/existing-table.ts";
import { exportBudgets, exportResult, QUERY_EXPORT, remoteFields } from "../exports/export.ts";
import { checkRemote, publishedTables } from "../exports/remote.ts";
import { RESULT_FORMATS } from "../stream/formats.ts";
import { databaseNotFound } from "../../auth/name-not-found.ts";
import { defineRoute, jsonResponse } from "../../server/route.ts";
import { QUERY_LANGUAGES } from "../contract/query.ts";
import type { ExportDeps } from "./deps.ts";
import { timeOf, timeOrNull } from "../../server/schemas.ts";
import { databaseHeader } from "../../server/schemas.ts";
import { nameSchemas } from "../../server/schema-names.ts";

/** Results of queries that are kept as Parquet files: jobs of the kind `query.export`, for those who may query. */

const exportBody = z.object({
  id: z.string().describe("Of the job."),
  status: z.enum(JOB_STATUSES),
  database: z.string(),
  created_by: z.string(),
  created_at: z.string(),
  finished_at: z.string().nullable(),
  progress: z
    .unknown()
    .describe(
      "`{phase, rows?, bytes?}`: `query`, then `upload`. On a query engine `publish` with `table` before, and `query` with " +
        "`engine`, its own `query_id` and `state`, `percent` and `rows_read`.",
    ),
  error: z.string().nullable().describe("Why it failed, or why it is tried again."),
  key: z.string().nullable().describe("Of the object in the store, once it is done."),
  rows: z.int().nullable(),
  bytes: z.int().nullable(),
  columns: z.array(z.string()).nullable(),
  expires_at: z.string().nullable().describe("The result can be fetched until then."),
  download_url: z.string().nullable().describe("Path of the result, while it can be fetched."),
});

nameSchemas({ Export: exportBody });

const PATH = "/v1/exports/{id}";
const common = { role: "read", tag: "Exports" } as const;
const idPath = z.object({ id: z.string() });
const oneExport = { description: "The export.", type: "application/json", schema: exportBody };

export const createExportRoute = defineRoute({
  ...common,
  method: "POST",
  path: "/v1/exports",
  summary: "Run a query and keep its result as a Parquet file",
  description:
    "The query runs as a job, with the rights of the caller and under the same budgets as any query, or with `run_on` on a " +
    "query engine that an admin has named. The result can be fetched for seven days.",
  headers: z.object({ "x-database": databaseHeader }),
  json: z.strictObject({
    query: z.string().min(1).describe("The text of one query."),
    language: z.enum(QUERY_LANGUAGES).optional().describe("`sql` unless given."),
    database: z.string().min(1).max(255).optional().describe("Goes before `X-Database`."),
    budgets: exportBudgets
      .optional()
      .describe("May only lower the server's. Time on a query engine has no other bound than this."),
    ...remoteFields,
  }),
  responses: [{ status: 202, ...oneExport }],
  errors: [
    "database_not_found",
    "table_not_found",
    "not_found",
    "body_too_large",
    "too_many_requests",
    "insufficient_storage",
  ],
  handler:
    (deps: ExportDeps) =>
    async ({ caller, headers, json }) => {
      const { database = headers["x-database"], ...asked } = json;
      const known = mayUseDatabase(caller, database) && (await deps.catalog.database(database)) !== undefined;
      if (!known) throw await databaseNotFound(deps.catalog, { caller, database });
      checkRemote({ ...asked, database }, caller);
      if (asked.run_on !== undefined) await deps.engines.find(asked.run_on);
      for (const table of publishedTables({ ...asked, database })) {
        await existingTable(deps.catalog, caller, table.database, table.name);
      }
      await checkWaiting(deps, caller);
      const request = { kind: QUERY_EXPORT.name, database, payload: { ...asked, database } };
      const { job } = await deps.fabric.enqueue(request, caller);
      return jsonResponse(202, bodyOf(job, deps));
    },
});

export const getExportRoute = defineRoute({
  ...common,
  method: "GET",
  path: PATH,
  summary: "How far an export is",
  description: "For who made it, and for admins.",
  params: idPath,
  responses: [{ status: 200, ...oneExport }],
  errors: ["not_found"],
  handler:
    (deps: ExportDeps) =>
    async ({ caller, params }) =>
      jsonResponse(200, bodyOf(await visible(deps, params.id, caller), deps)),
});

export const downloadExportRoute = defineRoute({
  ...common,
  method: "GET",
  path: `${PATH}/download`,
  summary: "The result of an export",
  params: idPath,
  headers: z.object({ range: z.string().optional().describe("One range of bytes: `bytes=0-1023`, `bytes=1024-`.") }),
  responses: [
    { status: 200, description: "A Parquet file.", type: RESULT_FORMATS.parquet.mediaType },
    {
      status: 206,
      description: "The part that was asked for.",
      type: RESULT_FORMATS.parquet.mediaType,
      headers: { "Content-Range": "Which part, and the size of the whole." },
    },
  ],
  errors: ["not_found", "gone"],
  handler:
    (deps: ExportDeps) =>
    async ({ caller, params, headers, request }) => {
      const job = await visible(deps, params.id, caller);
      const result = resultOf(job);
      if (result === undefined) {
        throw new EngineError("not_found", `the export ${job.id} has no result: it is ${job.status}`);
      }
      const info = isExpired(job, deps) ? undefined : await deps.store.head(result.key);
      if (info === undefined) throw expired(job);
      const part = partOf(headers.range, info.sizeBytes);
      const { start, end } = rangeOf(info.sizeBytes, part);
      return {
        status: part === undefined ? 200 : 206,
        headers: {
          "Content-Type": RESULT_FORMATS.parquet.contentType,
          "Content-Disposition": `attachment; filename="${job.id}.parquet"`,
          "Accept-Ranges": "bytes",
          "Content-Length": String(end - start),
          ...(part === undefined ? {} : { "Content-Range": `bytes ${start}-${end - 1}/${info.sizeBytes}` }),
        },
        body: piecesOf(deps.store, result.key, { start, end }, request.signal),
      };
    },
});

export const cancelExportRoute = defineRoute({
  ...common,
  method: "DELETE",
  path: PATH,
  summary: "Cancel an export",
  description: "One that is finished stays as it is; its result goes when it expires.",
  params: idPath,
  responses: [{ status: 200, ...oneExport }],
  errors: ["not_found", "insufficient_storage"],
  handler:
    (deps: ExportDeps) =>
    async ({ caller, params }) => {
      const { id } = await visible(deps, params.id, caller);
      const job = await deps.fabric.cancel(id);
      // Whoever has the job ends its query too, but may be gone. The job is cancelled in any case.
      await deps.remoteJobs.endAll(id).catch((error: unknown) => {
        deps.log.warn({ err: error, jobId: id }, "a cancelled query of a query engine was not ended");
      });
      return jsonResponse(200, bodyOf(job, deps));
    },
});

/** Those that one owner has waiting, at most. */
const MAX_WAITING = 100;

/** Throws `too_many_requests`. Two at a time may both pass: it is a bound for floods. */
async function checkWaiting({ fabric }: ExportDeps, caller: Caller): Promise<void> {
  const { databases } = caller;
  const owner = ownerOf(caller);
  const filter = { kind: QUERY_EXPORT.name, status: "queued", databases, owner, limit: MAX_WAITING } as const;
  const waiting = await fabric.list(filter);
  if (waiting.length < MAX_WAITING) return;
  const details = { headers: { "Retry-After": "10" } };
  throw new EngineError("too_many_requests", `${waiting.length} exports of yours wait already`, details);
}

/** To all others it does not exist. Rejects with `not_found`. */
async function visible({ fabric }: Pick<ExportDeps, "fabric">, id: string, caller: Caller): Promise<Job> {
  const job = await fabric.find(id, caller);
  if (job?.kind === QUERY_EXPORT.name) return job;
  throw new EngineError("not_found", `there is no export ${id}`);
}

function resultOf({ status, result }: Job): z.output<typeof exportResult> | undefined {
  return status === "done" ? exportResult.parse(result) : undefined;
}

function bodyOf(job: Job, deps: Pick<ExportDeps, "clock">): z.output<typeof exportBody> {
  const { id, status, database = "", owner, progress = null, error = null } = job;
  const result = resultOf(job);
  const { key = null, rows = null, bytes = null, columns = null } = result ?? {};
  return {
    id,
    status,
    database,
    created_by: owner.subject,
    created_at: timeOf(job.createdAtMs),
    finished_at: timeOrNull(job.finishedAtMs),
    progress,
    error,
    key,
    rows,
    bytes,
    columns,
    expires_at: result === undefined ? null : timeOrNull(expiresAtMs(job)),
    download_url: result === undefined || isExpired(job, deps) ? null : `/v1/exports/${id}/download`,
  };
}

function expiresAtMs({ finishedAtMs = 0 }: Job): number {
  return finishedAtMs + EXPORT_KEPT_MS;
}

function isExpired(job: Job, { clock }: Pick<ExportDeps, "clock">): boolean {
  return clock.nowMs() >= expiresAtMs(job);
}

function expired(job: Job): EngineError {
  const since = timeOf(expiresAtMs(job));
  return new EngineError("gone", `the result of the export ${job.id} was kept until ${since}, and is deleted`);
}

/** What is no single range of the object is as good as none: the whole answers it too. */
function partOf(header: string | undefined, sizeBytes: number): GetOptions | undefined {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  const offset = first === "" ? Math.max(0, sizeBytes - Number(last)) : Number(first);
  const end = first === "" || last === "" ? sizeBytes : Number(last) + 1;
  return offset < Math.min(end, sizeBytes) ? { offset, length: end - offset } : undefined;
}

const PIECE_BYTES = 1024 * 1024;

/** At the client's pace, one piece in memory. */
async function* piecesOf(
  store: Pick<ObjectStore, "get">,
  key: string,
  { start, end }: { start: number; end: number },
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for (let offset = start; offset < end; offset += PIECE_BYTES) {
    const length = Math.min(PIECE_BYTES, end - offset);
    try {
      yield await store.get(key, { offset, length, signal });
    } catch (error) {
      if (!(error instanceof ObjectNotFound)) throw error;
      throw new EngineError("gone", "the result was deleted while it was sent", { cause: error });
    }
  }
}
