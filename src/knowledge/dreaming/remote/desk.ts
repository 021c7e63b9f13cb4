import type { Clock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import type { Fabric } from "../../../fabric/fabric.ts";
import { JobFailure } from "../../../fabric/handler.ts";
import type { Hold, Job } from "../../../fabric/job.ts";
import type { Failure } from "../../../fabric/fail.ts";
import { credentialsStatement, heldStatement } from "../../../fabric/leased-job.ts";
import { isLeaseLost } from "../../../fabric/refusals.ts";
import { isPassing } from "../../../fabric/runner-failure.ts";
import { toFields, type EngineFields } from "../../agent/engines/fields.ts";
import { maxOutputTokensOf } from "../../agent/engines/open-engine.ts";
import { SET_IT } from "../../agent/engines/target.ts";
import { RunStopped } from "../../agent/run/run-end.ts";
import type { EngineSource } from "../../agent/run/service.ts";
import { DREAM_JOB } from "../dream-job.ts";
import { DreamRun, failDream, findDream, resultOf, stateOfNew, type DreamRunDeps } from "../dream-run.ts";
import { dreamFailureOf, toJobFailure } from "../failure.ts";
import type { DreamAnswer, DreamResult, Question } from "../loop.ts";
import type { RunProgress } from "../runs.ts";
import type { Place } from "../session.ts";
import type { RemoteDream, RemoteDreamStore, StoredDream } from "./store.ts";

export type DreamDeskDeps = DreamRunDeps & {
  fabric: Pick<Fabric, "leasedJob" | "progress">;
  engines: Pick<EngineSource, "current">;
  remote: RemoteDreamStore;
  clock: Clock;
};

/** How a dream is over: what it came to, or how its job is to be failed. */
export type DreamOver = { result: DreamResult } | { failure: Failure };

/** Of requests that change the same dream at once all but one begin again. */
const TRIES = 5;

/**
 * Dreams whose model a worker asks: hands out the questions and takes the answers of whoever holds the job, under its fence.
 * The worker is shown the questions and nothing else; what it hands in is checked and committed here, as that of a dream in
 * this process.
 */
export class DreamDesk {
  readonly #deps: DreamDeskDeps;

  constructor(deps: DreamDeskDeps) {
    this.#deps = deps;
  }

  /**
   * The next question, and the engine that it is for; the same events again until they are answered. Rejects with
   * `lease_lost`, `conflict` where the job is to be cancelled, `not_found` for a job of another kind, and for the moment with
   * `unavailable`.
   */
  async next(hold: Hold, signal: AbortSignal): Promise<{ question: Question; engine: EngineFields } | DreamOver> {
    for (let i = 0; i < TRIES; i++) {
      const job = await this.#job(hold);
      const { place, stored, over } = await this.#opened(hold, job);
      if (over !== undefined) return over;
      if (stored === undefined) {
        const failure = await this.#begin(hold, job, place);
        if (failure !== undefined) return { failure };
        continue;
      }
      let progress: RunProgress | undefined;
      const run = this.#run(hold, { place, stored, signal, onProgress: (latest) => (progress = latest) });
      const step = await this.#settled(hold, { job, place, signal }, () => run.next());
      if ("failure" in step || "result" in step) return step;
      if (!(await this.#save(hold, stored))) continue;
      const { cancelRequested } = await this.#deps.fabric.progress(hold, progress);
      if (cancelRequested) throw cancelled(hold);
      return { question: step.question, engine: stored.engine };
    }
    throw busy();
  }

  /**
   * Takes the answer to a question, once: the same answer again is like the first. Resolves to how the dream is over, if that
   * was the last one. Rejects as `next` does, and with `conflict` for an answer to another question.
   */
  async apply(
    hold: Hold,
    { position, answer, signal }: { position: string; answer: DreamAnswer; signal: AbortSignal },
  ): Promise<DreamOver | undefined> {
    for (let i = 0; i < TRIES; i++) {
      const job = await this.#job(hold);
      const { place, stored, over } = await this.#opened(hold, job);
      if (over !== undefined) return over;
      if (stored === undefined) throw new EngineError("conflict", "no question of this dream waits for an answer");
      if (stored.applied === position) return undefined;
      const run = this.#run(hold, { place, stored, signal, onProgress: () => {} });
      const outcome = await this.#settled(hold, { job, place, signal }, async () => {
        const result = await run.apply(position, answer);
        return result && { result };
      });
      if (outcome !== undefined) return outcome;
      if (await this.#save(hold, { ...stored, applied: position })) return undefined;
    }
    throw busy();
  }

  /** The job of that hold, which is a dream that goes on. */
  async #job(hold: Hold): Promise<Job> {
    const job = await this.#deps.fabric.leasedJob(hold);
    if (job.kind !== DREAM_JOB.name) {
      throw new EngineError("not_found", `job ${job.id} is no dream: it is of the kind ${job.kind}`);
    }
    if (job.cancelRequested) throw cancelled(hold);
    return job;
  }

  async #opened(
    hold: Hold,
    job: Job,
  ): Promise<
    | { place: Place; stored: StoredDream | undefined; over?: undefined }
    | { place?: undefined; stored?: undefined; over: DreamOver }
  > {
    try {
      const { place, run } = await findDream(this.#deps, job);
      if (run.status === "done") return { over: { result: resultOf(run) } };
      const stored = await this.#deps.remote.load(hold);
      // The answer that it failed with may not have arrived.
      if (stored !== undefined && run.status === "failed" && run.error !== undefined) {
        return { over: { failure: toJobFailure({ ...run.error, retryable: false, isKnown: true }).failure } };
      }
      return { place, stored };
    } catch (error) {
      if (error instanceof JobFailure) return { over: { failure: error.failure } };
      throw error;
    }
  }

  /** Without an engine nothing is read: resolves to how the job is to be failed. */
  async #begin(hold: Hold, job: Job, place: Place): Promise<Failure | undefined> {
    const { engines, records, runs, remote } = this.#deps;
    try {
      const config = await engines.current();
      if (config === undefined) throw new EngineError("not_configured", `the agent has no engine: ${SET_IT}`);
      const { kind, model, credentialId } = config;
      const dream = await stateOfNew(this.#deps, place, maxOutputTokensOf(config.extras));
      const state: RemoteDream = { dream, engine: toFields(config) };
      // Another request of the same worker may have begun it: then its state is there.
      await records.transact([
        heldStatement(hold),
        remote.beginStatement(hold, state),
        runs.startStatement(place.runId, { engine: kind, model, workerId: hold.holder }),
        credentialsStatement(hold, credentialId === null ? [] : [credentialId]),
      ]);
      return undefined;
    } catch (error) {
      return await this.#failed(hold, { job, place }, error);
    }
  }

  #run(
    hold: Hold,
    {
      place,
      stored,
      signal,
      onProgress,
    }: { place: Place; stored: StoredDream; signal: AbortSignal; onProgress: (progress: RunProgress) => void },
  ): DreamRun {
    const { clock, remote } = this.#deps;
    const untilMs = clock.monotonicMs() + stored.dream.settings.max_minutes * 60_000 - stored.ageMs;
    const timeLeftMs = () => Math.max(0, Math.round(untilMs - clock.monotonicMs()));
    const alsoAtEnd = () => [remote.endStatement(hold, stored.version)];
    return new DreamRun(this.#deps, { place, hold, stop: signal, timeLeftMs, onProgress, alsoAtEnd }, stored.dream);
  }

  /** Resolves to whether nobody was faster. */
  async #save(hold: Hold, { dream, engine, applied, version }: StoredDream): Promise<boolean> {
    const { records, remote } = this.#deps;
    const saved = remote.saveStatement(hold, version, { dream, engine, applied });
    return (await records.transact([heldStatement(hold), saved])).done;
  }

  async #settled<T>(
    hold: Hold,
    { job, place, signal }: { job: Job; place: Place; signal: AbortSignal },
    step: () => Promise<T>,
  ): Promise<T | DreamOver> {
    try {
      return await step();
    } catch (error) {
      // The worker left, and asks again.
      if (signal.aborted) throw error;
      if (isLeaseLost(error)) {
        // The same request, sent again while the first one was under way, has ended the run.
        const run = await this.#deps.runs.get(place.databaseId, place.runId);
        await this.#deps.fabric.leasedJob(hold);
        if (run?.status === "done") return { result: resultOf(run) };
      }
      return { failure: await this.#failed(hold, { job, place }, error) };
    }
  }

  /** How the job is to be failed; throws what passes, or is about the request and not about the dream. */
  async #failed(hold: Hold, { job, place }: { job: Job; place: Place }, error: unknown): Promise<Failure> {
    if (!isOfDream(error)) throw error;
    const failed = await failDream(this.#deps, { runId: place.runId, hold, attempt: job.attempt }, error);
    if (failed instanceof JobFailure) return failed.failure;
    await this.#deps.fabric.leasedJob(hold);
    return toJobFailure({ ...dreamFailureOf(error), retryable: false }).failure;
  }
}

function isOfDream(error: unknown): boolean {
  if (error instanceof RunStopped) return true;
  if (!(error instanceof EngineError)) return false;
  return (
    error.code === "not_configured" || error.code === "lease_lost" || !(isPassing(error) || error.code === "conflict")
  );
}

function cancelled({ jobId }: Hold): EngineError {
  return new EngineError("conflict", `job ${jobId} was cancelled`);
}

function busy(): EngineError {
  const details = { headers: { "Retry-After": "1" } };
  return new EngineError("unavailable", "other requests of this worker go on with the same dream: ask again", details);
}
