import type { Clock } from "../../core/clock.ts";
import type { JobHandler, RunningJob } from "../../fabric/handler.ts";
import { holdOf } from "../../fabric/job.ts";
import { heldStatement } from "../../fabric/leased-job.ts";
import type { OpenedEngine } from "../agent/engines/engine.ts";
import type { EngineSource } from "../agent/run/service.ts";
import { askModel } from "./ask-model.ts";
import { lost } from "./commit.ts";
import { DREAM_JOB, dreamerOf } from "./dream-job.ts";
import { DreamRun, failDream, findDream, resultOf, stateOfNew, type DreamRunDeps } from "./dream-run.ts";
import { answerPages, type DreamResult } from "./loop.ts";
import type { RunProgress } from "./runs.ts";
import type { Place } from "./session.ts";

export type DreamDeps = DreamRunDeps & { engines: Pick<EngineSource, "open">; clock: Clock };

/** Runs dreams in this process, which also asks the model: see `DreamRun`. */
export function dreamHandler(deps: DreamDeps): JobHandler {
  return { kind: DREAM_JOB.name, run: (job) => dream(deps, job) };
}

async function dream(deps: DreamDeps, job: RunningJob): Promise<DreamResult> {
  const { place, run } = await findDream(deps, job);
  // A process committed it, and died before it could say so.
  if (run.status === "done") return resultOf(run);
  try {
    return await dreamAt(deps, job, place);
  } catch (error) {
    if (job.signal.aborted) throw error;
    throw await failDream(deps, { runId: place.runId, hold: holdOf(job), attempt: job.attempt }, error);
  }
}

async function dreamAt(deps: DreamDeps, job: RunningJob, place: Place): Promise<DreamResult> {
  const { engines, clock } = deps;
  // Without an engine nothing is read.
  const origin = { caller: dreamerOf(place.database), address: "", requestId: `dream-${place.runId}` };
  const engine = await engines.open(origin);
  await start(deps, job, place, engine);
  const state = await stateOfNew(deps, place, engine.maxOutputTokens);
  const untilMs = clock.monotonicMs() + state.settings.max_minutes * 60_000;
  const stop = job.signal;
  const options = {
    place,
    hold: holdOf(job),
    stop,
    timeLeftMs: () => untilMs - clock.monotonicMs(),
    onProgress: (progress: RunProgress) => job.progress(progress),
  };
  return await answerPages(new DreamRun(deps, options, state), (question) =>
    askModel(engine, question, { clock, stop }),
  );
}

async function start(
  { records, runs }: DreamDeps,
  job: RunningJob,
  { runId }: Place,
  { kind, modelName }: OpenedEngine,
): Promise<void> {
  const outcome = await records.transact([
    heldStatement(holdOf(job)),
    runs.startStatement(runId, { engine: kind, model: modelName, workerId: undefined }),
  ]);
  if (!outcome.done) throw lost();
}
