import { mkdir, rm } from "node:fs/promises";
import { z } from "zod";
import type { Catalog, ExtentSummary, NewExtent, Snapshot, TableRecord } from "../catalog/catalog.ts";
import type { RecordStore } from "../db/records.ts";
import { sleep } from "../core/clock.ts";
import { unwidenedIn } from "../catalog/widening.ts";
import { EngineError } from "../core/errors.ts";
import { LIMITS } from "../core/limits.ts";
import type { Metrics } from "../core/metrics.ts";
import { JobFailure, type JobHandler, type RunningJob } from "../fabric/handler.ts";
import { readPayload } from "../fabric/job-payload.ts";
import { checkJobDatabase } from "../fabric/job-database.ts";
import type { JobOwner } from "../fabric/job.ts";
import type { JobKind } from "../fabric/kinds.ts";
import { DeletionReports, type DeletionReport } from "./deletion-reports.ts";
import { IoBudget } from "./io-budget.ts";
import { discard, saysNothingStored } from "./publish.ts";
import { shareMisfits } from "./share-misfits.ts";
import { groupsOf, rewriteExtents, RowsDiffer, type RewriteOptions, type RewritePorts } from "./rewrite.ts";

/**
 * The job that deletes rows of a table by a condition.
 *
 *     count     how many rows match in each extent that is alive now; statistics and filters leave most of them out
 *     rewrite   extents with some matching rows: the others, as new extents, which nobody points to yet
 *     commit    one transaction: extents with matching rows end, the new ones begin, earlier snapshots of the table cannot
 *               be read any more, and the report is there (`deletion-reports.ts`)
 *
 * All or nothing: before the commit nothing has changed for anybody, whenever the process dies; uploads that it leaves
 * are orphans. A job that is run again finds the report if the commit took place, and else begins anew.
 *
 * Which rows: those that match and are in the table when the job looks at it, at the start. Rows that come later, staged
 * ones that are committed later among them, need not go; some do. Rows past their retention go as well.
 *
 * Who else is at work: extents never change, so what was counted of one stays true. When one of those that are to end
 * was merged, ended or dropped meanwhile, the commit refuses, and the job looks at what is alive then that it has not
 * seen. That is little each time, and merges of one table are one at a time, so it comes to an end. Two deletions meet in
 * the same way. A table that is dropped has nothing left to delete, and the job fails.
 *
 * Later the extents that ended are deleted like all others, a grace after the commit; the report then says when.
 */
const payload = z.strictObject({
  database: z.string().min(1).max(255).describe("The job's own."),
  table: z.string().min(1).max(255),
  table_id: z.int().describe("One that is made again under the name is another table."),
  where: z.string().min(1),
});

export const DELETE_ROWS: JobKind = {
  name: "maintenance.delete_rows",
  payload,
  // Its own route does, which checks the condition first.
  enqueue: "nobody",
  claim: "engine",
  needsDatabase: true,
  maxAttempts: 10,
};

/** Which rows a condition picks, as the queries of its author see it: see `query/row-matcher.ts`. */
export interface Matcher {
  /** How many rows of each extent match; those without one are absent. */
  count(request: MatchRequest): Promise<ReadonlyMap<string, number>>;
  /** Writes the rows that do not match to a Parquet file at the path, where nothing is; how many. */
  writeOthers(request: MatchRequest, path: string): Promise<number>;
}

export type MatchRequest = {
  caller: JobOwner;
  database: string;
  table: string;
  where: string;
  extentIds: readonly string[];
  snapshot: number;
  requestId: string;
  signal: AbortSignal;
};

export type DeleteRowsPorts = Omit<RewritePorts, "budget"> & {
  catalog: Pick<Catalog, "table" | "head" | "extents" | "deleteRows" | "misfits">;
  records: Pick<RecordStore, "rows" | "write">;
  matcher: Matcher;
  metrics: Metrics;
};

/** `ioBytesPerSec`: of all such jobs in this process together; 0 for no bound. */
export type DeleteRowsOptions = RewriteOptions & { ioBytesPerSec: number };

/** The pause before a query is asked again for which the server had no room. */
const FULL_PAUSE_MS = 2_000;
const FULL_ATTEMPTS = 150;

export function createDeleteRows(ports: DeleteRowsPorts, options: DeleteRowsOptions): JobHandler {
  const budget = new IoBudget({ ...ports, bytesPerSec: options.ioBytesPerSec });
  // What a process that was killed has left there.
  let isClean = false;
  return {
    kind: DELETE_ROWS.name,
    async run(job) {
      const done = await new DeletionReports(ports.records).find(job.id);
      if (done !== undefined) return deletionResult(done);
      if (!isClean) await rm(options.tempDir, { recursive: true, force: true });
      isClean = true;
      await mkdir(options.tempDir, { recursive: true, mode: 0o700 });
      return await new RowDeletionJob(job, { ...ports, budget }, options).run();
    },
  };
}

/** A report as the job's result and the routes tell it. */
export function deletionResult(report: DeletionReport) {
  const { rows, extentsEnded, extentsRewritten, snapshotId, committedAtMs, bytesGoneAtMs } = report;
  return {
    rows,
    extents_ended: extentsEnded,
    extents_rewritten: extentsRewritten,
    snapshot_id: snapshotId,
    committed_at: new Date(committedAtMs).toISOString(),
    bytes_gone_at: bytesGoneAtMs === undefined ? null : new Date(bytesGoneAtMs).toISOString(),
  };
}

/** Extents that end together, and what takes their place. */
type Prepared = { inputs: readonly ExtentSummary[]; outputs: NewExtent[]; schemaVersion: number };

class RowDeletionJob {
  readonly #job: RunningJob;
  readonly #asked: z.output<typeof payload>;
  readonly #ports: Omit<DeleteRowsPorts, "metrics"> & RewritePorts;
  readonly #options: DeleteRowsOptions;
  readonly #reports: DeletionReports;
  /** Matching rows by extent, of all that were looked at. */
  readonly #counts = new Map<string, number>();
  #prepared: Prepared[] = [];

  constructor(job: RunningJob, ports: Omit<DeleteRowsPorts, "metrics"> & RewritePorts, options: DeleteRowsOptions) {
    this.#job = job;
    this.#asked = readPayload(payload, job);
    this.#ports = ports;
    this.#options = options;
    this.#reports = new DeletionReports(ports.records);
  }

  async run(): Promise<ReturnType<typeof deletionResult>> {
    checkJobDatabase(this.#job, this.#asked.database);
    let isUnknown = false;
    try {
      for (let attempt = 1; attempt <= LIMITS.commitAttempts; attempt++) {
        this.#job.signal.throwIfAborted();
        const before = this.#counts.size + this.#prepared.length;
        const groups = await this.#prepare();
        // Of a large table the snapshot may expire again and again; what was done by then stays done.
        if (groups === undefined && this.#counts.size + this.#prepared.length > before) attempt--;
        if (groups === undefined) continue;
        isUnknown = true;
        const snapshot = await this.#commit(groups);
        if (snapshot !== undefined) return await this.#result();
        isUnknown = false;
      }
      const error = `other changes of the table were faster ${LIMITS.commitAttempts} times; nothing was deleted`;
      throw new JobFailure({ error, retryable: true });
    } catch (error) {
      // After an answer that was lost somebody may point to them; the next attempt finds the report then.
      if (!isUnknown || saysNothingStored(error)) await this.#discardAll();
      throw failureOf(error, this.#job.attempt);
    }
  }

  async #result(): Promise<ReturnType<typeof deletionResult>> {
    const report = await this.#reports.find(this.#job.id);
    if (report === undefined) throw new Error("a deletion was committed without its report");
    return deletionResult(report);
  }

  /** What is to be committed for the table as it is now; undefined when a snapshot expired on the way. */
  async #prepare(): Promise<Prepared[] | undefined> {
    const { catalog } = this.#ports;
    const table = await this.#table();
    const head = await catalog.head();
    try {
      const live = await catalog.extents(table.id, head.id, {}, []);
      await this.#count(live, head);
      const matching = live.filter((extent) => this.#matching(extent) > 0);
      await this.#keepGood(table, new Set(live.map(({ id }) => id)));
      const done = new Set(this.#prepared.flatMap(({ inputs }) => inputs.map(({ id }) => id)));
      const left = matching.filter((extent) => this.#matching(extent) < extent.rows && !done.has(extent.id));
      await this.#rewrite(left, head, done.size + left.length);
      const whole = matching.filter((extent) => this.#matching(extent) === extent.rows);
      const latest = await this.#table();
      // All outputs get one version, which says what types they have.
      if (this.#prepared.some((prepared) => isUnwidened(latest, prepared))) return undefined;
      const { schemaVersion } = latest;
      return whole.length === 0 ? this.#prepared : [...this.#prepared, { inputs: whole, outputs: [], schemaVersion }];
    } catch (error) {
      if (error instanceof EngineError && error.code === "snapshot_expired") return undefined;
      throw error;
    }
  }

  async #table(): Promise<TableRecord> {
    const { database, table: name, table_id: id } = this.#asked;
    const table = await this.#ports.catalog.table(database, name);
    if (table?.id === id) return table;
    const named = JSON.stringify(`${database}.${name}`);
    throw new EngineError("table_not_found", `the table ${named} was dropped before its rows were deleted`);
  }

  #matching({ id }: Pick<ExtentSummary, "id">): number {
    return this.#counts.get(id) ?? 0;
  }

  async #count(live: readonly ExtentSummary[], head: Snapshot): Promise<void> {
    const fresh = live.filter(({ id }) => !this.#counts.has(id));
    let counted = live.length - fresh.length;
    for (const group of groupsOf(fresh)) {
      this.#job.progress({ phase: "count", extents: counted, of: live.length });
      const counts = await this.#patiently(() => this.#ports.matcher.count(this.#request(group, head)));
      for (const { id } of group) this.#counts.set(id, counts.get(id) ?? 0);
      counted += group.length;
    }
  }

  /** Forgets what was prepared of extents that are gone, or before a column was widened. */
  async #keepGood(table: TableRecord, live: ReadonlySet<string>): Promise<void> {
    const isGood = (prepared: Prepared): boolean =>
      prepared.inputs.every(({ id }) => live.has(id)) && !isUnwidened(table, prepared);
    const lost = this.#prepared.filter((prepared) => !isGood(prepared));
    this.#prepared = this.#prepared.filter(isGood);
    await discard(
      this.#ports,
      lost.flatMap(({ outputs }) => outputs),
    );
  }

  async #rewrite(extents: readonly ExtentSummary[], head: Snapshot, all: number): Promise<void> {
    for (const inputs of groupsOf(extents)) {
      const done = this.#prepared.reduce((sum, prepared) => sum + prepared.inputs.length, 0);
      this.#job.progress({ phase: "rewrite", extents: done, of: all });
      const { table_id: tableId } = this.#asked;
      const misfits = await this.#ports.catalog.misfits(
        tableId,
        inputs.map(({ id }) => id),
      );
      const { table, outputs: written } = await rewriteExtents(this.#ports, this.#options, {
        inputs,
        rows: inputs.reduce((sum, extent) => sum + extent.rows - this.#matching(extent), 0),
        writeRows: (path) => this.#patiently(() => this.#ports.matcher.writeOthers(this.#request(inputs, head), path)),
        table: () => this.#table(),
        signal: this.#job.signal,
      });
      const outputs = shareMisfits(written, table.columns, misfits);
      this.#prepared.push({ inputs, outputs, schemaVersion: table.schemaVersion });
    }
  }

  #request(extents: readonly ExtentSummary[], { id: snapshot }: Snapshot): MatchRequest {
    const { owner: caller, id: requestId, signal } = this.#job;
    const { database, table, where } = this.#asked;
    const extentIds = extents.map(({ id }) => id);
    return { caller, database, table, where, extentIds, snapshot, requestId, signal };
  }

  /** A client would come back as soon as it may; a job has time. */
  async #patiently<T>(ask: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await ask();
      } catch (error) {
        const isFull = error instanceof EngineError && error.code === "too_many_requests";
        if (!isFull || attempt === FULL_ATTEMPTS) throw error;
      }
      await sleep(this.#ports.clock, FULL_PAUSE_MS, this.#job.signal);
    }
  }

  async #commit(groups: readonly Prepared[]): Promise<Snapshot | undefined> {
    const { id, owner } = this.#job;
    const { database, table, table_id: tableId, where } = this.#asked;
    const inputs = groups.flatMap((group) => group.inputs);
    const rows = inputs.reduce((sum, extent) => sum + this.#matching(extent), 0);
    const rewritten = inputs.filter((extent) => this.#matching(extent) < extent.rows).length;
    this.#job.progress({ phase: "commit", extents: inputs.length, of: inputs.length });
    const extents = { extentsEnded: inputs.length - rewritten, extentsRewritten: rewritten };
    const report = { id, tableId, database, table, where, deletedBy: owner.subject, rows, ...extents };
    return await this.#ports.catalog.deleteRows({
      tableId,
      schemaVersion: Math.max(1, ...groups.map((group) => group.schemaVersion)),
      groups: groups.map((group) => ({ inputs: group.inputs.map((input) => input.id), outputs: group.outputs })),
      rows,
      also: [this.#reports.statement(report)],
    });
  }

  async #discardAll(): Promise<void> {
    const outputs = this.#prepared.flatMap((prepared) => prepared.outputs);
    this.#prepared = [];
    if (outputs.length > 0) await discard(this.#ports, outputs);
  }
}

function isUnwidened(table: TableRecord, { outputs, schemaVersion }: Prepared): boolean {
  return outputs.length > 0 && unwidenedIn(table, schemaVersion).length > 0;
}

/** A query that fails while it runs may have met a process or a machine that failed; not again and again. */
const MAX_FAILED_ATTEMPTS = 3;

function failureOf(error: unknown, attempt: number): unknown {
  if (error instanceof RowsDiffer) {
    return new JobFailure({
      error: `the condition says one thing and then another of the same rows: ${error.message}`,
    });
  }
  if (!(error instanceof EngineError)) return error;
  const { code, message } = error;
  if (code === "too_many_requests") return new JobFailure({ error: message, retryable: true });
  if (code === "query_failed") return new JobFailure({ error: message, retryable: attempt < MAX_FAILED_ATTEMPTS });
  return error;
}
