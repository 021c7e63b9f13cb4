import type { TableRecord } from "../../catalog/catalog.ts";
import { foldName } from "../../core/names.ts";
import { TIME_COLUMN } from "../../format/types.ts";
import type { Mention } from "../resolve/needs.ts";
import type { VisibleRows } from "../contract/tables.ts";

/**
 * No query shows a row past its table's retention, though extents stay until the last of their rows is past it: of an
 * extent that reaches beyond the edge only the rows with `at` on this side are read. That holds at every snapshot, for
 * the edge is where it is when the query is planned, by this node's clock.
 *
 * Extents that lie beyond the edge are pruned like those outside of any range of time, and those on this side of it are
 * read, or just counted, as if there were no retention. Rows dated into the future stay visible for as long as their
 * extent stays.
 */
const DAY_MS = 86_400_000;
const NS_PER_MS = 1_000_000n;

/** Undefined when the table shows all of its rows. */
export function visibleRows(
  { columns, retentionDays }: Pick<TableRecord, "columns" | "retentionDays">,
  nowMs: number,
): VisibleRows | undefined {
  const column = columns.find(({ name }) => foldName(name) === TIME_COLUMN)?.name;
  if (retentionDays === undefined || column === undefined) return undefined;
  return { fromNs: BigInt(Math.floor(nowMs) - retentionDays * DAY_MS) * NS_PER_MS, column };
}

/** The mentions of a table, none of which needs a row beyond the edge. */
export function withinRetention(mentions: readonly Mention[], visible: VisibleRows | undefined): readonly Mention[] {
  if (visible === undefined) return mentions;
  const { fromNs } = visible;
  return mentions.map((mention) => {
    const { minNs } = mention.range;
    return { ...mention, range: { ...mention.range, minNs: minNs === undefined || minNs < fromNs ? fromNs : minNs } };
  });
}

/** Whether an extent has rows that are not shown. */
export function reachesBeyond(extent: { minAtNs: bigint }, visible: VisibleRows | undefined): visible is VisibleRows {
  return visible !== undefined && extent.minAtNs < visible.fromNs;
}
