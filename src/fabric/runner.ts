import { pause, type Clock } from "../core/clock.ts";
import { EngineError, messageOf } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import type { Random } from "../core/random.ts";
import type { JobHandler, JobPort } from "./handler.ts";
import { holdOf, type LeasedJob, type Job } from "./job.ts";
import { FABRIC_LIMITS } from "./limits.ts";
import { Backoff } from "../core/backoff.ts";
import { NodeRefused } from "./runner-failure.ts";
import { JobRun, type RunOutcome } from "./runner-job.ts";

export type JobRunnerOptions = {
  port: JobPort;
  /** One for each kind that this node takes. */
  handlers: readonly JobHandler[];
  /** Jobs at once. */
  slots: number;
  clock: Clock;
  random: Random;
  log: Log;
  /** What handlers get to end by themselves when the node stops; 2 s by default. */
  unwindMs?: number;
  /** The longest pause between two claims while the control plane does not answer; 30 s by default. */
  mostAwayMs?: number;
};

const UNWIND_MS = 2_000;

const AWAY = { firstMs: 500, mostMs: 30_000 } as const;
/** An answer without a job that comes sooner than this was not waited for: whoever gave it is about to stop. */
const SOON_MS = 1_000;

/**
 * Runs the jobs of some kinds on this node, as many at once as it has slots: claims as many as there is room for, keeps
 * their leases, and says what became of them.
 *
 * A handler that was told to stop and goes on can no longer write, and nobody waits for it; but its slot counts as taken
 * until it ends. Else a node whose handlers hang would take on more and more of them, until its memory is gone.
 */
export class JobRunner {
  readonly #options: JobRunnerOptions;
  readonly #handlers: ReadonlyMap<string, JobHandler>;
  readonly #runs = new Set<JobRun>();
  readonly #closing = new AbortController();
  readonly #backoff: Backoff;
  #slotFreed = Promise.withResolvers<void>();
  #refused: NodeRefused | undefined;
  #working: Promise<void> | undefined;
  #stopListening: (() => void) | undefined;

  constructor(options: JobRunnerOptions) {
    this.#options = options;
    this.#handlers = new Map(options.handlers.map((handler) => [handler.kind, handler]));
    const { random, mostAwayMs = AWAY.mostMs } = options;
    this.#backoff = new Backoff({ random, firstMs: AWAY.firstMs, mostMs: mostAwayMs });
  }

  /** Slots that are taken. */
  get busy(): number {
    return this.#runs.size;
  }

  /**
   * Claims and runs jobs until `close`, `drain` or `stop`. Resolves when nothing more is claimed; rejects with
   * `NodeRefused` when the fabric does not take this node, and then everything is stopped.
   */
  run(): Promise<void> {
    this.#working ??= this.#work();
    return this.#working;
  }

  /**
   * Runs a job that this node holds since an earlier life of it, whose lease was renewed just now: `askedAtMs` is when
   * that was asked for, on the monotonic clock. It takes a slot, be there one or not. Resolves with how the run ended.
   */
  adopt(job: LeasedJob, askedAtMs: number): Promise<RunOutcome> {
    const handler = this.#handlers.get(job.kind);
    if (handler === undefined) throw new Error(`no handler for jobs of the kind ${job.kind}`);
    return this.#start(job, handler, askedAtMs);
  }

  /** Claims nothing more; what runs, runs on. */
  close(): void {
    this.#closing.abort(new EngineError("unavailable", "the node stops"));
    this.#slotFreed.resolve();
  }

  /**
   * Claims nothing more, gives what runs `graceMs` to end, then tells it to stop and gives its jobs back. Resolves some
   * seconds after the grace at most.
   */
  async drain(graceMs: number): Promise<void> {
    this.close();
    // Who called `run` hears how it ended.
    await this.#working?.catch(() => undefined);
    const grace = new AbortController();
    const allEnded = Promise.all([...this.#runs].map(({ ended }) => ended));
    await Promise.race([allEnded, pause(this.#options.clock, graceMs, grace.signal)]);
    grace.abort();
    await Promise.all([...this.#runs].map((run) => run.giveBack()));
    this.#stopListening?.();
  }

  /** Ends at once: handlers are told, and nothing more is written. */
  stop(): void {
    this.close();
    for (const run of this.#runs) run.abandon();
    this.#stopListening?.();
  }

  async #work(): Promise<void> {
    this.#stopListening = this.#options.port.onCancel((jobId) => {
      for (const run of this.#runs) if (run.job.id === jobId && run.isHeld) run.cancel();
    });
    const { signal } = this.#closing;
    while (!signal.aborted) {
      if (this.#runs.size < this.#options.slots) await this.#claim(signal);
      else await this.#slotFreed.promise;
    }
    if (this.#refused === undefined) return;
    this.stop();
    throw this.#refused;
  }

  async #claim(signal: AbortSignal): Promise<void> {
    const { port, slots, clock, random, log } = this.#options;
    const askedAtMs = clock.monotonicMs();
    const max = Math.min(slots - this.#runs.size, FABRIC_LIMITS.claimJobs);
    try {
      const kinds = [...this.#handlers.keys()];
      const jobs = await port.claim({ kinds, max, waitMs: FABRIC_LIMITS.claimWaitMs, signal });
      this.#backoff.reset();
      await Promise.all(jobs.map((job) => this.#take(job, askedAtMs)));
      const wasSoon = jobs.length === 0 && clock.monotonicMs() - askedAtMs < SOON_MS;
      if (wasSoon) await pause(clock, SOON_MS * (0.5 + random.next() / 2), signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof NodeRefused) {
        this.#refuse(error);
        return;
      }
      const pauseMs = this.#backoff.next();
      log.warn({ reason: messageOf(error), pauseMs: Math.round(pauseMs) }, "jobs could not be claimed");
      await pause(clock, pauseMs, signal);
    }
  }

  /** Runs a job; one that came too late is given back. */
  async #take(job: Job, askedAtMs: number): Promise<void> {
    const { port, log } = this.#options;
    const handler = this.#handlers.get(job.kind);
    if (handler === undefined || this.#closing.signal.aborted) {
      await port.release(holdOf(job)).catch((error: unknown) => {
        log.warn({ jobId: job.id, reason: messageOf(error) }, "a job could not be given back; its lease will end");
      });
      return;
    }
    void this.#start(job, handler, askedAtMs);
  }

  #start(job: LeasedJob, handler: JobHandler, askedAtMs: number): Promise<RunOutcome> {
    const { unwindMs = UNWIND_MS } = this.#options;
    const onRefused = (error: NodeRefused) => this.#refuse(error);
    const run = new JobRun({ ...this.#options, unwindMs, handler, job, askedAtMs, onRefused });
    this.#runs.add(run);
    void run.ended.then(() => {
      this.#runs.delete(run);
      this.#slotFreed.resolve();
      this.#slotFreed = Promise.withResolvers();
    });
    return run.ended;
  }

  #refuse(error: NodeRefused): void {
    this.#refused ??= error;
    this.close();
  }
}
