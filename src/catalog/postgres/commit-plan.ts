import type { ColumnSpec } from "../../format/types.ts";
import type { FlushCommit, FlushOutcome, LedgerEntry } from "../catalog.ts";
import { checkKeys, checkStagedId, KEYS_FREE_FOR_MS, tooLate } from "../flush-checks.ts";
import { missingColumns } from "../new-columns.ts";
import { unwidenedColumns } from "../widening.ts";
import { hashOf } from "./ledger.ts";
import { NewExtents } from "./new-extents.ts";
import type { StoredTable } from "./schema.ts";
import { numberColumns, type NewColumn, type NewVersion } from "./schema-writer.ts";
import { movedFlushes, SourceChain, type MovedAnswer } from "./source-chain.ts";

/** What the database answers about flushes that it sent back. */
export type Taken = LedgerEntry & { flush: number };
export type Replayed = { flush: number; snapshotId: number };

/** A flush as the plan judges it: before the database is asked, and against the tables as they were last seen. */
type Judged =
  | { kind: "settled"; outcome: FlushOutcome }
  /** A flush before it in this commit has one of its keys, or comes from the same staged object. */
  | { kind: "second"; keys: readonly string[]; isStaged: boolean }
  /** To be stored; `version` is the table's afterwards when this commit changes the table. */
  | { kind: "stored"; version: number | undefined };

/**
 * Everything about a commit that needs no lock, made ready to be sent: which columns are new and what ids they get,
 * which flushes repeat another of the same commit, what each extent looks like as a row.
 *
 * Columns are never dropped, so a table that was seen a while ago is good enough to say that a column is there, or
 * contradicts. Only where the commit adds columns must the table still be as it was. Whether a column was widened since,
 * which is the one change that there is, the database says.
 */
export class CommitPlan {
  readonly #flushes: readonly FlushCommit[];
  readonly #settled: ReadonlyMap<number, FlushOutcome>;
  readonly #tables: Map<number, StoredTable>;
  readonly #judged: Judged[] = [];
  readonly #versions = new Map<number, NewVersion>();
  readonly #columns: NewColumn[] = [];
  readonly #extents = new NewExtents();
  /** Flushes that the judgement of others rests on: if one is sent back, everything is judged again. */
  readonly #pivots = new Set<number>();
  readonly #keys = new Map<string, number>();
  readonly #staged = new Map<string, number>();
  readonly #sources = new SourceChain();

  /**
   * `tables` are those of the flushes as they were last seen; `settled` are flushes of which the database has said that
   * they are sent back. Throws what `Catalog.commit` throws for flushes that cannot be true.
   */
  constructor(
    flushes: readonly FlushCommit[],
    tables: ReadonlyMap<number, StoredTable>,
    settled: ReadonlyMap<number, FlushOutcome>,
  ) {
    this.#flushes = flushes;
    this.#settled = settled;
    this.#tables = new Map(tables);
    for (const [i, flush] of flushes.entries()) this.#judged.push(this.#judge(i, flush));
  }

  /** The parameters of `engine.commit_flushes` from the flushes on, as JSON. */
  get parameters(): string[] {
    const flushes = this.#judged.flatMap(({ kind }, i) => (kind === "settled" ? [] : [this.#flushRow(i, kind)]));
    const entries = this.#judged.flatMap(({ kind }, i) => (kind === "settled" ? [] : this.#entryRows(i)));
    const parts = [flushes, [...this.#versions.values()], this.#columns].map((part) => JSON.stringify(part));
    return [...parts, this.#extents.extents, this.#extents.filters, JSON.stringify(entries)];
  }

  /** The tables of the flushes that are to be stored, if nothing is in their way. */
  get tableIds(): number[] {
    return tablesOf(this.#flushes, this.#settled);
  }

  /** The time of the database from which on one of the flushes comes too late; null when none ever does. */
  get lateFromMs(): number | null {
    const freeAtMs = this.#flushes.flatMap(({ keysFreeAtMs }, i) => (this.#settled.has(i) ? [] : (keysFreeAtMs ?? [])));
    return freeAtMs.length === 0 ? null : Math.ceil(Math.min(...freeAtMs) + KEYS_FREE_FOR_MS);
  }

  /** The steps of the sources of the flushes that are to be stored, as JSON. */
  get steps(): string {
    return this.#sources.parameter;
  }

  /** The flushes that cannot be stored because their sources are elsewhere. */
  moved(answer: MovedAnswer): Map<number, FlushOutcome> {
    const stored = [...this.#flushes.entries()].filter(([i]) => this.#judged[i]?.kind === "stored");
    return movedFlushes(
      stored.map(([i, { sources = [] }]) => [i, sources] as const),
      answer,
    );
  }

  /** What became of the flushes when the database has done what it was asked. */
  outcomes(answer: CommitAnswer): FlushOutcome[] {
    const refused = refusedFlushes(this.#flushes, answer);
    const outcomes: FlushOutcome[] = [];
    for (const [i, judged] of this.#judged.entries()) {
      const sentBack = refused.get(i);
      // Of one that repeats another of this commit, the keys of both kinds are named.
      const isWhole = sentBack !== undefined && (judged.kind !== "second" || sentBack.kind === "replayed");
      outcomes.push(isWhole ? sentBack : this.#outcomeOf(i, judged, answer));
    }
    return outcomes;
  }

  #judge(i: number, flush: FlushCommit): Judged {
    const settled = this.#settled.get(i);
    const table = this.#tables.get(flush.tableId);
    // Of a table that is gone it was settled that the flush comes back.
    if (table === undefined && settled !== undefined) return { kind: "settled", outcome: settled };
    if (table === undefined) throw new Error(`a flush names table id ${flush.tableId}, which does not exist`);
    if (flush.schemaVersion > table.schemaVersion) {
      throw new Error(`a flush of table ${table.name} has schema version ${flush.schemaVersion}, which is to come`);
    }
    if (flush.staged !== undefined) checkStagedId(flush.staged);
    checkKeys(flush.ledger);
    if (settled !== undefined) return { kind: "settled", outcome: settled };
    const second = this.#secondOf(flush);
    if (second !== undefined) return second;
    const moved = this.#sources.conflict(flush.sources ?? []);
    if (moved !== undefined) return { kind: "settled", outcome: moved };
    const missing = missingColumns(table, flush.newColumns);
    if (missing.kind === "conflict") return { kind: "settled", outcome: { kind: "schema_conflict" } };
    for (const { key } of flush.ledger) this.#keys.set(keyOf(flush, key), i);
    if (flush.staged !== undefined) this.#staged.set(flush.staged, i);
    this.#sources.add(flush.sources ?? []);
    // The steps are taken all or none, so a flush that is sent back has the others judged again without its own.
    if ((flush.sources ?? []).length > 0) this.#pivots.add(i);
    const after = missing.columns.length === 0 ? table : this.#addColumns(i, table, missing.columns);
    // An extent that brought no column was sealed under the flush's own version; one that did has columns that only
    // the table as it is now is sure to have.
    const schemaVersion = flush.newColumns.length === 0 ? flush.schemaVersion : after.schemaVersion;
    this.#extents.add(flush.extents, { flush: i, table: after, schemaVersion });
    return { kind: "stored", version: this.#versions.has(table.id) ? after.schemaVersion : undefined };
  }

  /** Whether another flush of this commit comes first with a key or the staged object of this one. */
  #secondOf(flush: FlushCommit): Judged | undefined {
    const stagedFirst = flush.staged === undefined ? undefined : this.#staged.get(flush.staged);
    const keys = flush.ledger.map(({ key }) => key).filter((key) => this.#keys.has(keyOf(flush, key)));
    const firsts = [stagedFirst, ...keys.map((key) => this.#keys.get(keyOf(flush, key)))];
    for (const first of firsts) if (first !== undefined) this.#pivots.add(first);
    const isStaged = stagedFirst !== undefined;
    return isStaged || keys.length > 0 ? { kind: "second", keys, isStaged } : undefined;
  }

  #addColumns(i: number, table: StoredTable, missing: readonly ColumnSpec[]): StoredTable {
    const columns = numberColumns(table, missing);
    this.#columns.push(...columns);
    this.#pivots.add(i);
    const added = columns.map(({ id }, at) => Object.assign({ id }, missing[at]));
    const after: StoredTable = {
      ...table,
      schemaVersion: table.schemaVersion + 1,
      columns: [...table.columns, ...added] as StoredTable["columns"],
      nextColumnId: table.nextColumnId + columns.length,
    };
    this.#tables.set(table.id, after);
    const expected = this.#versions.get(table.id)?.expected ?? table.schemaVersion;
    this.#versions.set(table.id, {
      table_id: table.id,
      expected,
      version: after.schemaVersion,
      next_column_id: after.nextColumnId,
    });
    return after;
  }

  #flushRow(i: number, kind: "stored" | "second"): object {
    const flush = this.#flushes[i];
    const { tableId, schemaVersion, staged } = flush ?? {};
    const table = this.#tables.get(tableId ?? 0);
    const unwidened = flush === undefined || table === undefined ? [] : unwidenedColumns(table, flush);
    return {
      flush: i,
      table_id: tableId,
      sealed_under: schemaVersion,
      is_stored: kind === "stored",
      is_pivot: this.#pivots.has(i),
      ...(unwidened.length > 0 && { unwidened }),
      ...(staged !== undefined && { staged, staged_hash: hashOf(staged) }),
    };
  }

  #entryRows(i: number): object[] {
    const { tableId, ledger = [] } = this.#flushes[i] ?? {};
    return ledger.map(({ key, extentCount, rows, sizeBytes }) => ({
      flush: i,
      table_id: tableId,
      hash: hashOf(key),
      key,
      extent_count: extentCount,
      row_count: rows,
      size_bytes: sizeBytes,
    }));
  }

  #outcomeOf(i: number, judged: Judged, answer: CommitAnswer): FlushOutcome {
    if (judged.kind === "settled") return judged.outcome;
    const { snapshotId, committedAtMs } = answer;
    if (snapshotId === undefined || committedAtMs === undefined) {
      throw new Error("the catalog made no snapshot of a flush that it did not send back");
    }
    const flush = this.#flushes[i];
    if (judged.kind === "second") {
      if (judged.isStaged) return { kind: "replayed", snapshotId };
      return { kind: "key_conflict", entries: this.#entriesOf(judged.keys, flush, answer, i) };
    }
    const tableId = flush?.tableId ?? 0;
    const schemaVersion = judged.version ?? answer.versions?.[tableId] ?? this.#tables.get(tableId)?.schemaVersion ?? 0;
    return { kind: "committed", snapshot: { id: snapshotId, committedAtMs }, schemaVersion };
  }

  /** The entries of another flush of this commit that these keys now belong to, in the order of the flush's own. */
  #entriesOf(keys: readonly string[], flush: FlushCommit | undefined, answer: CommitAnswer, i: number): LedgerEntry[] {
    const taken = new Map(entriesIn(answer, i).map((entry) => [entry.key, entry]));
    for (const key of keys) {
      const first = flush === undefined ? undefined : this.#keys.get(keyOf(flush, key));
      const entry = this.#flushes[first ?? -1]?.ledger.find((candidate) => candidate.key === key);
      if (entry !== undefined) taken.set(key, { ...entry, snapshotId: answer.snapshotId ?? 0 });
    }
    return (flush?.ledger ?? []).flatMap(({ key }) => taken.get(key) ?? []);
  }
}

/** What `engine.commit_flushes` answers. */
export type CommitAnswer = {
  kind: "done" | "replan" | "stale";
  snapshotId?: number;
  committedAtMs?: number;
  taken?: readonly Taken[] | null;
  replayed?: readonly Replayed[] | null;
  versions?: Readonly<Record<number, number>> | null;
};

/** What the database answers instead when a flush comes too late; nothing was done. */
export type LateAnswer = { kind: "late"; nowMs: number };

/**
 * The same when flushes were sealed before their table got a vector column, which rows must fill, or before a column was
 * widened, of which they have what it does not hold; nothing was done.
 */
export type OutdatedAnswer =
  | { kind: "before_vectors"; flushes: readonly number[] }
  | { kind: "before_widening"; flushes: readonly number[] };

/** The same when some of the tables were dropped; nothing was done. */
export type DroppedAnswer = { kind: "dropped"; tables: readonly number[] };

/** The tables of the flushes that are to be stored. */
export function tablesOf(flushes: readonly FlushCommit[], settled: ReadonlyMap<number, FlushOutcome>): number[] {
  return [...new Set(flushes.flatMap(({ tableId }, i) => (settled.has(i) ? [] : [tableId])))];
}

/** The flushes of those tables: they come back, for the table is another one now. */
export function flushesOfDropped(
  flushes: readonly FlushCommit[],
  tables: ReadonlySet<number>,
): Map<number, FlushOutcome> {
  const dropped = [...flushes.entries()].filter(([, { tableId }]) => tables.has(tableId));
  return new Map(dropped.map(([i]) => [i, { kind: "schema_conflict" }]));
}

/** The flushes that come too late at that time of the database. */
export function lateFlushes(flushes: readonly FlushCommit[], nowMs: number): Map<number, FlushOutcome> {
  return new Map(
    flushes.flatMap((flush, i) => {
      const outcome = tooLate(flush, nowMs);
      return outcome === undefined ? [] : [[i, outcome]];
    }),
  );
}

/** The flushes that the database sent back, with their outcomes. */
export function refusedFlushes(flushes: readonly FlushCommit[], answer: CommitAnswer): Map<number, FlushOutcome> {
  const refused = new Map<number, FlushOutcome>();
  for (const { flush } of answer.taken ?? []) {
    if (refused.has(flush)) continue;
    const taken = new Map(entriesIn(answer, flush).map((entry) => [entry.key, entry]));
    const entries = (flushes[flush]?.ledger ?? []).flatMap(({ key }) => taken.get(key) ?? []);
    refused.set(flush, { kind: "key_conflict", entries });
  }
  // What was committed before goes first: its keys are those of the same rows.
  for (const { flush, snapshotId } of answer.replayed ?? []) refused.set(flush, { kind: "replayed", snapshotId });
  return refused;
}

function entriesIn(answer: CommitAnswer, flush: number): LedgerEntry[] {
  const own = (answer.taken ?? []).filter((entry) => entry.flush === flush);
  return own.map(({ flush: _flush, ...entry }) => entry);
}

function keyOf({ tableId }: FlushCommit, key: string): string {
  return `${tableId} ${key}`;
}
