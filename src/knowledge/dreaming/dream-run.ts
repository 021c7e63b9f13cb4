import type { Catalog } from "../../catalog/catalog.ts";
import { EngineError } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { RecordStore } from "../../db/records.ts";
import { JobFailure } from "../../fabric/handler.ts";
import type { Hold, Job } from "../../fabric/job.ts";
import { readPayload } from "../../fabric/job-payload.ts";
import { heldStatement } from "../../fabric/leased-job.ts";
import { readSettings } from "../memory/settings.ts";
import { commitDream, type CommitDeps, type CommitOptions } from "./commit.ts";
import { dreamPayload } from "./dream-job.ts";
import { dreamFailureOf, toJobFailure } from "./failure.ts";
import { DREAMING_LIMITS } from "./limits.ts";
import type { DreamAnswer, DreamPages, DreamResult, Question } from "./loop.ts";
import type { PipelineRun } from "./runs.ts";
import {
  DreamSession,
  newState,
  type DreamState,
  type Place,
  type SessionDeps,
  type SessionOptions,
} from "./session.ts";

export type DreamRunDeps = SessionDeps &
  CommitDeps & { catalog: Pick<Catalog, "database">; records: RecordStore; log: Log };

export type DreamRunOptions = SessionOptions & CommitOptions;

/**
 * A dream: reads the events since the watermark, hands out questions about them, checks each proposal, and commits what is
 * accepted with the new watermark and the run's end in one transaction, under the fence of the job. So what a run writes is
 * there once, whenever a process dies: until the commit there is nothing of it, and from then on the run is done.
 */
export class DreamRun implements DreamPages<Question> {
  readonly #deps: DreamRunDeps;
  readonly #options: DreamRunOptions;
  readonly #state: DreamState;
  readonly #session: DreamSession;

  constructor(deps: DreamRunDeps, options: DreamRunOptions, state: DreamState) {
    this.#deps = deps;
    this.#options = options;
    this.#state = state;
    this.#session = new DreamSession(deps, options, state);
  }

  async next(): Promise<{ question: Question } | { result: DreamResult }> {
    const question = await this.#session.next();
    return question === undefined ? { result: await this.#commit() } : { question };
  }

  async apply(position: string, answer: DreamAnswer): Promise<DreamResult | undefined> {
    if (this.#state.asked?.position !== position) {
      throw new EngineError("conflict", "the answer is to another question than the one that waits for its answer");
    }
    this.#session.apply(answer);
    return this.#state.isOver ? await this.#commit() : undefined;
  }

  #commit(): Promise<DreamResult> {
    return commitDream(this.#deps, this.#options, this.#state);
  }
}

/** The run of a job, and where it is. Throws `JobFailure` where one of them is not there any more. */
export async function findDream(
  { catalog, runs }: Pick<DreamRunDeps, "catalog" | "runs">,
  job: Pick<Job, "payload" | "database" | "kind">,
): Promise<{ place: Place; run: PipelineRun }> {
  const { run_id: runId, mode, focus } = readPayload(dreamPayload, job);
  const found = await catalog.database(job.database ?? "");
  if (found === undefined) throw new JobFailure({ error: "the database of the dream is not there any more" });
  const run = await runs.get(found.id, runId);
  if (run === undefined) throw new JobFailure({ error: `there is no run ${runId} of this database` });
  return { place: { databaseId: found.id, database: found.name, runId, mode, focus: focus ?? undefined }, run };
}

/** What a dream begins with. */
export async function stateOfNew(
  { records, runs }: Pick<DreamRunDeps, "records" | "runs">,
  { databaseId, mode }: Place,
  maxOutputTokens: number,
): Promise<DreamState> {
  const [settings, watermark] = await Promise.all([
    readSettings(records, databaseId),
    runs.watermark(databaseId, "dreaming"),
  ]);
  return newState({ settings: settings.dreaming, watermark, maxOutputTokens, mode });
}

/** What the job came to, if the run is done. */
export function resultOf({ id, eventsScanned, memoriesWritten }: PipelineRun): DreamResult {
  return { run_id: id, events_scanned: eventsScanned, memories_written: memoriesWritten };
}

/**
 * How an attempt at a dream that failed fails its job. A failure for good is the run's end, too, which is written before the
 * job's. Resolves to the error itself where the job's own rules say what becomes of it.
 */
export async function failDream(
  { records, runs, metrics, log }: Pick<DreamRunDeps, "records" | "runs" | "metrics" | "log">,
  { runId, hold, attempt }: { runId: string; hold: Hold; attempt: number },
  error: unknown,
): Promise<unknown> {
  const failure = dreamFailureOf(error);
  metrics.runs.inc({ outcome: failure.code });
  const isLast = attempt >= DREAMING_LIMITS.attempts;
  if (failure.retryable && !isLast) return failure.isKnown ? toJobFailure(failure) : error;
  if (!failure.isKnown) log.error({ err: error, runId }, "a dream failed");
  const end = { status: "failed", eventsScanned: 0, memoriesWritten: 0, stats: {} } as const;
  const outcome = await records.transact([
    heldStatement(hold),
    runs.finishStatement(runId, { ...end, error: { code: failure.code, message: failure.message } }),
  ]);
  // Then the job is somebody else's, and the run with it.
  if (!outcome.done) return error;
  return toJobFailure({ ...failure, retryable: false });
}
