import type { ExtentRecord, TableRecord } from "../catalog/catalog.ts";
import { isPublished } from "../catalog/publishable.ts";
import { timeOfId } from "../core/ids.ts";

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
    if (isPublished(table, snapshot, extent)) {
      files.push(extent);
      continue;
    }
    pending.rows += extent.rows;
    pending.sinceMs = Math.min(pending.sinceMs ?? Infinity, timeOfId(extent.id));
  }
  return { files, pending };
}
