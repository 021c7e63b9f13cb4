import type { ExtentRecord, TableRecord } from "../catalog/catalog.ts";
import { foldName } from "../core/names.ts";
import { timeOfId } from "../core/ids.ts";
import { isPublishable } from "../format/types.ts";

/** What of a table other programs can read, and what they will once compaction has been there. */
export type Division = {
  files: ExtentRecord[];
  pending: Pending;
};

export type Pending = {
  rows: number;
  /** When the first of them was sealed. */
  sinceMs: number | undefined;
};

/**
 * Divides the extents that a table has at a snapshot. They come with the statistics of the columns that
 * `columnsInQuestion` names.
 */
export function dividePublished(table: TableRecord, snapshot: number, extents: readonly ExtentRecord[]): Division {
  const files: ExtentRecord[] = [];
  const pending: Pending = { rows: 0, sinceMs: undefined };
  for (const extent of extents) {
    if (isPublishable(extent) && !hasOtherTypes(table, snapshot, extent)) {
      files.push(extent);
      continue;
    }
    pending.rows += extent.rows;
    pending.sinceMs = Math.min(pending.sinceMs ?? Infinity, timeOfId(extent.id));
  }
  return { files, pending };
}

/** Columns whose type alone does not say what a file has of them: it may have integers where the table has reals. */
export function columnsInQuestion({ columns }: Pick<TableRecord, "columns">): string[] {
  return columns.filter(({ widened }) => widened !== undefined).map(({ name }) => name);
}

/** Snapshots with which columns changed their types: see `widening.ts`. */
export function wideningSnapshots({ columns }: Pick<TableRecord, "columns">): number[] {
  return columns.flatMap(({ widened }) => widened?.snapshot ?? []);
}

/** Iceberg has no way from integers to reals, so a file with those of a widened column waits to be written anew. */
function hasOtherTypes(
  { columns }: Pick<TableRecord, "columns">,
  snapshot: number,
  { schemaVersion, stats }: Pick<ExtentRecord, "schemaVersion" | "stats">,
): boolean {
  return columns.some(({ name, widened }) => {
    if (widened === undefined || widened.snapshot > snapshot || widened.version <= schemaVersion) return false;
    return stats.some((own) => foldName(own.name) === foldName(name));
  });
}
