import { sleep, type Clock } from "../core/clock.ts";
import { untilAborted } from "../core/concurrency.ts";
import { EngineError, messageOf } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Random } from "../core/random.ts";
import type { JobHandler, JobPort, RunningJob } from "./handler.ts";
import type { LeasedJob } from "./job.ts";
import { checkJson, failureOf, type NodeRefused } from "./runner-failure.ts";
import { HeldLease } from "./runner-lease.ts";
import { JobLogWriter } from "./runner-log.ts";
import { ProgressWriter } from "./runner-progress.ts";

export type JobRunOptions = {
  port: JobPort;
  handler: JobHandler;
  job: LeasedJob;
  /** On the monotonic clock, before the job was claimed. */
  askedAtMs: number;
  clock: Clock;
  random: Random;
  log: Log;
  /** What a handler gets to end by itself when the node stops, before its job is given back without it. */
  unwindMs: number;
  onRefused: (error: NodeRefused) => void;
};

/** How a run ended on this node. */
export type RunOutcome = "completed" | "failed" | "released" | "lost";

type Settled = { ok: true; result: unknown } | { ok: false; error: unknown };

/** What giving a job back may take. */
const RELEASE_MS = 2_000;
/** A handler that runs on for so long after it was told to stop is worth a word. */
const STUCK_MS = 30_000;

/** One run of one job on this node, from its claim until its handler has ended. */
export class JobRun {
  readonly job: LeasedJob;
  /** Resolves when the handler has ended, and nothing is written any more. Never rejects. */
  readonly ended: Promise<RunOutcome>;
  readonly #options: JobRunOptions;
  readonly #lease: HeldLease;
  readonly #progress: ProgressWriter;
  readonly #lines: JobLogWriter;
  /** Tells the handler to stop. */
  readonly #stop = new AbortController();
  /** What becomes of the job was decided, once. */
  #outcome: RunOutcome | undefined;
  #isGivenBack = false;

  constructor(options: JobRunOptions) {
    const { port, job, askedAtMs, clock } = options;
    this.#options = options;
    this.job = job;
    const onCancelRequested = () => this.cancel();
    const lease = new HeldLease({ ...options, onCancelRequested }, job, askedAtMs);
    this.#lease = lease;
    this.#lines = new JobLogWriter({ ...options, lease });
    this.#progress = new ProgressWriter({
      port,
      lease,
      clock,
      onCancelRequested,
      onRefused: (reason) => this.#lines.add("warn", `progress is not kept: ${reason}`),
    });
    lease.lost.addEventListener("abort", () => this.#lostIt(lease.lost.reason), { once: true });
    this.ended = this.#run();
  }

  /** Whether this node may still write for the job. */
  get isHeld(): boolean {
    return this.#outcome === undefined && !this.#lease.lost.aborted;
  }

  /** Tells the handler to stop because the job is to be cancelled; it may still complete it. */
  cancel(): void {
    this.#tellToStop(new EngineError("conflict", "the job was cancelled"));
  }

  /**
   * Tells the handler to stop because the node does, and gives the job back, without waiting for a handler that does not
   * obey: its lease ends in any case, and the fence keeps it from writing. Never rejects.
   */
  async giveBack(): Promise<void> {
    this.#isGivenBack = true;
    this.#tellToStop(new EngineError("unavailable", "the node stops"));
    const { clock, port, unwindMs } = this.#options;
    const waited = new AbortController();
    const unwound = sleep(clock, unwindMs, waited.signal).catch(() => undefined);
    await Promise.race([this.ended, unwound]);
    waited.abort();
    if (this.isHeld) {
      this.#outcome = "released";
      await Promise.race([this.#finish(() => port.release(this.#lease.hold)), this.#afterAWhile()]);
    }
    this.abandon();
  }

  /** Tells the handler to stop, and writes nothing more: the job is the next one's when its lease ends. */
  abandon(): void {
    this.#lease.giveUp(new EngineError("unavailable", "the node stops"));
  }

  /** What is still to be written would be tried for ever, and keep the process from ending. */
  #lostIt(reason: unknown): void {
    this.#progress.stop();
    this.#lines.stop();
    this.#tellToStop(reason);
  }

  #tellToStop(reason: unknown): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort(reason);
    const { clock, log, job } = this.#options;
    const stuck = clock.after(
      STUCK_MS,
      () => log.warn({ jobId: job.id, kind: job.kind }, "a handler was told to stop and goes on; its slot stays taken"),
      { background: true },
    );
    void this.ended.then(() => stuck.cancel());
  }

  async #run(): Promise<RunOutcome> {
    // What the constructor still sets up comes first.
    await Promise.resolve();
    const { log, clock, job } = this.#options;
    const startedAtMs = clock.monotonicMs();
    const { id: jobId, kind, attempt, fence } = job;
    log.info({ jobId, kind, attempt, fence }, "a job begins");
    const settled = await this.#handle();
    const outcome = await this.#end(settled);
    const durationMs = Math.round(clock.monotonicMs() - startedAtMs);
    const reason = settled.ok ? {} : { reason: messageOf(settled.error) };
    log.info({ jobId, kind, attempt, fence, outcome, durationMs, ...reason }, "a job has ended here");
    return outcome;
  }

  async #handle(): Promise<Settled> {
    const { handler } = this.#options;
    try {
      await this.#lease.confirm();
      if (this.#stop.signal.aborted) throw this.#stop.signal.reason;
      const result = await handler.run(this.#runningJob());
      checkJson(result, "the result");
      return { ok: true, result };
    } catch (error) {
      return { ok: false, error };
    }
  }

  #runningJob(): RunningJob {
    const { port, job } = this.#options;
    const { signal } = this.#stop;
    return {
      ...heldJob(job),
      signal,
      lease: this.#lease,
      progress: (snapshot) => {
        if (!signal.aborted) this.#progress.set(snapshot);
      },
      log: (level, message) => {
        if (!signal.aborted) this.#lines.add(level, message);
      },
      credential: async (credentialId) => {
        if (!job.credentials.includes(credentialId)) {
          throw new EngineError("forbidden", `the job names no credential ${credentialId}`);
        }
        return await untilAborted(
          this.#lease.persist(() => port.credential(this.#lease.hold, credentialId)),
          signal,
        );
      },
    };
  }

  /** Says what became of the job, unless somebody else decides that by now. */
  async #end(settled: Settled): Promise<RunOutcome> {
    if (!this.isHeld) return this.#outcome ?? "lost";
    const { port } = this.#options;
    const { hold } = this.#lease;
    const fail = (error: unknown) => port.fail(hold, failureOf(error));
    if (settled.ok) {
      this.#outcome = "completed";
      await this.#finish(async () => {
        try {
          await port.complete(hold, settled.result);
        } catch (error) {
          // One that is too large never fits.
          if (!(error instanceof EngineError) || error.code !== "body_too_large") throw error;
          this.#outcome = "failed";
          await fail(error);
        }
      });
    } else if (this.#isGivenBack) {
      this.#outcome = "released";
      await this.#finish(() => port.release(hold));
    } else {
      this.#outcome = "failed";
      await this.#finish(() => fail(settled.error));
    }
    return this.#outcome;
  }

  /** Writes what was said, and then the end. */
  async #finish(end: () => Promise<void>): Promise<void> {
    const { log, job } = this.#options;
    try {
      await this.#progress.finish();
      await this.#lines.finish();
      await this.#lease.persist(end);
    } catch (error) {
      if (!this.#lease.lost.aborted) log.error({ err: error, jobId: job.id }, "the end of a job was refused");
      this.#outcome = "lost";
    } finally {
      this.#progress.stop();
      this.#lines.stop();
      this.#lease.end();
    }
  }

  async #afterAWhile(): Promise<void> {
    await sleep(this.#options.clock, RELEASE_MS, this.#lease.lost).catch(() => undefined);
  }
}

/** A job as it was claimed has more than its holder works with, and that grows old. */
function heldJob(job: LeasedJob): LeasedJob {
  const { id, kind, payload, credentials, database, owner, traceContext, attempt, fence, holder, leaseMs } = job;
  return { id, kind, payload, credentials, database, owner, traceContext, attempt, fence, holder, leaseMs };
}
