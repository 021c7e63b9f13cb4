import { EngineError, messageOf } from "../../core/errors.ts";
import type { RecordStore, Statement } from "../../db/records.ts";
import type { PipelineKind, PipelineRuns, RunChange, RunStats, Watermark } from "../dreaming/runs.ts";
import type { Draft } from "../memory/draft.ts";
import type { MemoryWriter, Operation } from "../memory/writer.ts";

/**
 * How a pipeline commits: its memories, its watermark and the end of its run are there together or not at all, so what it
 * read counts once, whatever dies. A run that has nothing to write leaves no row.
 */
export type PipelineDeps = { records: RecordStore; runs: PipelineRuns; writer: MemoryWriter };

export type Place = {
  databaseId: number;
  kind: PipelineKind;
  /** Where it has read from. */
  from: Watermark;
  /** The language model that it asked. */
  model?: { engine: string; model: string } | undefined;
};

/** What a run came to. */
export type RunOutcome = {
  changes: readonly RunChange[];
  /** How far it has read. */
  position: unknown;
  memoriesWritten: number;
  stats: RunStats;
};

export type RunWork<O extends RunOutcome> = Pick<Operation<O>, "items" | "needs"> & {
  eventsScanned: number;
  plan: (draft: Draft) => O;
  /** Written with it. */
  also?: readonly Statement[] | undefined;
};

/** Advances without a run, where there was nothing to write but what is written besides. */
export async function advance(
  { records, runs }: Pick<PipelineDeps, "records" | "runs">,
  { databaseId, kind, from }: Place,
  position: unknown,
  also: readonly Statement[] = [],
): Promise<void> {
  if (JSON.stringify(position) === from.text && also.length === 0) return;
  const { done } = await records.transact([runs.advanceStatement(databaseId, kind, from, position), ...also]);
  if (!done) throw overtaken(kind);
}

export async function runOnce<O extends RunOutcome>(
  { runs, writer }: Pick<PipelineDeps, "runs" | "writer">,
  { databaseId, kind, from, model }: Place,
  { items, needs, eventsScanned, plan, also: besides = [] }: RunWork<O>,
): Promise<O> {
  const id = await runs.begin({ databaseId, kind, trigger: "poll", ...model });
  try {
    return await writer.write(databaseId, {
      items,
      needs,
      plan,
      also: ({ changes, position, memoriesWritten, stats }) => [
        runs.advanceStatement(databaseId, kind, from, position),
        ...runs.changeStatements(id, changes),
        runs.finishStatement(id, { status: "done", eventsScanned, memoriesWritten, stats }),
        ...besides,
      ],
      refused: () => overtaken(kind),
    });
  } catch (error) {
    const code = error instanceof EngineError ? error.code : "internal";
    // If the commit went through and its answer was lost, the run has ended already, and stays as it is.
    await runs.fail(id, { databaseId, kind }, { code, message: messageOf(error) });
    throw error;
  }
}

function overtaken(kind: PipelineKind): EngineError {
  return new EngineError("conflict", `another process has advanced the pipeline ${kind}: what it read is read again`);
}
