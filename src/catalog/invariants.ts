import type { ColumnRecord, ExtentSummary, Snapshot } from "./catalog.ts";
import { foldName } from "../core/names.ts";
import { LIMITS } from "../core/limits.ts";
import { CHECKSUM } from "../format/checksum.ts";
import { INT64_MAX, INT64_MIN } from "./int64.ts";

/**
 * What is always true of a catalog, as named functions. The cheap ones run inside every commit, so that a mistake in
 * this program fails the commit instead of being stored; `Catalog.verify` runs all of them over everything stored.
 * They know nothing of a driver.
 */
export class InvariantViolation extends Error {
  /** The name of the rule, mostly of a function below. */
  readonly invariant: string;
  /** What breaks it. */
  readonly detail: string;

  constructor(invariant: string, detail: string) {
    super(`catalog invariant ${invariant} does not hold: ${detail}`);
    this.name = "InvariantViolation";
    this.invariant = invariant;
    this.detail = detail;
  }
}

/** Snapshot numbers only increase. */
export function headStrictlyIncreases(previous: Snapshot, next: Snapshot): void {
  const holds = Number.isSafeInteger(next.id) && next.id > previous.id;
  check(holds, "headStrictlyIncreases", `snapshot ${next.id} follows snapshot ${previous.id}`);
}

/** Snapshot times never decrease. */
export function snapshotTimesNeverDecrease(previous: Snapshot, next: Snapshot): void {
  const holds = Number.isSafeInteger(next.committedAtMs) && next.committedAtMs >= previous.committedAtMs;
  const times = `${next.committedAtMs} ms, after ${previous.committedAtMs} ms`;
  check(holds, "snapshotTimesNeverDecrease", `snapshot ${next.id} was committed at ${times}`);
}

/** No extent begins after the head: a reader at the head sees every live extent. */
export function extentBeginsByHead(extent: ExtentSummary, head: Snapshot): void {
  const holds = extent.beginSnapshot > 0 && extent.beginSnapshot <= head.id;
  const text = `extent ${extent.id} begins at ${extent.beginSnapshot}, the head is ${head.id}`;
  check(holds, "extentBeginsByHead", text);
}

/** An extent ends after it began and by the head, and has a time of deletion exactly when it has ended. */
export function extentEndsAfterItBegins(extent: ExtentSummary, head: Snapshot): void {
  const { id, beginSnapshot, endSnapshot, deletedAtMs } = extent;
  const name = "extentEndsAfterItBegins";
  check((endSnapshot === undefined) === (deletedAtMs === undefined), name, `extent ${id} is only half deleted`);
  if (endSnapshot === undefined) return;
  const span = `extent ${id} begins at ${beginSnapshot} and ends at ${endSnapshot}, the head is ${head.id}`;
  check(endSnapshot > beginSnapshot && endSnapshot <= head.id, name, span);
}

/** An extent has rows, a size, a checksum, an id and a key that read back as they were written, and ordered times. */
export function extentIsWellFormed(extent: Omit<ExtentSummary, "beginSnapshot" | "tableId" | "schemaVersion">): void {
  const { id, rows, sizeBytes, minAtNs, maxAtNs } = extent;
  const name = "extentIsWellFormed";
  check(isStorableText(id), name, `extent id ${JSON.stringify(id)}`);
  check(isStorableText(extent.key), name, `extent ${id} has the key ${JSON.stringify(extent.key)}`);
  check(Number.isSafeInteger(rows) && rows > 0, name, `extent ${id} has ${rows} rows`);
  check(Number.isSafeInteger(sizeBytes) && sizeBytes > 0, name, `extent ${id} has ${sizeBytes} bytes`);
  check(CHECKSUM.test(extent.checksum), name, `extent ${id} has the checksum ${JSON.stringify(extent.checksum)}`);
  const ordered = INT64_MIN <= minAtNs && minAtNs <= maxAtNs && maxAtNs <= INT64_MAX;
  check(ordered, name, `extent ${id} spans ${minAtNs} to ${maxAtNs} ns`);
}

/** A null count lies between zero and the extent's rows. */
export function nullCountFitsRows(extentId: string, column: string, nullCount: number, rows: number): void {
  const holds = Number.isSafeInteger(nullCount) && nullCount >= 0 && nullCount <= rows;
  const text = `column ${JSON.stringify(column)} of extent ${extentId} has ${nullCount} nulls in ${rows} rows`;
  check(holds, "nullCountFitsRows", text);
}

/** Statistics name columns of their table, each once. */
export function statisticsNameKnownColumns(extentId: string, ids: readonly number[], known: ReadonlySet<number>): void {
  const name = "statisticsNameKnownColumns";
  check(new Set(ids).size === ids.length, name, `extent ${extentId} has two statistics for one column`);
  for (const id of ids) check(known.has(id), name, `extent ${extentId} has statistics for unknown column id ${id}`);
}

/** Columns that a file has in nanoseconds are among those that it has. */
export function nanosecondColumnsAreStored(extentId: string, ids: readonly number[], stored: readonly number[]): void {
  for (const id of ids) {
    const text = `extent ${extentId} has nanoseconds of column id ${id}, and not the column`;
    check(stored.includes(id), "nanosecondColumnsAreStored", text);
  }
}

/** Filters are of columns of their table, and each column has at most one of a kind. */
export function filtersAreOneToAColumn(
  extentId: string,
  filters: readonly { columnId: number | undefined; kind: string }[],
  known: ReadonlySet<number>,
): void {
  const name = "filtersAreOneToAColumn";
  const keys = new Set(filters.map(({ columnId, kind }) => `${columnId} ${kind}`));
  check(keys.size === filters.length, name, `extent ${extentId} has two filters of one kind for a column`);
  for (const { columnId } of filters) {
    const holds = columnId !== undefined && known.has(columnId);
    check(holds, name, `extent ${extentId} has a filter for an unknown column`);
  }
}

/** Ids of columns are taken in order and never reused; `nextId` is the first that was never taken. */
export function columnIdsAreNeverReused(tableId: number, columns: readonly ColumnRecord[], nextId: number): void {
  let previous = 0;
  for (const { id } of columns) {
    const holds = id > previous && id < nextId;
    check(
      holds,
      "columnIdsAreNeverReused",
      `table ${tableId} has column id ${id} after ${previous}, next is ${nextId}`,
    );
    previous = id;
  }
}

/** Column names of one table differ by more than case, and are not more than the cap. */
export function columnNamesAreUnique(tableId: number, columns: readonly ColumnRecord[]): void {
  const name = "columnNamesAreUnique";
  const count = columns.length;
  check(count <= LIMITS.columnsPerTable, name, `table ${tableId} has ${count} columns`);
  check(new Set(columns.map((c) => foldName(c.name))).size === count, name, `table ${tableId} has a name twice`);
}

/** A merge keeps the number of rows. */
export function mergesConserveRows(inputRows: number, outputRows: number): void {
  const text = `the inputs have ${inputRows} rows, the outputs ${outputRows}`;
  check(inputRows === outputRows, "mergesConserveRows", text);
}

/** A deletion takes away the rows that it says it does, and no others. */
export function deletionsConserveRows(inputRows: number, outputRows: number, deletedRows: number): void {
  const holds = Number.isSafeInteger(deletedRows) && deletedRows >= 0 && inputRows === outputRows + deletedRows;
  const text = `the inputs have ${inputRows} rows, the outputs ${outputRows}, and ${deletedRows} are deleted`;
  check(holds, "deletionsConserveRows", text);
}

/** What is forgotten is dead. */
export function liveExtentsAreNotForgotten(
  extentId: string,
  endSnapshot: number | undefined,
): asserts endSnapshot is number {
  check(endSnapshot !== undefined, "liveExtentsAreNotForgotten", `extent ${extentId} is alive`);
}

/** What is forgotten was seen last by a snapshot that can no longer be read. */
export function readableExtentsAreNotForgotten(extentId: string, endSnapshot: number, oldestReadable: number): void {
  const text = `extent ${extentId} ended with snapshot ${endSnapshot}; snapshot ${oldestReadable} can still be read`;
  check(endSnapshot <= oldestReadable, "readableExtentsAreNotForgotten", text);
}

/** An id is either an extent's or pending deletion. */
export function pendingDeletionsAreUnknown(extentId: string, isKnown: boolean): void {
  check(!isKnown, "pendingDeletionsAreUnknown", `extent ${extentId} is in the catalog and pending deletion`);
}

/** Every acknowledgement in the ledger points to a snapshot that exists, or that can no longer be read. */
export function ledgerPointsToSnapshot(tableId: number, snapshotId: number, exists: boolean): void {
  const text = `an entry of table ${tableId} points to snapshot ${snapshotId}, which does not exist`;
  check(exists, "ledgerPointsToSnapshot", text);
}

/** The totals kept per table are those of its live extents. */
export function totalsMatchLiveExtents(tableId: number, kept: TableTotals, counted: TableTotals): void {
  const holds = kept.rows === counted.rows && kept.extents === counted.extents && kept.sizeBytes === counted.sizeBytes;
  const text = `table ${tableId} keeps ${JSON.stringify(kept)}, its extents give ${JSON.stringify(counted)}`;
  check(holds, "totalsMatchLiveExtents", text);
}

export type TableTotals = { rows: number; extents: number; sizeBytes: number };

/**
 * Whether a text can be stored in every driver and comes back as it was: not empty, no NUL (SQLite under Node cuts a
 * text there when it is read, Postgres refuses it), no unpaired surrogate (two texts would become one).
 */
export function isStorableText(text: string): boolean {
  return text !== "" && !text.includes("\0") && text.isWellFormed();
}

function check(holds: boolean, invariant: string, detail: string): void {
  if (!holds) throw new InvariantViolation(invariant, detail);
}
