import type { WorkerIdentity } from "../auth/caller.ts";
import { mayReachWithin, ownerOf, type Asker } from "../auth/owner.ts";
import type { RecordStore } from "../db/records.ts";
import type { Signals } from "../db/signals.ts";
import type { Clock } from "../core/clock.ts";
import type { IdSource } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import type { Random } from "../core/random.ts";
import { cancel, retry } from "./cancel.ts";
import { oldestWaiting } from "./claim.ts";
import { ClaimDesk, type Claim } from "./claim-desk.ts";
import { Complete } from "./complete.ts";
import { Enqueue, type Enqueued, type NewJob, type PreparedJobs } from "./enqueue.ts";
import { extend, type HoldState } from "./extend.ts";
import { fail, release, type Failure } from "./fail.ts";
import type { Hold, Job, JobOwner } from "./job.ts";
import type { JobMetrics } from "./job-metrics.ts";
import type { JobKinds } from "./kinds.ts";
import { leasedJob, holdOfWorker } from "./leased-job.ts";
import { countUnfinished, findJob, listJobs, type JobFilter, type JobSummary, type QueueDepth } from "./list.ts";
import type { FabricPorts } from "./ports.ts";
import { progress } from "./progress.ts";
import { forgetFinished, sweep } from "./sweep.ts";

export type FabricOptions = {
  records: RecordStore;
  signals: Signals;
  kinds: JobKinds;
  clock: Clock;
  random: Random;
  newId: IdSource;
  log: Log;
  /** How long a holder may be silent, where the kind does not say. */
  leaseMs: number;
  metrics?: JobMetrics;
};

const CANCELS = "job_cancels";

/**
 * The job fabric: one way to run what takes long on any number of nodes. Jobs are records of the catalog; nodes claim
 * them for as long as a lease lasts, and write with its fence (`job.ts` has the states).
 *
 * - A job that was enqueued is never lost: it is durable when `enqueue` resolves, and each claim ends in a completion, a
 *   failure, or the end of its lease, after which `sweep` gives it to the next.
 * - It never runs under two valid leases, and of several holders only the newest can end it. What a handler does outside
 *   may happen more than once; whoever must not do it twice carries the fence along.
 * - All times are the database's: a node's clock may be wrong.
 * - Claims take turns among kinds and databases (`lanes.ts`), and wait without asking the database (`claim-desk.ts`).
 *
 * One file per verb. This class holds them together for one process; nodes that share a catalog have one each.
 */
export class Fabric {
  readonly #ports: FabricPorts;
  readonly #signals: Signals;
  readonly #clock: Clock;
  readonly #desk: ClaimDesk;
  readonly #enqueue: Enqueue;
  readonly #complete: Complete;

  constructor({ signals, clock, log, ...rest }: FabricOptions) {
    this.#signals = signals;
    this.#clock = clock;
    this.#ports = { ...rest, announce: (lanes) => this.#desk.announce(lanes) };
    this.#desk = new ClaimDesk({ ports: this.#ports, signals, clock, log });
    this.#enqueue = new Enqueue(this.#ports);
    this.#complete = new Complete(this.#ports);
  }

  get kinds(): JobKinds {
    return this.#ports.kinds;
  }

  /** How long a holder may be silent, where the kind of job does not say. */
  get leaseMs(): number {
    return this.#ports.leaseMs;
  }

  /** Claims that wait in this process. */
  get claimsWaiting(): number {
    return this.#desk.waiting;
  }

  /** See `Enqueue.enqueue`. Whether the owner may enqueue this kind is for the caller to check (`checkMayEnqueue`). */
  async enqueue(request: NewJob, owner: JobOwner): Promise<Enqueued> {
    const enqueued = await this.#enqueue.enqueue(request, owner);
    if (!enqueued.deduped) this.#ports.metrics?.enqueued(enqueued.job);
    return enqueued;
  }

  /** See `Enqueue.prepare`. */
  prepare(requests: readonly NewJob[], owner: JobOwner): PreparedJobs {
    return this.#enqueue.prepare(requests, owner);
  }

  /** See `ClaimDesk.claim`. */
  async claim(claim: Claim): Promise<Job[]> {
    const jobs = await this.#desk.claim(claim);
    for (const job of jobs) this.#ports.metrics?.claimed(job);
    return jobs;
  }

  extend(hold: Hold, leaseMs: number): Promise<HoldState> {
    return extend(this.#ports, hold, leaseMs);
  }

  progress(hold: Hold, snapshot: unknown): Promise<HoldState> {
    return progress(this.#ports, hold, snapshot);
  }

  async complete(hold: Hold, result: unknown): Promise<Job> {
    const job = await this.#complete.complete(hold, result);
    // One that was completed before, and is said to be again, is not counted twice.
    if (job.finishedAtMs === job.updatedAtMs) this.#ports.metrics?.ended(job);
    return job;
  }

  /** See `leased-job.ts`. */
  leasedJob(hold: Hold): Promise<Job> {
    return leasedJob(this.#ports, hold);
  }

  /** See `leased-job.ts`. */
  holdOfWorker(jobId: string, worker: WorkerIdentity): Promise<Hold> {
    return holdOfWorker(this.#ports, jobId, worker);
  }

  async fail(hold: Hold, failure: Failure): Promise<Job> {
    return await fail(this.#ports, hold, failure);
  }

  async release(hold: Hold): Promise<Job> {
    const job = await release(this.#ports, hold);
    this.#ports.metrics?.ended(job, "released");
    return job;
  }

  /** See `cancel.ts`; holders on all nodes are told. */
  async cancel(id: string): Promise<Job> {
    const job = await cancel(this.#ports, id);
    // One that is not told learns it when it next renews its lease.
    if (job.status === "leased") await this.#signals.send(CANCELS, id).catch(() => undefined);
    return job;
  }

  /** Calls the listener with the id of a leased job whose cancellation was asked for; some may be missed. */
  onCancel(listener: (jobId: string) => void): () => void {
    return this.#signals.listen(CANCELS, (id) => id !== undefined && listener(id));
  }

  retry(id: string): Promise<Job> {
    return retry(this.#ports, id);
  }

  async sweep(): Promise<Job[]> {
    const jobs = await sweep(this.#ports);
    for (const job of jobs) this.#ports.metrics?.swept(job);
    return jobs;
  }

  forgetFinished(keepMs: number, maxJobs: number): Promise<number> {
    return forgetFinished(this.#ports, { nowMs: this.#clock.nowMs(), keepMs, maxJobs });
  }

  list(filter: JobFilter): Promise<JobSummary[]> {
    return listJobs(this.#ports.records, filter);
  }

  /** A job, if its asker may reach it. One about no database is only for those who may see all databases. */
  async find(id: string, asker: Asker): Promise<Job | undefined> {
    const job = await findJob(this.#ports.records, id);
    if (job === undefined || !mayReachWithin(asker, ownerOf(job.owner))) return undefined;
    const { databases } = asker;
    if (databases === undefined) return job;
    return job.database !== undefined && databases.includes(job.database) ? job : undefined;
  }

  countUnfinished(): Promise<QueueDepth[]> {
    return countUnfinished(this.#ports.records);
  }

  /** For how long the oldest queued job of each kind has been due, in ms; kinds without one are absent. */
  oldestWaiting(): Promise<Map<string, number>> {
    return oldestWaiting(this.#ports);
  }

  /** Claims that wait get nothing. */
  close(): void {
    this.#desk.close();
  }
}
