import { z } from "zod";
import type { Catalog, TableRecord } from "../catalog/catalog.ts";
import { unpublishedTotals } from "../catalog/publishable.ts";
import { sleep, type Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import { JobFailure, type JobHandler, type RunningJob } from "../fabric/handler.ts";
import { checkJobDatabase } from "../fabric/job-database.ts";
import { readPayload } from "../fabric/job-payload.ts";
import type { JobKind } from "../fabric/kinds.ts";
import type { PublishRequests } from "./publish-requests.ts";

/**
 * The job that has a table's older files written anew: Parquet of version 1, and with whole numbers in columns that are
 * `real` since, also where a file is finished by its size; and what is still fresh. Compaction does the work under its
 * own lease and limits, when nothing else is to be merged. The job asks for it, keeps the request alive and says how far
 * it is: one that is cancelled withdraws its request, one that is lost lapses with it, and one that is run again goes on where the files are.
 */
const payload = z.strictObject({
  database: z.string().min(1).max(255).describe("The job's own."),
  table: z.string().min(1).max(255),
});

export const REWRITE_EXTENTS: JobKind = {
  name: "maintenance.rewrite_extents",
  payload,
  enqueue: "write",
  claim: "engine",
  needsDatabase: true,
};

export type RewriteExtentsPorts = {
  catalog: Pick<Catalog, "head" | "table" | "unpublishedDays">;
  requests: PublishRequests;
  clock: Clock;
};

const REQUEST_TTL_MS = 60_000;
/** After a job is cancelled: another one of the table looks, and renews the request, twice as often. */
const WITHDRAWN_MS = 10_000;
const FIRST_LOOK_MS = 250;
const MOST_LOOK_MS = 5_000;
/** After that long without any process that merges the job fails. */
const ALONE_MS = 120_000;

export function createRewriteExtents(ports: RewriteExtentsPorts): JobHandler {
  return { kind: REWRITE_EXTENTS.name, run: (job) => run(ports, job) };
}

async function run(ports: RewriteExtentsPorts, job: RunningJob) {
  const table = await tableOf(ports.catalog, job);
  try {
    return await rewrite(ports, table, job);
  } catch (error) {
    if (job.signal.aborted) await ports.requests.withdraw({ tableId: table.id, whole: true }, WITHDRAWN_MS);
    throw error;
  }
}

async function rewrite({ catalog, requests, clock }: RewriteExtentsPorts, table: TableRecord, job: RunningJob) {
  const request = { tableId: table.id, whole: true, upTo: (await catalog.head()).id };
  const look = () => unpublishedTotals(catalog, table.id, { upTo: request.upTo });
  const total = await look();
  let sawCompactionMs = clock.monotonicMs();
  // Also where an earlier run has left a request that has lapsed: whoever merges is woken.
  if (total.extents > 0) await requests.ask(request, REQUEST_TTL_MS);
  let askedWith = total.sizeBytes;
  for (let waitMs = FIRST_LOOK_MS; ; waitMs = Math.min(waitMs * 1.5, MOST_LOOK_MS)) {
    const isOpen = await requests.renew(request, REQUEST_TTL_MS);
    const left = await look();
    const done = {
      extents: total.extents - left.extents,
      rows: total.rows - left.rows,
      bytes: total.sizeBytes - left.sizeBytes,
    };
    job.progress({ ...done, extents_total: total.extents, rows_total: total.rows, bytes_total: total.sizeBytes });
    if (left.extents === 0) {
      await tableOf(catalog, job);
      return done;
    }
    if (!isOpen) {
      if (left.sizeBytes === askedWith) throw new JobFailure({ error: notMerged(left.extents) });
      askedWith = left.sizeBytes;
      await requests.ask(request, REQUEST_TTL_MS);
    }
    if (await requests.isAnybodyThere()) sawCompactionMs = clock.monotonicMs();
    if (clock.monotonicMs() - sawCompactionMs >= ALONE_MS) throw new JobFailure({ error: NOBODY_MERGES });
    await sleep(clock, waitMs, job.signal);
  }
}

const NOBODY_MERGES =
  "no server merges extents: start one with the role compaction and ENGINE_COMPACTION_POLL_SECS other than 0";

function notMerged(extents: number): string {
  return (
    `extents that could not be merged: ${extents}; they are damaged (maintenance.verify_extents names them), or of a ` +
    "newer version of the program"
  );
}

async function tableOf(catalog: Pick<Catalog, "table">, job: RunningJob): Promise<TableRecord> {
  const { database, table: name } = readPayload(payload, job);
  checkJobDatabase(job, database);
  const table = await catalog.table(database, name);
  if (table !== undefined) return table;
  throw new EngineError("table_not_found", `there is no table ${JSON.stringify(`${database}.${name}`)}`);
}
