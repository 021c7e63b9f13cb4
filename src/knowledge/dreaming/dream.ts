import type { Catalog } from "../../catalog/catalog.ts";
import type { Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Random } from "../../core/random.ts";
import type { RecordStore } from "../../db/records.ts";
import { JobFailure, type JobHandler, type RunningJob } from "../../fabric/handler.ts";
import { holdOf } from "../../fabric/job.ts";
import { readPayload } from "../../fabric/job-payload.ts";
import { heldStatement } from "../../fabric/leased-job.ts";
import { isPassing } from "../../fabric/runner-failure.ts";
import type { OpenedEngine } from "../agent/engines/engine.ts";
import { RunStopped } from "../agent/run/run-end.ts";
import type { EngineSource } from "../agent/run/service.ts";
import { realmRights } from "../memory/realms.ts";
import type { MemoryService } from "../memory/service.ts";
import { readSettings, type MemorySettings } from "../memory/settings.ts";
import type { MemoryStore } from "../memory/store.ts";
import type { Operation } from "../memory/writer.ts";
import { DREAM_JOB, dreamerOf, dreamPayload } from "./dream-job.ts";
import { Gathering, type Gathered } from "./gather.ts";
import { DREAMING_LIMITS } from "./limits.ts";
import type { DreamingMetrics } from "./metrics.ts";
import { comparedNodes, DreamPlanner, endedEdges, needsOf, type DreamPlan } from "./plan.ts";
import type { EventSource } from "./ports.ts";
import type { Refusal } from "./resolve.ts";
import type { PipelineRuns, RunError, RunStats } from "./runs.ts";

export type DreamDeps = {
  catalog: Pick<Catalog, "database">;
  records: RecordStore;
  memory: Pick<MemoryService, "commit">;
  store: MemoryStore;
  runs: PipelineRuns;
  engines: Pick<EngineSource, "open">;
  events: EventSource;
  clock: Clock;
  random: Random;
  newId: IdSource;
  log: Log;
  metrics: DreamingMetrics;
};

/** What a job of a dream comes to. */
export type DreamResult = { run_id: string; events_scanned: number; memories_written: number };

/**
 * Runs dreams: reads the events since the watermark, has the model propose what to remember, checks each proposal, and
 * commits what is accepted with the new watermark and the run's end in one transaction, under the fence of the job. So
 * what a run writes is there once, whenever a process dies: until the commit there is nothing of it, and from then on the
 * run is done.
 */
export function dreamHandler(deps: DreamDeps): JobHandler {
  return { kind: DREAM_JOB.name, run: (job) => new Dream(deps, job).run() };
}

type Place = { databaseId: number; database: string; runId: string };

class Dream {
  readonly #deps: DreamDeps;
  readonly #job: RunningJob;

  constructor(deps: DreamDeps, job: RunningJob) {
    this.#deps = deps;
    this.#job = job;
  }

  async run(): Promise<DreamResult> {
    const { catalog, runs, metrics } = this.#deps;
    const { run_id: runId } = readPayload(dreamPayload, this.#job);
    const found = await catalog.database(this.#job.database ?? "");
    if (found === undefined) throw new JobFailure({ error: "the database of the dream is not there any more" });
    const place = { databaseId: found.id, database: found.name, runId };
    const before = await runs.get(place.databaseId, runId);
    if (before === undefined) throw new JobFailure({ error: `there is no run ${runId} of this database` });
    // A process committed it, and died before it could say so.
    if (before.status === "done") return resultOf(runId, before);
    try {
      const result = await this.#dream(place);
      metrics.runs.inc({ outcome: "done" });
      return result;
    } catch (error) {
      throw await this.#failed(place, error);
    }
  }

  async #dream(place: Place): Promise<DreamResult> {
    const { records, engines } = this.#deps;
    const settings = (await readSettings(records, place.databaseId)).dreaming;
    // Without an engine nothing is read.
    const origin = { caller: dreamerOf(place.database), address: "", requestId: `dream-${place.runId}` };
    const engine = await engines.open(origin);
    await this.#start(place, engine);
    const gathered = await this.#gather(place, engine, settings);
    return await this.#commit(place, gathered, settings);
  }

  async #start({ runId }: Place, { kind, modelName }: OpenedEngine): Promise<void> {
    const { records, runs } = this.#deps;
    const outcome = await records.transact([
      heldStatement(holdOf(this.#job)),
      runs.startStatement(runId, { engine: kind, model: modelName, workerId: undefined }),
    ]);
    if (!outcome.done) throw lost();
  }

  async #gather(place: Place, engine: OpenedEngine, settings: MemorySettings["dreaming"]): Promise<Gathered> {
    const { mode, focus } = readPayload(dreamPayload, this.#job);
    const { clock } = this.#deps;
    const late = new AbortController();
    const timer = clock.after(settings.max_minutes * 60_000, () => late.abort(), { background: true });
    try {
      return await new Gathering(this.#deps, {
        ...place,
        mode,
        focus: focus ?? undefined,
        engine,
        settings,
        late: late.signal,
        stop: this.#job.signal,
        onProgress: (progress) => this.#job.progress(progress),
      }).run();
    } finally {
      timer.cancel();
    }
  }

  async #commit(place: Place, gathered: Gathered, { realms, max_writes: maxWrites }: MemorySettings["dreaming"]) {
    const { memory, runs, metrics } = this.#deps;
    const { databaseId, runId } = place;
    const { focus } = readPayload(dreamPayload, this.#job);
    const { resolved, eventsScanned, watermark, position } = gathered;
    const proposals = resolved.length + gathered.refused.length;
    this.#job.progress({ phase: "writing", events: eventsScanned, proposals, written: 0 });
    const rights = realmRights(dreamerOf(place.database));
    const entities = await this.#entities(databaseId, gathered);
    const edgesWritten = await runs.edgesWritten(databaseId, endedEdges(resolved));
    const context = { runId, realms, rights, maxWrites, entities, edgesWritten };
    const operation: Operation<DreamPlan> = {
      items: Math.max(1, resolved.length),
      needs: needsOf(resolved),
      plan: (draft) => new DreamPlanner(draft, context).plan(resolved),
      also: (plan) => [
        heldStatement(holdOf(this.#job)),
        runs.finishStatement(runId, {
          status: "done",
          eventsScanned,
          memoriesWritten: nodesOf(plan),
          stats: statsOf(gathered, plan),
        }),
        // A focus may have had the model pass over whatever it is not about.
        ...(focus === null ? [runs.advanceStatement(databaseId, "dreaming", watermark, position)] : []),
        ...runs.changeStatements(runId, plan.changes),
      ],
      refused: lost,
    };
    const plan = await memory.commit(databaseId, operation);
    metrics.events.inc(eventsScanned);
    const acceptedCount = Object.values(plan.accepted).reduce((sum, count) => sum + count, 0);
    metrics.proposals.inc({ outcome: "accepted" }, acceptedCount);
    for (const outcome of [...gathered.refused, ...plan.refused]) metrics.proposals.inc({ outcome });
    this.#job.progress({ phase: "done", events: eventsScanned, proposals, written: plan.changes.length });
    return { run_id: runId, events_scanned: eventsScanned, memories_written: nodesOf(plan) };
  }

  /** Which of the records that decide what may be ended are entities. */
  async #entities(databaseId: number, { resolved, shownEntities }: Gathered): Promise<Set<string>> {
    const { store } = this.#deps;
    const entities = new Set(shownEntities);
    const compared = comparedNodes(resolved);
    const ends = new Set<string>();
    for (const known of await Promise.all(compared.map((id) => store.knownEdgesOf(databaseId, id)))) {
      for (const { current } of known) {
        if (current?.kind === "edge" && !current.erased) ends.add(current.record.src).add(current.record.dst);
      }
    }
    for (const { current } of await store.known(databaseId, "node", [...ends])) {
      if (current?.kind === "node" && !current.erased && current.record.kind === "entity") {
        entities.add(current.record.id);
      }
    }
    return entities;
  }

  /** What the runner is told. A failure for good is the run's end, too, which is written before the job's. */
  async #failed({ runId }: Place, error: unknown): Promise<unknown> {
    const { records, runs, metrics, log } = this.#deps;
    if (this.#job.signal.aborted) return error;
    const failure = failureOf(error);
    metrics.runs.inc({ outcome: failure.code });
    const isLast = this.#job.attempt >= DREAMING_LIMITS.attempts;
    if (failure.retryable && !isLast) return failure.known === undefined ? error : toJobFailure(failure);
    if (failure.known === undefined) log.error({ err: error, runId }, "a dream failed");
    const end = { status: "failed", eventsScanned: 0, memoriesWritten: 0, stats: {}, error: failure } as const;
    const outcome = await records.transact([
      heldStatement(holdOf(this.#job)),
      runs.finishStatement(runId, { ...end, error: { code: failure.code, message: failure.message } }),
    ]);
    // Then the job is somebody else's, and the run with it.
    if (!outcome.done) return error;
    return toJobFailure({ ...failure, retryable: false });
  }
}

type DreamFailure = RunError & { retryable: boolean; retryAfterMs?: number | undefined; known?: true };

/** `known`: its words are for those who asked. */
function failureOf(error: unknown): DreamFailure {
  if (error instanceof RunStopped) {
    const { code, message, retryable, retryAfterMs } = error;
    return { code, message, retryable, retryAfterMs, known: true };
  }
  if (error instanceof EngineError && error.code !== "internal") {
    const { code, message } = error;
    return { code, message, retryable: code !== "not_configured" && isPassing(error), known: true };
  }
  return { code: "internal", message: "unexpected failure; the log of the server says more", retryable: true };
}

function toJobFailure({ code, message, retryable, retryAfterMs }: DreamFailure): JobFailure {
  return new JobFailure({ error: `${code}: ${message}`, retryable, retryAfterMs });
}

function lost(): EngineError {
  return new EngineError("lease_lost", "the dream is another process's, or another dream has read these events");
}

function resultOf(runId: string, run: { eventsScanned: number; memoriesWritten: number }): DreamResult {
  return { run_id: runId, events_scanned: run.eventsScanned, memories_written: run.memoriesWritten };
}

function nodesOf({ changes }: DreamPlan): number {
  return changes.filter(({ kind }) => kind === "node").length;
}

function statsOf(gathered: Gathered, plan: DreamPlan): RunStats {
  const { resolved, refused, usage, questions, isBehind, skippedEvents, failure } = gathered;
  const counts: Partial<Record<Refusal, number>> = {};
  for (const reason of [...refused, ...plan.refused]) counts[reason] = (counts[reason] ?? 0) + 1;
  return {
    proposals: resolved.length + refused.length,
    accepted: plan.accepted,
    refused: counts,
    edges_written: plan.changes.length - nodesOf(plan),
    questions,
    input_tokens: usage.input_tokens,
    output_tokens: usage.output_tokens,
    more_events: isBehind,
    skipped_events: skippedEvents,
    failure: failure === undefined ? null : { code: failure.code, message: failure.message },
  };
}
