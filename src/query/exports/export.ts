import { mkdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { EngineError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import { foldName } from "../../core/names.ts";
import { JobFailure, type JobHandler, type RunningJob } from "../../fabric/handler.ts";
import { readPayload } from "../../fabric/job-payload.ts";
import { checkJobDatabase } from "../../fabric/job-database.ts";
import type { JobKind } from "../../fabric/kinds.ts";
import { objectKeys, type ObjectStore } from "../../io/objectstore/objectstore.ts";
import { BUDGET_MINIMUMS } from "../budgets/budget.ts";
import type { EngineProgress } from "../contract/engines.ts";
import { QUERY_LANGUAGES, type QueryService } from "../contract/query.ts";
import { QueryEnded } from "../contract/running.ts";
import type { RemoteJobs } from "../engines/remote-jobs.ts";
import type { RemoteQueries } from "../engines/remote-queries.ts";
import { checkRemote, publishedTables } from "./remote.ts";

/**
 * The job that runs a query and leaves its result in the object store, as Parquet (zstd). The query is the owner's, with
 * their databases, and everything that holds for a query that a client sends holds for it: what it may say, its process,
 * its budgets, its place in the line. The result is never in memory: the query process writes a file, which is sent.
 *
 * The key has the fence of the job: of several holders each writes an object of its own, and the job's result names that
 * of the one that completed it. Others, and all of them after some days, are for the sweep (`sweep.ts`).
 */
const budget = (minimum: number) => z.int().min(minimum).optional();

export const exportBudgets = z.strictObject({
  max_wall_clock_ms: budget(BUDGET_MINIMUMS.wallMs),
  max_memory_bytes: budget(BUDGET_MINIMUMS.memoryBytes),
  max_object_store_bytes: budget(BUDGET_MINIMUMS.objectStoreBytes),
});

/** What an export says of the query engine that it runs on. */
export const remoteFields = {
  run_on: z
    .string()
    .min(1)
    .max(100)
    .optional()
    .describe("Name of a query engine, to which the text goes as it is. For callers of all databases."),
  publish: z
    .array(z.string().min(1).max(511))
    .max(100)
    .optional()
    .describe("Tables (`table` or `database.table`) whose rows are published before; takes the role `write`."),
};

const exportPayload = z.strictObject({
  query: z.string().min(1),
  language: z.enum(QUERY_LANGUAGES).default("sql"),
  database: z.string().min(1).max(255),
  budgets: exportBudgets.default({}),
  ...remoteFields,
});

export const QUERY_EXPORT: JobKind = {
  name: "query.export",
  payload: exportPayload,
  enqueue: "read",
  claim: "engine",
  needsDatabase: true,
  // While the server is full they are many, with longer and longer pauses.
  maxAttempts: 10,
  backoffMs: 5_000,
};

/** The job's result. */
export const exportResult = z.object({
  key: z.string(),
  rows: z.int(),
  bytes: z.int(),
  columns: z.array(z.string()).describe("Names of the columns, as many as fit into 64 KiB."),
});

/** A larger result is not kept. */
const MAX_EXPORT_BYTES = 10 * 1024 ** 3;
const MAX_COLUMNS_BYTES = 64 * 1024;
/** A query that fails while it runs may have met a process or a machine that failed; not again and again. */
const MAX_FAILED_ATTEMPTS = 3;

export type QueryExportPorts = {
  /** Made when the first export needs it. */
  query: () => Promise<QueryService>;
  remote: Pick<RemoteQueries, "run">;
  remoteJobs: Pick<RemoteJobs, "begun" | "ended" | "endAll">;
  /** Has a table's rows published, and waits for it. */
  publish: (table: { database: string; name: string }, signal: AbortSignal) => Promise<void>;
  store: Pick<ObjectStore, "putFile">;
  newId: IdSource;
};

export type QueryExportOptions = {
  /** What the keys of all objects start with. */
  keyPrefix: string;
  /** A folder for this alone, in the file system of the query service's. */
  tempDir: string;
  maxBytes?: number;
};

export function createQueryExport(ports: QueryExportPorts, options: QueryExportOptions): JobHandler {
  const { tempDir } = options;
  // What a process that was killed has left there.
  let isClean = false;
  return {
    kind: QUERY_EXPORT.name,
    async run(job) {
      if (!isClean) await rm(tempDir, { recursive: true, force: true });
      isClean = true;
      await mkdir(tempDir, { recursive: true, mode: 0o700 });
      const path = join(tempDir, `${ports.newId()}.parquet`);
      try {
        return await exportTo(path, job, ports, options);
      } finally {
        await rm(path, { force: true });
      }
    },
  };
}

async function exportTo(
  path: string,
  job: RunningJob,
  ports: QueryExportPorts,
  { keyPrefix, maxBytes = MAX_EXPORT_BYTES }: QueryExportOptions,
): Promise<z.output<typeof exportResult>> {
  const asked = readPayload(exportPayload, job);
  checkJobDatabase(job, asked.database);
  const { rows, columns } = await answered(path, job, asked, { ...ports, maxBytes });
  const { size: bytes } = await stat(path);
  if (bytes > maxBytes) {
    throw new JobFailure({ error: `the result has ${bytes} bytes; an export may have ${maxBytes}` });
  }
  job.progress({ phase: "upload", rows, bytes });
  const database = foldName(asked.database);
  const key = objectKeys.exported({ prefix: keyPrefix, database, jobId: job.id, fence: job.fence });
  await ports.store.putFile(key, path, { signal: job.signal });
  return { key, rows, bytes, columns: firstNames(columns) };
}

type Asked = z.output<typeof exportPayload>;

async function answered(
  path: string,
  job: RunningJob,
  asked: Asked,
  ports: QueryExportPorts & { maxBytes: number },
): Promise<{ rows: number; columns: readonly string[] }> {
  const { run_on: engine } = asked;
  if (engine !== undefined) return await runRemotely(path, job, { ...asked, engine }, ports);
  job.progress({ phase: "query" });
  return await runQuery(await ports.query(), job, asked, path);
}

/** On a query engine, with the rows published before that it is to see. */
async function runRemotely(
  path: string,
  job: RunningJob,
  { engine, ...asked }: Asked & { engine: string },
  { remote, remoteJobs, publish, maxBytes }: QueryExportPorts & { maxBytes: number },
): Promise<{ rows: number; columns: readonly string[] }> {
  const { id, owner, signal, attempt } = job;
  const { query: text, database, budgets } = asked;
  checkRemote({ ...asked, run_on: engine }, owner);
  // What a holder before has begun, which is not there any more.
  await remoteJobs.endAll(id);
  for (const table of publishedTables(asked)) {
    job.progress({ phase: "publish", table: `${table.database}.${table.name}` });
    await publish(table, signal);
  }
  job.progress({ phase: "query", engine });
  let begun: string | undefined;
  try {
    return await remote.run({
      engine,
      text,
      database,
      caller: owner,
      requestId: id,
      format: "parquet",
      saveTo: path,
      budget: { wallMs: budgets.max_wall_clock_ms, memoryBytes: budgets.max_memory_bytes },
      maxBytes,
      signal,
      onBegun: async (queryId) => {
        begun = queryId;
        await remoteJobs.begun(id, { engine, queryId });
      },
      onProgress: (progress) => job.progress({ phase: "query", engine, query_id: begun, ...shown(progress) }),
    });
  } catch (error) {
    throw error instanceof EngineError ? failureOf(error, attempt) : error;
  } finally {
    if (begun !== undefined) await remoteJobs.ended(id, begun);
  }
}

function shown({ state, percent, rowsRead, rows }: EngineProgress & { rows: number }): object {
  return { state, percent, rows_read: rowsRead, rows };
}

async function runQuery(
  query: QueryService,
  { id, owner, signal, attempt }: RunningJob,
  { query: text, language, database, budgets }: Asked,
  saveTo: string,
): Promise<{ rows: number; columns: readonly string[] }> {
  const budget = {
    wallMs: budgets.max_wall_clock_ms,
    memoryBytes: budgets.max_memory_bytes,
    objectStoreBytes: budgets.max_object_store_bytes,
  };
  const request = { caller: owner, database, text, language, budget, requestId: id, signal };
  try {
    return await query.run({ ...request, format: "parquet", saveTo, runOnBy: "run_on" });
  } catch (error) {
    throw error instanceof EngineError ? failureOf(error, attempt) : error;
  }
}

function failureOf(error: EngineError, attempt: number): Error {
  const { code, message } = error;
  // A client would come back as soon as it may; a job has time.
  if (code === "too_many_requests") return new JobFailure({ error: message, retryable: true });
  // Whoever ended it does not want it to run again.
  if (error instanceof QueryEnded) return new JobFailure({ error: message });
  if (code === "query_failed" || code === "engine_failed")
    return new JobFailure({ error: message, retryable: attempt < MAX_FAILED_ATTEMPTS });
  return error;
}

/** A job's result is bounded, and names may be of any length. */
function firstNames(columns: readonly string[]): string[] {
  let leftBytes = MAX_COLUMNS_BYTES;
  const names: string[] = [];
  for (const name of columns) {
    leftBytes -= Buffer.byteLength(JSON.stringify(name)) + 1;
    if (leftBytes < 0) break;
    names.push(name);
  }
  return names;
}
