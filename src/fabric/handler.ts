import type { HoldState } from "./extend.ts";
import type { Failure } from "./fail.ts";
import type { LeasedJob, Hold, Job } from "./job.ts";

/**
 * What runs the jobs of a kind. The same handler runs in the dispatcher of this program and in a node daemon, which
 * reaches the fabric over HTTP: it sees neither.
 *
 * What `run` returns is the job's result, any JSON value. What it throws fails the job: `JobFailure` says how; another
 * error may be retried if it is about the moment (a 5xx or 429 of ours, or no `EngineError` at all), and is final if it
 * is about the job.
 */
export type JobHandler = {
  kind: string;
  run(job: RunningJob): Promise<unknown>;
};

/** A job as its handler sees it. */
export type RunningJob = LeasedJob & {
  /**
   * Aborted when the lease is lost, the job is cancelled, or the node stops and will not wait: the handler ends soon.
   * After it nothing that it says is written.
   */
  signal: AbortSignal;
  /** For handlers that must not be at work one moment longer than they hold the job. */
  lease: RunningLease;
  /** How far it is: any JSON value. Calls in quick succession are thinned; the last one is always written. */
  progress(snapshot: unknown): void;
  /** A line for the operator. Lines are written in order, beside the job. */
  log(level: LogLevel, message: string): void;
  /** The secret with this id, which the job names among its credentials. It is never kept. */
  credential(id: string): Promise<unknown>;
};

export type RunningLease = {
  /** Until when the lease lasts for certain, on the monotonic clock. */
  readonly untilMs: number;
  /** Calls the listener with that whenever the lease was renewed. */
  onRenewed(listener: (untilMs: number) => void): void;
};

export const LOG_LEVELS = ["info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type LogLine = { level: LogLevel; message: string };

/** How a handler fails a job on purpose. */
export class JobFailure extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.error);
    this.failure = failure;
  }
}

/**
 * What a node needs of the fabric to run jobs: the fabric itself in this program, its routes in a daemon. Writes reject
 * with `lease_lost` (an `EngineError`) when the job is somebody else's.
 */
export interface JobPort {
  /** At least one job where there is one within the wait; else none. */
  claim(request: ClaimRequest): Promise<Job[]>;
  extend(hold: Hold, leaseMs: number): Promise<HoldState>;
  progress(hold: Hold, snapshot: unknown): Promise<HoldState>;
  /** Appends lines to the job's log. */
  log(hold: Hold, lines: readonly LogLine[]): Promise<void>;
  complete(hold: Hold, result: unknown): Promise<void>;
  fail(hold: Hold, failure: Failure): Promise<void>;
  /** Gives the job back without counting the attempt. */
  release(hold: Hold): Promise<void>;
  credential(hold: Hold, id: string): Promise<unknown>;
  /** Calls the listener with the id of a job of this node that is to be cancelled. Returns how to stop. */
  onCancel(listener: (jobId: string) => void): () => void;
}

export type ClaimRequest = { kinds: readonly string[]; max: number; waitMs: number; signal: AbortSignal };
