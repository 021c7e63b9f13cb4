import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Catalog, ExtentRecord, ExtentSummary, TableRecord } from "../catalog/catalog.ts";
import { timeRangeOf } from "../catalog/extent-range.ts";
import { SnapshotHolds } from "../catalog/snapshot-holds.ts";
import type { Clock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import { JobFailure, type JobHandler, type RunningJob } from "../fabric/handler.ts";
import { readPayload } from "../fabric/job-payload.ts";
import { checkJobDatabase } from "../fabric/job-database.ts";
import type { JobKind } from "../fabric/kinds.ts";
import { ObjectNotFound, type ObjectStore } from "../io/objectstore/objectstore.ts";
import { bringExtent, type Way } from "./bring-extent.ts";
import { IoBudget } from "./io-budget.ts";
import { verifyInProcess } from "./merge-process.ts";
import type { MergeLimits } from "./merge.ts";
import { problemOf, type ExtentProblem, type LocalVerified } from "./verify.ts";

/**
 * The job that verifies the extents of a table that are alive at one snapshot, the newest when it starts: whether the
 * object store still has what was committed, and whether the catalog says of it what it holds (`verify.ts`). It changes
 * nothing. The snapshot is held meanwhile as queries hold theirs, so that nothing is deleted before it is looked at.
 *
 * Extents are taken in batches, the newest rows first. Of each batch the objects are brought here, and a process of its
 * own reads one after the other.
 */
const payload = z.strictObject({
  database: z.string().min(1).max(255).describe("The job's own."),
  table: z.string().min(1).max(255),
  limit: z.int().min(1).optional().describe("Extents at most, those with the newest rows."),
});

export const VERIFY_EXTENTS: JobKind = {
  name: "maintenance.verify_extents",
  payload,
  enqueue: "write",
  claim: "engine",
  needsDatabase: true,
};

export type VerifyExtentsPorts = {
  catalog: Pick<Catalog, "table" | "head" | "extents" | "holdSnapshots" | "releaseSnapshots" | "oldestSnapshot">;
  store: Pick<ObjectStore, "head" | "get" | "localPath">;
  clock: Clock;
  newId: IdSource;
  log: Log;
  metrics: Metrics;
};

export type VerifyExtentsOptions = {
  /** A folder for this alone. */
  tempDir: string;
  limits: MergeLimits;
  /** Of a core that its process may take. */
  cpuShare: number;
  /** That are read and copied, of all such jobs in this process together; 0 for no bound. */
  ioBytesPerSec: number;
};

/** The job's result; `problems` is cut off after `MAX_PROBLEMS`. */
type Result = {
  extents: number;
  rows: number;
  bytes: number;
  problems_total: number;
  problems: { extent_id: string; object_key: string; problem: string }[];
  ok: boolean;
};

const MAX_PROBLEMS = 100;
/** What is brought here at a time, and looked at by one process. */
const BATCH_EXTENTS = 64;
const BATCH_BYTES = 256 * 1024 * 1024;

export function createVerifyExtents(ports: VerifyExtentsPorts, options: VerifyExtentsOptions): JobHandler {
  const budget = new IoBudget({ ...ports, bytesPerSec: options.ioBytesPerSec });
  // What a process that was killed has left there.
  let isClean = false;
  return {
    kind: VERIFY_EXTENTS.name,
    async run(job) {
      if (!isClean) await rm(options.tempDir, { recursive: true, force: true });
      isClean = true;
      await mkdir(options.tempDir, { recursive: true, mode: 0o700 });
      return await new Verification(job, ports, options, budget).run();
    },
  };
}

class Verification {
  readonly #job: RunningJob;
  readonly #asked: z.output<typeof payload>;
  readonly #ports: VerifyExtentsPorts;
  readonly #options: VerifyExtentsOptions;
  readonly #way: Way;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  readonly #result: Result = { extents: 0, rows: 0, bytes: 0, problems_total: 0, problems: [], ok: true };
  #total = 0;

  constructor(job: RunningJob, ports: VerifyExtentsPorts, options: VerifyExtentsOptions, budget: IoBudget) {
    this.#job = job;
    this.#asked = readPayload(payload, job);
    this.#ports = ports;
    this.#options = options;
    this.#way = { store: ports.store, budget };
    this.#signal = AbortSignal.any([job.signal, this.#stop.signal]);
  }

  async run(): Promise<Result> {
    const { catalog, newId } = this.#ports;
    const table = await this.#table();
    const holds = new SnapshotHolds({ ...this.#ports, node: newId() });
    try {
      const reading = holds.open((reason) => this.#stop.abort(reason));
      const head = await catalog.head();
      await reading.hold(head.id);
      await this.#verifyAll(table, head.id);
      // Deletion may have met what was looked at since the hold ended.
      reading.check();
      return this.#result;
    } catch (error) {
      const isLapsed = error instanceof EngineError && error.code === "snapshot_expired";
      throw isLapsed ? new JobFailure({ error: error.message, retryable: true }) : error;
    } finally {
      await holds.close();
    }
  }

  async #table(): Promise<TableRecord> {
    const { database, table: name } = this.#asked;
    checkJobDatabase(this.#job, database);
    const table = await this.#ports.catalog.table(database, name);
    if (table !== undefined) return table;
    throw new EngineError("table_not_found", `there is no table ${JSON.stringify(`${database}.${name}`)}`);
  }

  async #verifyAll(table: TableRecord, snapshot: number): Promise<void> {
    const found = await this.#ports.catalog.extents(table.id, snapshot, {}, []);
    const newestFirst = found.toSorted((a, b) => (a.minAtNs < b.minAtNs ? 1 : -1)).slice(0, this.#asked.limit);
    this.#total = newestFirst.length;
    this.#say();
    for (const batch of inBatches(newestFirst)) {
      this.#signal.throwIfAborted();
      const problems = await this.#verifyBatch(table, await this.#withStats(table, snapshot, batch));
      for (const problem of problems) this.#add(problem);
      this.#result.extents += batch.length;
      for (const { rows, sizeBytes } of batch) {
        this.#result.rows += rows;
        this.#result.bytes += sizeBytes;
      }
      this.#say();
    }
  }

  /** Statistics are most of a record, so those of a large table are not all here at once. */
  async #withStats(table: TableRecord, snapshot: number, batch: readonly ExtentSummary[]): Promise<ExtentRecord[]> {
    const ids = new Set(batch.map(({ id }) => id));
    const records = await this.#ports.catalog.extents(table.id, snapshot, timeRangeOf(batch));
    return records.filter(({ id }) => ids.has(id));
  }

  async #verifyBatch(table: TableRecord, batch: readonly ExtentRecord[]): Promise<ExtentProblem[]> {
    const folder = await mkdtemp(join(this.#options.tempDir, "verify-"));
    try {
      const extents: LocalVerified[] = [];
      const problems: ExtentProblem[] = [];
      for (const extent of batch) {
        const brought = await this.#bring(extent, folder);
        if (typeof brought === "string") problems.push(problemOf(extent, brought));
        else extents.push(brought);
      }
      if (extents.length === 0) return problems;
      const columns = table.columns.map(({ id, name, type }) => ({ id, name, type }));
      const { limits, cpuShare } = this.#options;
      const task = { folder, limits, columns, extents };
      const { clock } = this.#ports;
      const way = { clock, share: () => cpuShare, budget: this.#way.budget, signal: this.#signal };
      return [...problems, ...(await verifyInProcess(task, way))];
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** The extent with its file, or what is wrong. */
  async #bring(extent: ExtentRecord, folder: string): Promise<LocalVerified | string> {
    const { id, key, format, rows, sizeBytes, checksum, minAtNs, maxAtNs, stats } = extent;
    const info = await this.#ports.store.head(key);
    if (info === undefined) return MISSING;
    if (info.sizeBytes !== sizeBytes) {
      return `size: the object has ${info.sizeBytes} bytes, the catalog says ${sizeBytes} bytes`;
    }
    try {
      const path = await bringExtent(this.#way, extent, folder, this.#signal);
      return { id, key, format, rows, sizeBytes, checksum, minAtNs, maxAtNs, stats, path };
    } catch (error) {
      if (error instanceof ObjectNotFound) return MISSING;
      throw error;
    }
  }

  #add({ extentId, objectKey, problem }: ExtentProblem): void {
    this.#job.log("error", `extent ${extentId} (${objectKey}): ${problem}`);
    this.#result.ok = false;
    this.#result.problems_total++;
    if (this.#result.problems.length === MAX_PROBLEMS) return;
    this.#result.problems.push({ extent_id: extentId, object_key: objectKey, problem });
  }

  #say(): void {
    const { extents, bytes, problems_total: problems } = this.#result;
    this.#job.progress({ extents_done: extents, extents_total: this.#total, bytes_read: bytes, problems });
  }
}

const MISSING = "the object is missing";

function* inBatches(extents: readonly ExtentRecord[]): Generator<ExtentRecord[]> {
  let batch: ExtentRecord[] = [];
  let sizeBytes = 0;
  for (const extent of extents) {
    if (batch.length === BATCH_EXTENTS || (batch.length > 0 && sizeBytes + extent.sizeBytes > BATCH_BYTES)) {
      yield batch;
      batch = [];
      sizeBytes = 0;
    }
    batch.push(extent);
    sizeBytes += extent.sizeBytes;
  }
  if (batch.length > 0) yield batch;
}
