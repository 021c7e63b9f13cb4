import { EngineError } from "../../core/errors.ts";
import type { Statement } from "../../db/records.ts";
import type { Hold } from "../../fabric/job.ts";
import { heldStatement } from "../../fabric/leased-job.ts";
import { realmRights } from "../memory/realms.ts";
import type { MemoryService } from "../memory/service.ts";
import type { MemoryStore } from "../memory/store.ts";
import type { Operation } from "../memory/writer.ts";
import { dreamerOf } from "./dream-job.ts";
import type { DreamResult } from "./loop.ts";
import { comparedNodes, DreamPlanner, endedEdges, needsOf, type DreamPlan } from "./plan.ts";
import type { Refusal } from "./resolve.ts";
import type { DreamingMetrics } from "./metrics.ts";
import type { PipelineRuns, RunProgress, RunStats } from "./runs.ts";
import type { DreamState, Place } from "./session.ts";

export type CommitDeps = {
  memory: Pick<MemoryService, "commit">;
  store: MemoryStore;
  runs: PipelineRuns;
  metrics: DreamingMetrics;
};

export type CommitOptions = {
  place: Place;
  hold: Hold;
  onProgress: (progress: RunProgress) => void;
  /** Further statements of the transaction that ends the run. */
  alsoAtEnd?: (() => readonly Statement[]) | undefined;
};

/** Commits what a dream was proposed, with its watermark and its end, under the fence of its job. Rejects with `lease_lost`. */
export async function commitDream(
  { memory, runs, store, metrics }: CommitDeps,
  { place, hold, onProgress, alsoAtEnd }: CommitOptions,
  state: DreamState,
): Promise<DreamResult> {
  const { databaseId, database, runId, focus } = place;
  const { resolved, refused, eventsScanned, watermark, position, settings } = state;
  const proposals = resolved.length + refused.length;
  onProgress({ phase: "writing", events: eventsScanned, proposals, written: 0 });
  const entities = await entitiesOf(store, databaseId, state);
  const edgesWritten = await runs.edgesWritten(databaseId, endedEdges(resolved));
  const rights = realmRights(dreamerOf(database));
  const { realms, max_writes: maxWrites } = settings;
  const context = { runId, realms, rights, maxWrites, entities, edgesWritten };
  const operation: Operation<DreamPlan> = {
    items: Math.max(1, resolved.length),
    needs: needsOf(resolved),
    plan: (draft) => new DreamPlanner(draft, context).plan(resolved),
    also: (plan) => [
      heldStatement(hold),
      runs.finishStatement(runId, {
        status: "done",
        eventsScanned,
        memoriesWritten: nodesOf(plan),
        stats: statsOf(state, plan),
      }),
      // A focus may have had the model pass over whatever it is not about.
      ...(focus === undefined ? [runs.advanceStatement(databaseId, "dreaming", watermark, position)] : []),
      ...runs.changeStatements(runId, plan.changes),
      ...(alsoAtEnd?.() ?? []),
    ],
    refused: lost,
  };
  const plan = await memory.commit(databaseId, operation);
  metrics.runs.inc({ outcome: "done" });
  metrics.events.inc(eventsScanned);
  const acceptedCount = Object.values(plan.accepted).reduce((sum, count) => sum + count, 0);
  metrics.proposals.inc({ outcome: "accepted" }, acceptedCount);
  for (const outcome of [...refused, ...plan.refused]) metrics.proposals.inc({ outcome });
  onProgress({ phase: "done", events: eventsScanned, proposals, written: plan.changes.length });
  return { run_id: runId, events_scanned: eventsScanned, memories_written: nodesOf(plan) };
}

/** What the commit, and the beginning, of a dream is refused with. */
export function lost(): EngineError {
  return new EngineError("lease_lost", "the dream is another process's, or another dream has read these events");
}

/** Which of the records that decide what may be ended are entities. */
async function entitiesOf(
  store: MemoryStore,
  databaseId: number,
  { resolved, shownEntities }: DreamState,
): Promise<Set<string>> {
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

function nodesOf({ changes }: DreamPlan): number {
  return changes.filter(({ kind }) => kind === "node").length;
}

function statsOf(state: DreamState, plan: DreamPlan): RunStats {
  const { resolved, refused, usage, questions, isBehind, skippedEvents, failure } = state;
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
