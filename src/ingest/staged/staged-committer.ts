import type { Lease, TableRecord } from "../../catalog/catalog.ts";
import { sleep } from "../../core/clock.ts";
import { Semaphore } from "../../core/concurrency.ts";
import { EngineError } from "../../core/errors.ts";
import { LIMITS } from "../../core/limits.ts";
import { foldName } from "../../core/names.ts";
import { CATCH_ALL_COLUMN } from "../../format/types.ts";
import { ObjectNotFound, type ObjectInfo } from "../../io/objectstore/objectstore.ts";
import { conflictPauseMs } from "../flush.ts";
import { INGEST_METRICS, countWidened } from "../metrics.ts";
import { shapeFor } from "../tables.ts";
import { hasCatchAll } from "./catch-all.ts";
import { commitPrepared } from "./commit-prepared.ts";
import { DamagedObject, NewerObject } from "./container.ts";
import type { Draft } from "./draft.ts";
import { lateByMs } from "./lateness.ts";
import { countDamaged, listPending, setAside, type ListedObject, type Pending } from "./listing.ts";
import { decodeStaged } from "./object.ts";
import { Postponed } from "./postponed.ts";
import { allOrDiscard, prepareTable, WidenFirst, type Prepared } from "./prepare.ts";
import { Unsealable } from "./seal-staged.ts";
import type { StagedCommitService, StagedCommitterOptions } from "./staged.ts";

/** Objects that one round looks at: the oldest. The rest has its turn in the next. */
const MAX_LISTED = 20_000;
const MAX_READS = 16;
const IDS_PER_QUESTION = 1_000;
const NOTHING: Pending = { objects: [], foreign: [], totals: { objects: 0, sizeBytes: 0 } };
const COUNT_DAMAGED_MS = 60_000;

export function createStagedCommitter(options: StagedCommitterOptions): StagedCommitService {
  return new StagedCommitter(options);
}

class StagedCommitter implements StagedCommitService {
  readonly #options: StagedCommitterOptions;
  readonly #postponed: Postponed;
  readonly #reads = new Semaphore(MAX_READS);
  /** When the objects were staged that are not committed, by their keys; the oldest first. */
  #waiting = new Map<string, number>();
  #nextCountMs = 0;
  #watched: AbortSignal | undefined;

  constructor(options: StagedCommitterOptions) {
    this.#options = options;
    this.#postponed = new Postponed(options.clock);
    INGEST_METRICS.of(options.metrics).stagedOldestAge.watch({}, () => this.#oldestAgeMs() / 1000);
  }

  async commitRound(lease: Lease | undefined, signal: AbortSignal): Promise<{ isIdle: boolean }> {
    const { store, keyPrefix } = this.#options;
    this.#forgetWhenAborted(signal);
    const pending = await listPending(store, keyPrefix, MAX_LISTED);
    this.#tell(pending);
    const uncommitted = await this.#deleteCommitted(pending.objects);
    const isDue = this.#postponed.due([...pending.foreign, ...uncommitted]);
    for (const info of pending.foreign.filter(isDue)) await this.#setAsideForeign(info);
    for (const batch of this.#batches(uncommitted.filter(isDue))) {
      if (signal.aborted) return { isIdle: false };
      await this.#commitBatch(await this.#read(batch), lease, signal);
    }
    if (!signal.aborted) await this.#countDamaged();
    return { isIdle: pending.objects.length === 0 && pending.foreign.length === 0 };
  }

  #tell({ objects, foreign, totals }: Pending): void {
    const metrics = INGEST_METRICS.of(this.#options.metrics);
    metrics.stagedObjects.set(totals.objects);
    metrics.stagedBytes.set(totals.sizeBytes);
    const times = [...objects, ...foreign.map(({ key, modifiedAtMs }) => ({ key, stagedAtMs: modifiedAtMs }))];
    this.#waiting = new Map(times.map(({ key, stagedAtMs }) => [key, stagedAtMs]));
  }

  /** These are committed or set aside. */
  #tellGone(objects: readonly { key: string; sizeBytes: number }[]): void {
    const metrics = INGEST_METRICS.of(this.#options.metrics);
    for (const { key, sizeBytes } of objects) {
      if (!this.#waiting.delete(key)) continue;
      metrics.stagedObjects.dec();
      metrics.stagedBytes.dec(sizeBytes);
    }
  }

  /** Milliseconds since the oldest object was staged that is known to wait. */
  #oldestAgeMs(): number {
    // They are in the order of their times, but for the foreign ones at the end.
    const [oldestMs] = this.#waiting.values();
    return oldestMs === undefined ? 0 : Math.max(0, this.#options.clock.nowMs() - oldestMs);
  }

  /** Who does not lead any more does not know what is staged. */
  #forgetWhenAborted(signal: AbortSignal): void {
    if (this.#watched === signal) return;
    this.#watched = signal;
    signal.addEventListener("abort", () => this.#tell(NOTHING), {
      once: true,
    });
  }

  /** Deletes objects that are in already: their deletion was interrupted, or a late write has brought them back. */
  async #deleteCommitted(objects: readonly ListedObject[]): Promise<ListedObject[]> {
    if (objects.length === 0) return [];
    const { catalog, store } = this.#options;
    const committed = new Set<string>();
    for (let from = 0; from < objects.length; from += IDS_PER_QUESTION) {
      const ids = objects.slice(from, from + IDS_PER_QUESTION).map(({ id }) => id);
      for (const id of await catalog.committedStaged(ids)) committed.add(id);
    }
    const done = objects.filter(({ id }) => committed.has(id));
    if (done.length > 0) await store.delete(done.map(({ key }) => key));
    this.#tellGone(done);
    return objects.filter(({ id }) => !committed.has(id));
  }

  /** In order, bounded by objects and bytes. */
  *#batches(objects: readonly ListedObject[]): Generator<ListedObject[]> {
    const { maxExtents, maxBytes } = this.#options;
    let batch: ListedObject[] = [];
    let sizeBytes = 0;
    for (const object of objects) {
      if (batch.length > 0 && (batch.length >= maxExtents || sizeBytes + object.sizeBytes > maxBytes)) {
        yield batch;
        batch = [];
        sizeBytes = 0;
      }
      batch.push(object);
      sizeBytes += object.sizeBytes;
    }
    if (batch.length > 0) yield batch;
  }

  async #read(batch: readonly ListedObject[]): Promise<Draft[]> {
    const drafts = await Promise.all(batch.map((listed) => this.#reads.run(() => this.#readOne(listed))));
    return drafts.filter((draft) => draft !== undefined);
  }

  async #readOne(listed: ListedObject): Promise<Draft | undefined> {
    const bytes = await this.#get(listed);
    if (bytes === undefined) return undefined;
    try {
      const object = decodeStaged(bytes, listed);
      const lateMs = lateByMs(object.requests, listed.modifiedAtMs);
      if (lateMs === undefined) return { listed, bytes, object, taken: new Set() };
      const hours = Math.floor(lateMs / 3_600_000);
      await this.#setAside(
        listed,
        bytes,
        `it reached the store ${hours} hours after its requests came: none was acknowledged`,
      );
      return undefined;
    } catch (error) {
      if (error instanceof NewerObject) {
        this.#passOver(listed, error);
        return undefined;
      }
      if (!(error instanceof DamagedObject)) throw error;
      await this.#setAside(listed, bytes, error.message);
      return undefined;
    }
  }

  /** Undefined when another committer was faster, or it cannot be read. */
  async #get(object: { key: string; sizeBytes: number }): Promise<Uint8Array | undefined> {
    try {
      return await this.#options.store.get(object.key);
    } catch (error) {
      if (error instanceof ObjectNotFound) this.#tellGone([object]);
      else this.#passOver(object, error);
      return undefined;
    }
  }

  /** Commits drafts, those that the catalog sends back again and again. */
  async #commitBatch(drafts: Draft[], lease: Lease | undefined, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options;
    let left = drafts;
    for (let attempt = 0; left.length > 0; attempt++) {
      if (signal.aborted) return;
      if (attempt >= LIMITS.commitAttempts) {
        for (const { listed } of left) this.#passOver(listed, new Error(`the catalog sent it back ${attempt} times`));
        return;
      }
      if (attempt > 0) await sleep(clock, conflictPauseMs(attempt, random));
      const { prepared, again } = await this.#prepare(left);
      const sentBack = await commitPrepared(this.#options, prepared, lease, {
        done: (objects) => this.#tellGone(objects),
        failed: (draft, error) => this.#passOver(draft.listed, error),
      });
      left = [...sentBack, ...again].sort((a, b) => (a.object.id < b.object.id ? -1 : 1));
    }
  }

  /** Seals and uploads drafts of any tables; `again` are those that can be sealed now that their table has `props`. */
  async #prepare(drafts: readonly Draft[]): Promise<{ prepared: Prepared[]; again: Draft[] }> {
    const failures: { table: TableRecord; draft: Draft; error: unknown }[] = [];
    const byTable = Map.groupBy(drafts, ({ object }) => `${object.database}/${object.table}`);
    const preparing = [...byTable.values()].map(async (all) => {
      // Looked up before it is asked for a drop: what is dropped later than that has an id that no commit takes.
      const known = await this.#tableOf(all);
      const some = await this.#discardDropped(all);
      if (some.length === 0) return [];
      const table = known ?? (await this.#makeTable(some));
      return prepareTable(this.#options, table, some, (draft, error) => failures.push({ table, draft, error }));
    });
    const prepared = await allOrDiscard(this.#options, preparing);
    prepared.sort((a, b) => (a.draft.object.id < b.draft.object.id ? -1 : 1));
    const again: Draft[] = [];
    for (const { table, draft, error } of failures) {
      if (error instanceof WidenFirst) again.push(await this.#widen(table, draft, error.columns));
      else if (await this.#isToBeRetried(table, draft, error)) again.push(draft);
    }
    return { prepared, again };
  }

  /**
   * Rows that were acknowledged before their table was dropped are dropped with it: in a table that was made again under
   * the name nobody expects them. Both times count: the drop's is the catalog's, the acknowledgement's its node's, which
   * time services keep together to a part of a second. Whoever writes within that of the drop cannot know either which
   * of the two came first. Asked anew for each attempt: a drop may come between two.
   */
  async #discardDropped(drafts: readonly Draft[]): Promise<Draft[]> {
    const [first] = drafts;
    if (first === undefined) return [];
    const { catalog, store, log } = this.#options;
    const { database, table } = first.object;
    const droppedAtMs = (await catalog.droppedAt(database, table)) ?? -Infinity;
    const gone = drafts.filter(({ object }) => object.acknowledgedAtMs <= droppedAtMs);
    if (gone.length === 0) return [...drafts];
    await store.delete(gone.map(({ listed }) => listed.key));
    this.#tellGone(gone.map(({ listed }) => listed));
    const rows = gone.reduce((sum, { object }) => sum + object.requests.reduce((own, { rows: of }) => own + of, 0), 0);
    log.info({ database, table, objects: gone.length, rows }, "staged rows were dropped with their table");
    return drafts.filter((draft) => !gone.includes(draft));
  }

  async #tableOf(drafts: readonly Draft[]): Promise<TableRecord | undefined> {
    const { database, table } = nameIn(drafts);
    return await this.#options.catalog.table(database, table);
  }

  /** Makes the table that the catalog does not have any more: it was restored, or dropped before the rows came. */
  async #makeTable(drafts: readonly Draft[]): Promise<TableRecord> {
    const { database, table: name } = nameIn(drafts);
    const { columns } = shapeFor(drafts.map(({ object }) => object));
    const made = await this.#options.catalog.createTable({ database, name, columns, wasThere: true });
    return made.table;
  }

  /** The draft as it is to be tried again. A column that another draft of the round brings is not there to be widened yet. */
  async #widen(table: TableRecord, draft: Draft, columns: readonly string[]): Promise<Draft> {
    try {
      const after = await this.#options.catalog.widenColumns(table.id, columns);
      countWidened(this.#options.metrics, table, after);
      const known = new Set(after.columns.map(({ name }) => foldName(name)));
      const asked = columns.map(foldName).filter((name) => known.has(name));
      return { ...draft, askedToWiden: [...(draft.askedToWiden ?? []), ...asked] };
    } catch (error) {
      // The table was dropped: its rows go with it, or make it anew.
      if (error instanceof EngineError && error.code === "table_not_found") return draft;
      throw error;
    }
  }

  async #isToBeRetried(table: TableRecord, draft: Draft, error: unknown): Promise<boolean> {
    if (!(error instanceof DamagedObject || error instanceof Unsealable)) {
      this.#passOver(draft.listed, error);
      return false;
    }
    if (error instanceof Unsealable && error.record !== undefined && !hasCatchAll(table.columns)) {
      // A value has nowhere to go: it gets a place.
      return this.#addCatchAll(table, draft);
    }
    await this.#setAside(draft.listed, draft.bytes, error.message);
    return false;
  }

  async #addCatchAll(table: TableRecord, draft: Draft): Promise<boolean> {
    try {
      const column = { name: CATCH_ALL_COLUMN, type: { kind: "dynamic" as const } };
      await this.#options.catalog.addColumns(table.id, [column]);
      return true;
    } catch (error) {
      if (!(error instanceof EngineError) || error.code !== "conflict") throw error;
      this.#passOver(draft.listed, error);
      return false;
    }
  }

  #passOver({ key }: { key: string }, error: unknown): void {
    const { log, metrics } = this.#options;
    this.#postponed.add(key);
    INGEST_METRICS.of(metrics).stagedPostponed.inc();
    log.error({ err: error, key }, "a staged object could not be committed; it stays, and is tried again");
  }

  async #setAsideForeign(info: ObjectInfo): Promise<void> {
    const bytes = await this.#get(info);
    if (bytes !== undefined) await this.#setAside(info, bytes, "its key is none of a staged object");
  }

  async #setAside(object: { key: string; sizeBytes: number }, bytes: Uint8Array, reason: string): Promise<void> {
    const { store, keyPrefix, clock, log } = this.#options;
    const metrics = INGEST_METRICS.of(this.#options.metrics);
    const { key } = object;
    try {
      await setAside(store, keyPrefix, { key, bytes, reason, atMs: clock.nowMs() });
    } catch (error) {
      // It must not keep the others from being committed.
      this.#passOver(object, error);
      return;
    }
    log.error({ key, reason }, "a staged object was set aside; its rows are not visible");
    metrics.stagedDamaged.inc();
    metrics.stagedDamagedObjects.inc();
    this.#tellGone([object]);
  }

  /** Now and then, for an operator may have taken some away. */
  async #countDamaged(): Promise<void> {
    const { clock, store, keyPrefix, metrics } = this.#options;
    if (clock.monotonicMs() < this.#nextCountMs) return;
    this.#nextCountMs = clock.monotonicMs() + COUNT_DAMAGED_MS;
    INGEST_METRICS.of(metrics).stagedDamagedObjects.set(await countDamaged(store, keyPrefix));
  }
}

/** What the drafts of one table call it. */
function nameIn([first]: readonly Draft[]): Pick<Draft["object"], "database" | "table"> {
  if (first === undefined) throw new Error("there is no draft to name a table");
  return first.object;
}
