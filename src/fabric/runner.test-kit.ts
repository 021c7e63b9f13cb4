import { ANONYMOUS } from "../auth/caller.ts";
import type { ManualClock } from "../core/clock.ts";
import type { HoldState } from "./extend.ts";
import type { Failure } from "./fail.ts";
import type { ClaimRequest, JobPort, LogLine } from "./handler.ts";
import type { Hold, Job } from "./job.ts";

export const LEASE_MS = 30_000;

/** A job as a claim gives it. */
export function claimedJob(id: string, more: Partial<Job> = {}): Job {
  return {
    id,
    kind: "test.task",
    status: "leased",
    priority: 0,
    runAfterMs: 0,
    database: undefined,
    dedupKey: undefined,
    workerId: undefined,
    selector: undefined,
    payload: { n: 1 },
    credentials: [],
    owner: ANONYMOUS,
    traceContext: undefined,
    attempt: 1,
    maxAttempts: 5,
    backoffMs: 1_000,
    leaseMs: LEASE_MS,
    fence: 1,
    holder: "w1",
    leaseExpiresAtMs: 0,
    cancelRequested: false,
    progress: undefined,
    result: undefined,
    error: undefined,
    createdAtMs: 0,
    startedAtMs: 0,
    finishedAtMs: undefined,
    updatedAtMs: 0,
    ...more,
  };
}

type Verb = "claim" | "extend" | "progress" | "log" | "complete" | "fail" | "release" | "credential";
type Call = { verb: Verb; jobId: string; value: unknown };

/** A fabric that gives out what a test puts in, and writes down what it is told. */
export class FakePort implements JobPort {
  readonly calls: Call[] = [];
  readonly claims: ClaimRequest[] = [];
  /** Consulted before each call but claims that wait; may throw, and may hang. */
  before: (verb: Verb) => Promise<void> | void = () => undefined;
  cancelRequested = false;
  readonly #clock: ManualClock;
  readonly #waiting: Job[] = [];
  readonly #listeners = new Set<(jobId: string) => void>();
  #added = Promise.withResolvers<void>();

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  add(...jobs: Job[]): void {
    this.#waiting.push(...jobs);
    this.#added.resolve();
    this.#added = Promise.withResolvers();
  }

  cancel(jobId: string): void {
    for (const listener of this.#listeners) listener(jobId);
  }

  /** What was written by that verb. */
  of(verb: Verb): unknown[] {
    return this.calls.filter((call) => call.verb === verb).map(({ value }) => value);
  }

  async claim(request: ClaimRequest): Promise<Job[]> {
    this.claims.push(request);
    await this.before("claim");
    const left = Promise.withResolvers<void>();
    request.signal.addEventListener("abort", () => left.resolve(), { once: true });
    while (this.#waiting.length === 0 && !request.signal.aborted) {
      await Promise.race([this.#added.promise, left.promise]);
    }
    return this.#waiting.splice(0, request.max);
  }

  async extend(hold: Hold, leaseMs: number): Promise<HoldState> {
    await this.#call("extend", hold, leaseMs);
    return this.#state();
  }

  async progress(hold: Hold, snapshot: unknown): Promise<HoldState> {
    await this.#call("progress", hold, snapshot);
    return this.#state();
  }

  async log(hold: Hold, lines: readonly LogLine[]): Promise<void> {
    await this.#call("log", hold, lines);
  }

  async complete(hold: Hold, result: unknown): Promise<void> {
    await this.#call("complete", hold, result);
  }

  async fail(hold: Hold, failure: Failure): Promise<void> {
    await this.#call("fail", hold, failure);
  }

  async release(hold: Hold): Promise<void> {
    await this.#call("release", hold, undefined);
  }

  async credential(hold: Hold, id: string): Promise<unknown> {
    await this.#call("credential", hold, id);
    return `secret of ${id}`;
  }

  onCancel(listener: (jobId: string) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async #call(verb: Verb, { jobId }: Hold, value: unknown): Promise<void> {
    await this.before(verb);
    this.calls.push({ verb, jobId, value });
  }

  #state(): HoldState {
    return { cancelRequested: this.cancelRequested, leaseExpiresAtMs: this.#clock.nowMs() + LEASE_MS };
  }
}
