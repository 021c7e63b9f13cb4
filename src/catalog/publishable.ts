import { foldName } from "../core/names.ts";
import { isPublishable } from "../format/types.ts";
import type { Catalog, ExtentRecord, TableRecord } from "./catalog.ts";

/**
 * Which extents of a table other programs can read as they are: Parquet of a version that is made for it
 * (`isPublishable`), and no file with whole numbers in a column that has become `real` since. The others are published
 * once compaction has written their rows again. `unpublished-days.ts` says the same in SQL.
 */
export function isPublished(
  { columns }: Pick<TableRecord, "columns">,
  snapshot: number,
  extent: Pick<ExtentRecord, "format" | "formatVersion" | "schemaVersion" | "stats">,
): boolean {
  if (!isPublishable(extent)) return false;
  // Iceberg has no way from whole numbers to reals.
  return !columns.some(({ name, widened }) => {
    if (widened === undefined || widened.snapshot > snapshot || widened.version <= extent.schemaVersion) return false;
    return extent.stats.some((own) => foldName(own.name) === foldName(name));
  });
}

/** The columns whose statistics `isPublished` needs: a file may have whole numbers where the table has reals. */
export function columnsInQuestion({ columns }: Pick<TableRecord, "columns">): string[] {
  return columns.filter(({ widened }) => widened !== undefined).map(({ name }) => name);
}

/** Snapshots with which columns changed their types: see `widening.ts`. */
export function wideningSnapshots({ columns }: Pick<TableRecord, "columns">): number[] {
  return columns.flatMap(({ widened }) => widened?.snapshot ?? []);
}

export type UnpublishedTotals = { extents: number; rows: number; sizeBytes: number };

/** What a table has that other programs cannot read yet: see `Catalog.unpublishedDays`. */
export async function unpublishedTotals(
  catalog: Pick<Catalog, "unpublishedDays">,
  tableId: number,
  which: { belowBytes?: number; upTo?: number } = {},
): Promise<UnpublishedTotals> {
  const totals = { extents: 0, rows: 0, sizeBytes: 0 };
  for (const day of await catalog.unpublishedDays({ ...which, tableId })) {
    totals.extents += day.extents;
    totals.rows += day.rows;
    totals.sizeBytes += day.sizeBytes;
  }
  return totals;
}
