import type { ColumnRecord, NewExtent } from "../catalog/catalog.ts";
import { foldName } from "../core/names.ts";
import { TIME_COLUMN, type ColumnStats } from "../format/types.ts";

/**
 * The outputs with the misfits of their inputs, by column id: each takes as many as it has rows that may have one, the
 * first ones first, so that the sum stays. Of which file a value's row became part nobody asks; where rows were deleted,
 * what is left over goes with them.
 */
export function shareMisfits(
  outputs: readonly NewExtent[],
  columns: readonly ColumnRecord[],
  misfits: ReadonlyMap<number, number>,
): NewExtent[] {
  if (misfits.size === 0) return [...outputs];
  const left = new Map(columns.map(({ id, name }) => [foldName(name), misfits.get(id) ?? 0]));
  return outputs.map((output) => {
    const stats = output.stats.map((own) => {
      const name = foldName(own.name);
      const count = Math.min(left.get(name) ?? 0, rowsForMisfits(own, output.rows));
      left.set(name, (left.get(name) ?? 0) - count);
      return count > 0 ? { ...own, misfits: count } : own;
    });
    return { ...output, stats };
  });
}

/** A misfit leaves NULL in its column; but never in `at`, which gets its time from elsewhere. */
function rowsForMisfits({ name, nullCount }: ColumnStats, rows: number): number {
  return foldName(name) === TIME_COLUMN ? rows : nullCount;
}
