import { z } from "zod";
import type { Caller } from "../../../auth/caller.ts";
import type { DatabaseRecord } from "../../../catalog/catalog.ts";
import { nextTurn, type Clock } from "../../../core/clock.ts";
import { foldName } from "../../../core/names.ts";
import type { IdSource } from "../../../core/ids.ts";
import type { Log } from "../../../core/log.ts";
import type { RunChange } from "../../dreaming/runs.ts";
import type { Draft } from "../../memory/draft.ts";
import { accepted, nodeInput } from "../../memory/input.ts";
import { ALL_REALMS } from "../../memory/realms.ts";
import type { Version } from "../../memory/rows.ts";
import { nodeKey, saveNode } from "../../memory/save.ts";
import { FIREHOSE_TABLE } from "../../memory/service.ts";
import type { MemoryStore } from "../../memory/store.ts";
import { PIPELINE_LIMITS } from "../limits.ts";
import type { PipelineMetrics } from "../metrics.ts";
import { advance, runOnce, type PipelineDeps, type RunOutcome } from "../run.ts";
import { failureSchema, Gathering, recentWork, type Failure } from "./gathering.ts";
import { isTakenOver, isWorthWriting, learningId, learningOf } from "./learning.ts";
import { observed } from "./observation.ts";
import { added, tallySchema } from "./tally.ts";

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
 * Makes a memory of each failure that repeats in the firehose of a database. What was seen once waits in the watermark, and
 * so do counts that are not worth a version yet. The watermark is committed with the memories: each row counts once,
 * whatever dies.
 */
export type CorrelationDeps = PipelineDeps & {
  store: MemoryStore;
  arrivals: EventReader;
  newId: IdSource;
  clock: Clock;
  log: Log;
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
  /** What was seen of remembered failures since the last version of their learnings; the one that was seen last at the end. */
  unwritten: z.array(failureSchema).default([]),
});
type Position = z.output<typeof correlationPosition>;
/** What waits in the watermark. */
type Waiting = Pick<Position, "pending" | "unwritten">;

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
  const { runs, store, clock, log, metrics } = deps;
  const from = await runs.watermark(database.id, KIND);
  const before: Position =
    from.position === undefined ? { recent: [], pending: [], unwritten: [] } : correlationPosition.parse(from.position);
  const { gathering, arrivals, isEnd } = await gather(deps, database, before, signal);
  // There is no firehose.
  if (arrivals === undefined) return false;
  const { found, recent } = gathering;
  const place = { databaseId: database.id, kind: KIND, from } as const;
  const ids = [...new Set([...before.unwritten, ...found].map(({ fingerprint }) => learningId(fingerprint)))];
  const known = new Map(
    (await store.known(database.id, "node", ids)).map(({ current }) => [current?.record.id, current]),
  );
  const nowUs = clock.nowMs() * 1_000;
  const foreseen = sort(found, before, nowUs, (id) => known.get(id));
  let { takenOver } = foreseen;
  if (foreseen.due.length === 0) {
    await advance(deps, place, { arrivals, recent, ...foreseen.waiting });
  } else {
    const { learnings, ...planned } = await runOnce(deps, place, {
      items: ids.length,
      needs: { keys: ids.map(nodeKey) },
      eventsScanned: gathering.rows,
      plan: (draft) => {
        const { due, waiting, takenOver } = sort(found, before, nowUs, (id) => draft.version("node", id));
        const learnings = due.map((failure, proposal) => save(draft, failure, proposal, deps.newId));
        const changes = learnings.flatMap(({ change }) => change ?? []);
        return {
          changes,
          position: { arrivals, recent, ...waiting },
          memoriesWritten: changes.length,
          stats: {
            failures: gathering.failures,
            learnings: countsOf(learnings.map(({ outcome }) => outcome)),
            taken_over: takenOver,
            seen_once: waiting.pending.length,
          },
          learnings,
          takenOver,
        } satisfies RunOutcome & { learnings: Learning[]; takenOver: number };
      },
    });
    ({ takenOver } = planned);
    for (const { outcome, id, error } of learnings) {
      metrics.learnings.inc({ outcome });
      if (error !== undefined) log.error({ err: error, database: database.name, id }, "a learning was not saved");
    }
  }
  if (takenOver > 0) metrics.learnings.inc({ outcome: "taken_over" }, takenOver);
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

/**
 * Adds what was found to what waits, and decides what becomes of each failure: its learning is due, it waits on, or, where
 * somebody has taken over the learning, it is dropped.
 */
function sort(
  found: readonly Failure[],
  before: Waiting,
  nowUs: number,
  versionOf: (id: string) => Version | undefined,
): { due: Failure[]; waiting: Waiting; takenOver: number } {
  const pending = new Map(before.pending);
  const seen = new Map(before.unwritten.map((failure) => [failure.fingerprint, failure]));
  for (const failure of found) {
    const { fingerprint } = failure;
    const tally = added(seen.get(fingerprint)?.tally ?? pending.get(fingerprint), failure.tally);
    pending.delete(fingerprint);
    seen.delete(fingerprint);
    seen.set(fingerprint, { ...failure, tally });
  }
  const due: Failure[] = [];
  const unwritten: Failure[] = [];
  let takenOver = 0;
  for (const failure of seen.values()) {
    const version = versionOf(learningId(failure.fingerprint));
    if (version === undefined) {
      if (failure.tally.occurrences >= REPEATED) due.push(failure);
      else pending.set(failure.fingerprint, failure.tally);
    } else if (version.kind !== "node" || version.erased || isTakenOver(version.record)) takenOver++;
    else if (isWorthWriting(version.record, failure.tally, nowUs)) due.push(failure);
    else unwritten.push(failure);
  }
  // What finds no place to wait is written early.
  due.push(...unwritten.splice(0, Math.max(0, unwritten.length - PIPELINE_LIMITS.unwritten)));
  return { due, waiting: { pending: [...pending].slice(-PIPELINE_LIMITS.pending), unwritten }, takenOver };
}

type Learning = { outcome: string; id: string; change?: RunChange; error?: unknown };

/** One that cannot be saved is skipped: it would keep the others, and all rows after it, for ever. */
function save(draft: Draft, failure: Failure, proposal: number, newId: IdSource): Learning {
  const id = learningId(failure.fingerprint);
  try {
    const versionBefore = draft.version("node", id)?.record.version;
    const input = accepted(nodeInput, learningOf(failure, draft.node(id)));
    const { outcome, record } = saveNode(input, ALL_REALMS, newId).plan(draft);
    if (record.version === versionBefore) return { outcome, id };
    return { outcome, id, change: { kind: "node", id, proposal, versionBefore, versionAfter: record.version } };
  } catch (error) {
    return { outcome: "skipped", id, error };
  }
}

function countsOf(outcomes: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}
