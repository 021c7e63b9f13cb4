import type { Catalog, PlannedExtent, ExtentTotals, ScanFilter, TableRecord } from "../../catalog/catalog.ts";
import { pruneByFilters } from "./filter-rule.ts";
import type { Mention } from "../resolve/needs.ts";
import { statsTests } from "./predicate-ranges.ts";

/**
 * Which extents of a table a query needs, by rules that are tried one after the other, each cheaper than reading what
 * it leaves out: the range of `at`, then minima, maxima and NULL counts, then how many of the newest or oldest rows are
 * asked for (all where the catalog keeps them), then filters. An extent stays when any mention of the table may need it.
 */
export type Pruning = {
  total: ExtentTotals;
  byTime: ExtentTotals;
  byStats: ExtentTotals;
  byTop: ExtentTotals;
  byFilters: ExtentTotals;
  /** What is left. */
  read: ExtentTotals;
};

export async function pruneTable(
  catalog: Catalog,
  table: TableRecord,
  atSnapshot: number,
  mentions: readonly Mention[],
): Promise<{ extents: PlannedExtent[]; pruning: Pruning }> {
  const filters = mentions.map(({ range, predicates }): ScanFilter => ({
    range,
    tests: statsTests(predicates, table.columns),
  }));
  const request = { tableId: table.id, atSnapshot, filters };
  const [first, ...others] = mentions;
  const top = others.length === 0 ? first?.top : undefined;
  const scan = await catalog.planScan(top === undefined ? request : { ...request, top });
  const { extents, prunedByFilters } = await pruneByFilters(catalog, table.id, scan.extents, filters);
  const { total, prunedByTime: byTime, prunedByStats: byStats, prunedByTop: byTop } = scan;
  const pruning = { total, byTime, byStats, byTop, byFilters: prunedByFilters, read: totalsOf(extents) };
  return { extents, pruning };
}

function totalsOf(extents: readonly PlannedExtent[]): ExtentTotals {
  return { extents: extents.length, sizeBytes: extents.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
}

/** As `EXPLAIN` shows it. */
export function describePruning(
  table: string,
  snapshot: number,
  { total, byTime, byStats, byTop, byFilters, read }: Pruning,
): string {
  const rows: [string, ExtentTotals][] = [
    ["total", total],
    ["pruned by time", byTime],
    ["pruned by min/max", byStats],
    ["pruned by limit", byTop],
    ["pruned by filter", byFilters],
    ["read", read],
  ];
  const counts = rows.map(([, { extents }]) => String(extents));
  const width = Math.max(...counts.map(({ length }) => length));
  const lines = rows.map(
    ([name, { sizeBytes }], i) =>
      `  ${name.padEnd(17)}  ${(counts[i] ?? "").padStart(width)} extents  ${sizeBytes} bytes`,
  );
  return [`table ${table} at snapshot ${snapshot}`, ...lines].join("\n");
}
