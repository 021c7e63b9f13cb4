import type { StatsTest } from "../../catalog/stats-predicates.ts";
import { foldName } from "../../core/names.ts";
import { TIME_COLUMN, type ColumnSpec } from "../../format/types.ts";
import type { TimeBounds } from "../contract/tables.ts";
import type { Mention } from "../resolve/needs.ts";
import { statsTests } from "./predicate-ranges.ts";

/**
 * What a query says of the table's `timestamp` columns, as one range for each that any mention of the table needs rows of.
 * Rows outside of it do not matter, as extents without a row inside do not. DuckDB prunes row groups by comparisons with
 * the column of a file alone; where that has another type than the table's (`format/parquet-times.ts`), the query's own
 * comparisons are with an expression, and these are added to the scan.
 */
export function timeBounds(mentions: readonly Mention[], columns: readonly ColumnSpec[]): TimeBounds[] {
  return columns.flatMap((column) => {
    if (column.type.kind !== "timestamp" || mentions.length === 0) return [];
    const { minNs, maxNs } = mentions.map((mention) => rangeIn(mention, column)).reduce(union);
    if (minNs === undefined && maxNs === undefined) return [];
    return { column: column.name, minNs, maxNs };
  });
}

type Range = Omit<TimeBounds, "column">;

function rangeIn({ range, predicates }: Mention, column: ColumnSpec): Range {
  const own = foldName(column.name) === TIME_COLUMN ? range : {};
  return statsTests(predicates, [column]).map(hullOf).reduce(intersection, own);
}

function hullOf(test: StatsTest): Range {
  if (test.kind === "all") return test.of.map(hullOf).reduce(intersection, {});
  if (test.kind !== "within") return {};
  return { minNs: timeOf(test.ranges[0]?.min), maxNs: timeOf(test.ranges.at(-1)?.max) };
}

function timeOf(value: unknown): bigint | undefined {
  return typeof value === "bigint" ? value : undefined;
}

function intersection(a: Range, b: Range): Range {
  const minNs = a.minNs === undefined || (b.minNs !== undefined && b.minNs > a.minNs) ? b.minNs : a.minNs;
  const maxNs = a.maxNs === undefined || (b.maxNs !== undefined && b.maxNs < a.maxNs) ? b.maxNs : a.maxNs;
  return { minNs, maxNs };
}

function union(a: Range, b: Range): Range {
  const minNs = a.minNs === undefined || (b.minNs !== undefined && b.minNs > a.minNs) ? a.minNs : b.minNs;
  const maxNs = a.maxNs === undefined || (b.maxNs !== undefined && b.maxNs < a.maxNs) ? a.maxNs : b.maxNs;
  return { minNs, maxNs };
}
