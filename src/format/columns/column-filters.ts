import type { ColumnFilter } from "../filter/filter.ts";
import { buildValueFilter, valueFilterBytes } from "../filter/value-filter.ts";
import type { ColumnStats } from "../types.ts";
import type { AnyColumn } from "./create.ts";
import type { TextColumn } from "./text-column.ts";

/**
 * Which columns of an extent get a filter of their values while it is sealed: `string` columns that look like
 * identifiers. Minimum and maximum prune what is ordered or has few values; nobody compares with long text as a whole.
 *
 * Building takes about 12 ns for a value and 0.4 ns for each of its bytes, sealing at least 4 ns for each of the extent's.
 */
const MIN_VALUES = 1_000;
const MIN_DISTINCT = 256;
/** As often as this may a value come on average. */
const MAX_REPEATS = 16;
const MAX_MEAN_BYTES = 64;
/** Of sealing's time, what filters may add. The first one may take more, in rows that are little else than an id. */
const TIME_SHARE = 1 / 20;
const NS_PER_VALUE = 12;
const NS_PER_TEXT_BYTE = 0.4;
const SEALING_NS_PER_BYTE = 4;
/** A row of the catalog should not be larger. It is enough for 190,000 values; ingest mostly cuts extents smaller. */
const MAX_FILTER_BYTES = 256 * 1024;

/** Builds the filters of a finished extent of `sizeBytes`; `stats` are the columns' own, in their order. */
export function filtersOf(
  columns: readonly AnyColumn[],
  stats: readonly ColumnStats[],
  sizeBytes: number,
): ColumnFilter[] {
  const candidates = columns.flatMap((column, i) => candidateOf(column, stats[i]?.distinct ?? 0) ?? []);
  candidates.sort((a, b) => b.distinct - a.distinct);
  const filters: ColumnFilter[] = [];
  let leftNs = sizeBytes * SEALING_NS_PER_BYTE * TIME_SHARE;
  for (const { column, values, distinct } of candidates) {
    const costNs = values * NS_PER_VALUE + column.bytes().length * NS_PER_TEXT_BYTE;
    if (valueFilterBytes(values) > MAX_FILTER_BYTES || (costNs > leftNs && filters.length > 0)) continue;
    leftNs -= costNs;
    const texts = { offsets: column.offsets(0, column.rows), bytes: column.bytes() };
    filters.push({ name: column.spec.name, kind: "values", bytes: buildValueFilter(texts, values, distinct) });
  }
  return filters;
}

type Candidate = { column: TextColumn; values: number; distinct: number };

function candidateOf(column: AnyColumn, distinct: number): Candidate | undefined {
  if (column.storage !== "text" || column.spec.type.kind !== "string") return undefined;
  const values = column.rows - column.nullCount;
  return looksLikeIds({ values, distinct, textBytes: column.bytes().length })
    ? { column, values, distinct }
    : undefined;
}

/** Whether a column of so many values, of which so many differ, is worth a filter of its values. */
export function looksLikeIds(texts: { values: number; distinct: number; textBytes: number }): boolean {
  const { values, distinct, textBytes } = texts;
  if (values < MIN_VALUES || distinct < MIN_DISTINCT || distinct * MAX_REPEATS < values) return false;
  return textBytes <= values * MAX_MEAN_BYTES;
}
