import { z } from "zod";
import type { Caller } from "../../../auth/caller.ts";
import type { DatabaseRecord } from "../../../catalog/catalog.ts";
import { nextTurn, type Clock } from "../../../core/clock.ts";
import { foldName } from "../../../core/names.ts";
import type { IdSource } from "../../../core/ids.ts";
import type { RunChange } from "../../dreaming/runs.ts";
import type { Draft } from "../../memory/draft.ts";
import { accepted, nodeInput } from "../../memory/input.ts";
import type { NodeRecord } from "../../memory/model.ts";
import { ALL_REALMS } from "../../memory/realms.ts";
import { nodeKey, saveNode } from "../../memory/save.ts";
import { FIREHOSE_TABLE } from "../../memory/service.ts";
import type { MemoryStore } from "../../memory/store.ts";
import { PIPELINE_LIMITS } from "../limits.ts";
import type { PipelineMetrics } from "../metrics.ts";
import { advance, runOnce, type PipelineDeps, type RunOutcome } from "../run.ts";
import { Gathering, recentWork, type Failure } from "./gathering.ts";
import { learningId, learningOf } from "./learning.ts";
import { observed } from "./observation.ts";
import { added, tallySchema, type Tally } from "./tally.ts";

/** Reads the rows of a table in the order in which they came, each once. Queries are another feature's. */
export interface EventReader {
  read(request: {
    caller: Caller;
    database: string;
    table: string;
    /** Where the last page ended; undefined for the first row there is. */
    position: EventPosition | undefined;
    rows: number;
    bytes: number;
    signal: AbortSignal;
  }): Promise<{
    /** Each `text` is a JSON object. */
    rows: readonly { text: string }[];
    /** Undefined where there is no such table. */
    position: EventPosition | undefined;
    isEnd: boolean;
  }>;
}

export type EventPosition = {
  tableId: number;
  newestAt: string | undefined;
  next: { snapshot: number; row: number } | { at: string; skip: number };
};

/**
 * Makes a memory of each failure that repeats in the firehose of a database. What was seen once waits in the watermark,
 * which is committed with the memories: each row counts once, whatever dies.
 */
export type CorrelationDeps = PipelineDeps & {
  store: MemoryStore;
  arrivals: EventReader;
  newId: IdSource;
  clock: Clock;
  metrics: PipelineMetrics;
};

const KIND = "ci_correlate";

const correlationPosition = z.object({
  arrivals: z
    .object({
      tableId: z.number(),
      newestAt: z.string().optional(),
      next: z.union([
        z.object({ snapshot: z.number(), row: z.number() }),
        z.object({ at: z.string(), skip: z.number() }),
      ]),
    })
    .optional(),
  recent: recentWork,
  /** Failures that were seen once, by their fingerprint; the one that was seen last at the end. */
  pending: z.array(z.tuple([z.string(), tallySchema])),
});
type Position = z.output<typeof correlationPosition>;
type Pending = Position["pending"];

/** Rows that are looked at before others have their turn: some milliseconds. */
const ROWS_PER_TURN = 50;

/** From how many occurrences on a failure is remembered. */
const REPEATED = 2;

/** Resolves to whether there is more to read than one run takes. */
export async function correlate(
  deps: CorrelationDeps,
  database: DatabaseRecord,
  signal: AbortSignal,
): Promise<boolean> {
  const { runs, store, metrics } = deps;
  const from = await runs.watermark(database.id, KIND);
  const before: Position =
    from.position === undefined ? { recent: [], pending: [] } : correlationPosition.parse(from.position);
  const { gathering, arrivals, isEnd } = await gather(deps, database, before, signal);
  // There is no firehose.
  if (arrivals === undefined) return false;
  const { found, recent } = gathering;
  const place = { databaseId: database.id, kind: KIND, from } as const;
  const ids = found.map(({ fingerprint }) => learningId(fingerprint));
  const known = new Map(
    (await store.known(database.id, "node", ids)).map(({ current }) => [current?.record.id, current]),
  );
  const foreseen = countUp(found, before.pending, (id) => {
    const version = known.get(id);
    return version?.kind === "node" && !version.erased ? version.record : undefined;
  });
  if (foreseen.repeated.length === 0) {
    await advance(deps, place, { arrivals, recent, pending: foreseen.pending });
  } else {
    const { outcomes } = await runOnce(deps, place, {
      items: found.length,
      needs: { keys: ids.map(nodeKey) },
      eventsScanned: gathering.rows,
      plan: (draft) => {
        const { repeated, pending } = countUp(found, before.pending, (id) => draft.node(id));
        const saved = repeated.map((failure, proposal) => save(draft, failure, proposal, deps.newId));
        const outcomes = countsOf(saved.map(({ outcome }) => outcome));
        return {
          changes: saved.flatMap(({ change }) => (change === undefined ? [] : [change])),
          position: { arrivals, recent, pending },
          memoriesWritten: saved.length,
          stats: { failures: gathering.failures, learnings: outcomes, seen_once: pending.length },
          outcomes,
        } satisfies RunOutcome & { outcomes: Record<string, number> };
      },
    });
    for (const [outcome, count] of Object.entries(outcomes)) metrics.learnings.inc({ outcome }, count);
  }
  metrics.events.inc(gathering.rows);
  metrics.failures.inc(gathering.failures);
  return !isEnd;
}

/** Reads on, as far as one commit goes. */
async function gather(
  { arrivals, clock }: CorrelationDeps,
  { name }: DatabaseRecord,
  { arrivals: before, recent }: Position,
  signal: AbortSignal,
): Promise<{ gathering: Gathering; arrivals: EventPosition | undefined; isEnd: boolean }> {
  const gathering = new Gathering(recent);
  const untilMs = clock.monotonicMs() + PIPELINE_LIMITS.turnMs / 2;
  let position: EventPosition | undefined = before && { ...before, newestAt: before.newestAt };
  for (let page = 1; ; page++) {
    const read = await arrivals.read({
      caller: callerFor(name),
      database: name,
      table: FIREHOSE_TABLE,
      position,
      rows: PIPELINE_LIMITS.pageRows,
      bytes: PIPELINE_LIMITS.pageBytes,
      signal,
    });
    for (const [i, { text }] of read.rows.entries()) {
      gathering.add(observed(JSON.parse(text) as Record<string, unknown>));
      if (i % ROWS_PER_TURN === ROWS_PER_TURN - 1) await nextTurn();
    }
    position = read.position;
    const isFull = page >= PIPELINE_LIMITS.pages || gathering.found.length >= PIPELINE_LIMITS.fingerprints;
    if (read.isEnd || isFull || clock.monotonicMs() > untilMs) {
      return { gathering, arrivals: position, isEnd: read.isEnd };
    }
  }
}

/** This program itself, in that database alone. */
function callerFor(database: string): Caller {
  return { subject: KIND, kind: "internal", role: "read", databases: [foldName(database)] };
}

/** Parts what was found into failures that are remembered, or now repeat, and those that were seen once. */
function countUp(
  found: readonly Failure[],
  before: Pending,
  learning: (id: string) => NodeRecord | undefined,
): { repeated: Failure[]; pending: Pending } {
  const pending = new Map<string, Tally>(before);
  const repeated: Failure[] = [];
  for (const failure of found) {
    const { fingerprint } = failure;
    const tally = added(pending.get(fingerprint), failure.tally);
    pending.delete(fingerprint);
    const isRemembered = learning(learningId(fingerprint)) !== undefined;
    if (isRemembered || tally.occurrences >= REPEATED) repeated.push({ ...failure, tally });
    else pending.set(fingerprint, tally);
  }
  return { repeated, pending: [...pending].slice(-PIPELINE_LIMITS.pending) };
}

function save(draft: Draft, failure: Failure, proposal: number, newId: IdSource) {
  const id = learningId(failure.fingerprint);
  const before = draft.node(id);
  const versionBefore = draft.version("node", id)?.record.version;
  const input = accepted(nodeInput, learningOf(failure, before));
  const { outcome, record } = saveNode(input, ALL_REALMS, newId).plan(draft);
  const change: RunChange | undefined =
    record.version === versionBefore
      ? undefined
      : { kind: "node", id, proposal, versionBefore, versionAfter: record.version };
  return { outcome, change };
}

function countsOf(outcomes: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}
