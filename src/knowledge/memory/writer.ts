import { backoffMs } from "../../core/backoff.ts";
import { nextTurn, sleep, type Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import type { Random } from "../../core/random.ts";
import type { RecordStore, Statement } from "../../db/records.ts";
import { Draft, type RecordKey } from "./draft.ts";
import { MEMORY_LIMITS } from "./limits.ts";
import type { MemoryMetrics } from "./metrics.ts";
import { advanceHead, changeRecords, releaseHead, reserveHead } from "./statements.ts";
import type { MemoryStore } from "./store.ts";

/**
 * Writes of a process to the memories of databases. What comes while a commit is under way shares the next one, up to
 * `MEMORY_LIMITS.commitItems`; one that comes alone is committed at once.
 *
 * A commit reads the head and the records that it is about, plans what becomes of them, and advances the head in the
 * transaction that writes it. If another process has advanced it meanwhile, nothing is written and all of it begins
 * again. After some such attempts the writer reserves the next commit, so that a large import, which takes long to
 * plan, is not overtaken for ever by small writes of others.
 */
export type Operation<T> = {
  /** How many records it is about. */
  items: number;
  needs: Needs;
  /**
   * Says what becomes of the records. Called again when the commit begins again. What it throws is the outcome of this
   * operation alone, so it must look at everything before it changes anything.
   */
  plan: (draft: Draft) => T;
  /** Further statements of the same transaction, by what the plan came to; also where the plan changes no record. */
  also?(value: T): readonly Statement[];
  /**
   * What the outcome is when one of those statements does not return what it must. Unless given that is a conflict with
   * another process, like any other: all of it begins again.
   */
  refused?: () => Error;
};

/** What an operation must know of the catalog. */
export type Needs = {
  keys: readonly RecordKey[];
  /** Memories that are confirmed by equal ones. */
  duplicateKeys?: readonly string[];
  /** Nodes whose edges it is about. */
  edgesOf?: readonly string[];
};

export type WriterDeps = {
  records: RecordStore;
  store: MemoryStore;
  clock: Clock;
  random: Random;
  metrics: MemoryMetrics;
  /** Tells processes apart. */
  holder: string;
  /** Called when a commit is durable. */
  onCommit?: (databaseId: number) => void;
};

/** Attempts before the next commit is reserved. */
const ATTEMPTS_WITHOUT_RESERVATION = 2;
const RESERVED_MS = 10_000;
const REPEAT_WITHIN_MS = 60_000;
const CONFLICT_PAUSE = { firstMs: 2, mostMs: 200 } as const;

type Waiting = { operation: Operation<unknown>; settle: PromiseWithResolvers<unknown> };
type Outcome = { value: unknown } | { error: unknown };
/** The statements that an operation adds to a commit. */
type Along = { index: number; statements: readonly Statement[] };

export class MemoryWriter {
  readonly #deps: WriterDeps;
  /** By database; there while a commit of it is under way. */
  readonly #queues = new Map<number, Waiting[]>();
  #waitingItems = 0;

  constructor(deps: WriterDeps) {
    this.#deps = deps;
  }

  /** Resolves when the change is durable. Throws what the plan throws, `too_many_requests`, and as `RecordStore` does. */
  write<T>(databaseId: number, operation: Operation<T>): Promise<T> {
    if (this.#waitingItems > MEMORY_LIMITS.waitingItems) {
      throw new EngineError("too_many_requests", "too many memories wait to be written: retry in a second", {
        headers: { "Retry-After": "1" },
      });
    }
    this.#note(operation.items);
    const settle = Promise.withResolvers<unknown>();
    const queue = this.#queues.get(databaseId);
    if (queue === undefined) {
      const first = [{ operation, settle }];
      this.#queues.set(databaseId, first);
      void this.#work(databaseId, first);
    } else queue.push({ operation, settle });
    return settle.promise as Promise<T>;
  }

  async #work(databaseId: number, queue: Waiting[]): Promise<void> {
    while (queue.length > 0) {
      // What was asked for in the same turn shares the commit.
      await nextTurn();
      const batch = takeBatch(queue);
      const outcomes = await this.#outcomesOf(databaseId, batch);
      for (const [i, { operation, settle }] of batch.entries()) {
        this.#note(-operation.items);
        const outcome = outcomes[i];
        if (outcome !== undefined && "value" in outcome) settle.resolve(outcome.value);
        else settle.reject(outcome?.error);
      }
    }
    this.#queues.delete(databaseId);
  }

  #note(items: number): void {
    this.#waitingItems += items;
    // Of all writers of the process.
    this.#deps.metrics.waiting.inc(items);
  }

  async #outcomesOf(databaseId: number, batch: readonly Waiting[]): Promise<Outcome[]> {
    const { clock, metrics } = this.#deps;
    const startedMs = clock.monotonicMs();
    const operations = batch.map(({ operation }) => operation);
    try {
      return await this.#commit(databaseId, operations);
    } catch (error) {
      return batch.map(() => ({ error }));
    } finally {
      metrics.commitDuration.observe((clock.monotonicMs() - startedMs) / 1_000);
    }
  }

  async #commit(databaseId: number, operations: readonly Operation<unknown>[]): Promise<Outcome[]> {
    const { records, store, clock, random, metrics, holder } = this.#deps;
    const deadlineMs = clock.monotonicMs() + REPEAT_WITHIN_MS;
    /** Operations that their own statements refuse: the others of the batch go on without them. */
    const refusals = new Map<number, Error>();
    // An operation that is refused is no conflict with others: without it the commit begins again at once.
    for (let attempt = 1; ;) {
      const mayBegin = attempt <= ATTEMPTS_WITHOUT_RESERVATION || (await this.#reserve(databaseId));
      if (mayBegin) {
        const draft = new Draft(await store.head(databaseId));
        await this.#load(databaseId, draft, operations);
        const outcomes = operations.map((operation, i): Outcome => {
          const error = refusals.get(i);
          return error === undefined ? outcomeOf(operation, draft) : { error };
        });
        const along = alongOf(operations, outcomes);
        const isIdle = draft.changes === undefined;
        if (isIdle && attempt > ATTEMPTS_WITHOUT_RESERVATION) await records.write(releaseHead(databaseId, holder));
        if (isIdle && along.length === 0) return outcomes;
        const refusedIndex = await this.#transact(databaseId, draft, along);
        if (refusedIndex === undefined) return outcomes;
        const refusal = operations[refusedIndex]?.refused?.();
        if (refusal !== undefined) {
          refusals.set(refusedIndex, refusal);
          continue;
        }
        metrics.conflicts.inc();
      }
      if (clock.monotonicMs() > deadlineMs) {
        const message =
          "other servers write to the memory of this database all the time: nothing was saved, retry later";
        throw new EngineError("unavailable", message);
      }
      await sleep(clock, backoffMs(CONFLICT_PAUSE, attempt, random));
      attempt++;
    }
  }

  async #reserve(databaseId: number): Promise<boolean> {
    const { records, holder } = this.#deps;
    return (await records.write(reserveHead(databaseId, holder, RESERVED_MS))).length > 0;
  }

  async #load(databaseId: number, draft: Draft, operations: readonly Operation<unknown>[]): Promise<void> {
    const { store } = this.#deps;
    const needs = operations.map((operation) => operation.needs);
    const keys = needs.flatMap((each) => each.keys);
    for (const kind of ["node", "edge"] as const) {
      const ids = keys.filter((key) => key.kind === kind).map(({ id }) => id);
      draft.load(await store.known(databaseId, kind, ids));
    }
    const duplicateKeys = needs.flatMap((each) => each.duplicateKeys ?? []);
    draft.load(await store.knownByDuplicateKey(databaseId, duplicateKeys));
    for (const id of needs.flatMap((each) => each.edgesOf ?? [])) draft.load(await store.knownEdgesOf(databaseId, id));
  }

  /** Undefined when it is done; else nothing has happened: which operation's own statement failed, or -1 for the commit's. */
  async #transact(
    databaseId: number,
    { seq, stampUs, changes }: Draft,
    along: readonly Along[],
  ): Promise<number | undefined> {
    const { records, metrics, holder, onCommit } = this.#deps;
    const own =
      changes === undefined
        ? []
        : [...advanceHead(databaseId, { seq, stampUs, holder }), ...changeRecords(databaseId, seq, changes)];
    const outcome = await records.transact([...own, ...along.flatMap(({ statements }) => statements)]);
    if (!outcome.done) return operationAt(along, outcome.failed - own.length);
    if (changes === undefined) return undefined;
    metrics.commits.inc();
    onCommit?.(databaseId);
    return undefined;
  }
}

function alongOf(operations: readonly Operation<unknown>[], outcomes: readonly Outcome[]): Along[] {
  return operations.flatMap((operation, index) => {
    const outcome = outcomes[index];
    const statements = outcome !== undefined && "value" in outcome ? (operation.also?.(outcome.value) ?? []) : [];
    return statements.length === 0 ? [] : [{ index, statements }];
  });
}

/** Whose the statement of that place is; -1 for none of theirs. */
function operationAt(along: readonly Along[], place: number): number {
  let end = 0;
  for (const { index, statements } of along) {
    end += statements.length;
    if (place >= 0 && place < end) return index;
  }
  return -1;
}

/** The first that wait, as many as one commit takes; a larger one goes alone. */
function takeBatch(queue: Waiting[]): Waiting[] {
  let items = 0;
  const end = queue.findIndex(({ operation }, i) => {
    items += operation.items;
    return i > 0 && items > MEMORY_LIMITS.commitItems;
  });
  return queue.splice(0, end === -1 ? queue.length : end);
}

function outcomeOf(operation: Operation<unknown>, draft: Draft): Outcome {
  try {
    return { value: operation.plan(draft) };
  } catch (error) {
    return { error };
  }
}
