import { foldName } from "../core/names.ts";
import type { ColumnStats } from "../format/types.ts";
import type { ColumnRecord, FlushCommit, TableRecord } from "./catalog.ts";
import { decodeStats, type EncodedStats } from "./stats-encoding.ts";

/**
 * The one change of a column's type: an inferred `long` becomes `real` when a fraction comes, which otherwise would be
 * missing from every average.
 *
 *     granted   when no extent that is alive or readable has a value of the column beyond ±2^53: each of its integers is
 *               then a double, and nothing is lost; once, and never taken back
 *     stored    extents keep their integers; an extent's schema version tells which it has, so readers convert those of
 *               versions before `widened.version`
 *     as of     a snapshot before `widened.snapshot` shows the column as `long`, as it was
 *     late      a flush that was sealed under `long` and comes to a column that is `real` by now is stored as it is, under
 *               the version that it was sealed under, unless a value of its own lies beyond ±2^53 or it brings columns,
 *               which make it an extent of a later version; else it is sent back
 */
const MOST = 2n ** 53n;

/** The same as text, for SQL. */
export const MOST_WIDENABLE = String(MOST);

/** The columns of those names (any case) that may be widened, if their values allow it. */
export function widenable({ columns }: Pick<TableRecord, "columns">, names: readonly string[]): ColumnRecord[] {
  const wanted = new Set(names.map(foldName));
  return columns.filter((column) => isInferredLong(column) && wanted.has(foldName(column.name)));
}

/** Whether a column's values lie so far out that not every one would be a double. */
export function isBeyondReal({ min, max }: Pick<ColumnStats, "min" | "max">): boolean {
  return isFar(min) || isFar(max);
}

function isFar(bound: string | undefined): boolean {
  if (bound === undefined || !/^-?\d+$/.test(bound)) return false;
  const value = BigInt(bound);
  return value < -MOST || value > MOST;
}

/** What a flush has of a column whose type may have changed since it was sealed. */
type Flush = Pick<FlushCommit, "schemaVersion" | "newColumns"> & { extents: readonly { stats: Stats }[] };
type Stats = readonly ColumnStats[] | EncodedStats;

/**
 * Ids of columns that the flush was sealed under as `long`, and that it cannot be stored for when they are `real` by now.
 * The table may be older or newer than the flush.
 */
export function unwidenedColumns({ columns }: Pick<TableRecord, "columns">, flush: Flush): number[] {
  const candidates = columns.filter((column) => {
    return isInferredLong(column) || (column.widened !== undefined && column.widened.version > flush.schemaVersion);
  });
  if (candidates.length === 0) return [];
  const stats = flush.extents.flatMap((extent) => statsOf(extent.stats));
  return candidates.flatMap(({ id, name }) => {
    const own = stats.filter((of) => foldName(of.name) === foldName(name));
    const cannot = flush.newColumns.length > 0 ? own.length > 0 : own.some(isBeyondReal);
    return cannot ? [id] : [];
  });
}

function statsOf(stats: Stats): readonly ColumnStats[] {
  return "names" in stats ? decodeStats(JSON.parse(stats.names) as string[], stats.values) : stats;
}

/** Names of the columns that extents of a schema version have as `long` and the table, as it is given, as `real`. */
export function unwidenedIn({ columns }: Pick<TableRecord, "columns">, schemaVersion: number): string[] {
  return columns.flatMap(({ name, widened }) =>
    widened !== undefined && widened.version > schemaVersion ? [name] : [],
  );
}

/** The column as a snapshot shows it. */
export function columnAt(column: ColumnRecord, snapshot: number): ColumnRecord {
  const { widened, ...before } = column;
  return widened !== undefined && snapshot < widened.snapshot ? { ...before, type: { kind: "long" } } : column;
}

function isInferredLong({ type, inferred }: ColumnRecord): boolean {
  return inferred === true && type.kind === "long";
}
