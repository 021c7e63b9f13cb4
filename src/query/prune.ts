import type { Catalog, PlannedExtent, ExtentTotals, ScanFilter, TableRecord } from "../catalog/catalog.ts";
import { pruneByFilters } from "./filter-rule.ts";
import type { Mention } from "./protocol.ts";
import { statsTests } from "./stats-tests.ts";

/**
 * Which extents of a table a query needs, by rules that are tried one after the other, each cheaper than reading what
 * it leaves out: the range of `at`, then minima, maxima and NULL counts (both where the catalog keeps them), then
 * filters. An extent stays when any mention of the table may need it.
 */
export type Pruning = {
  total: ExtentTotals;
  byTime: ExtentTotals;
  byStats: ExtentTotals;
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
  const scan = await catalog.planScan({ tableId: table.id, atSnapshot, filters });
  const { extents, prunedByFilters } = await pruneByFilters(catalog, table.id, scan.extents, filters);
  const { total, prunedByTime: byTime, prunedByStats: byStats } = scan;
  const pruning = { total, byTime, byStats, byFilters: prunedByFilters, read: totalsOf(extents) };
  return { extents, pruning };
}

function totalsOf(extents: readonly PlannedExtent[]): ExtentTotals {
  return { extents: extents.length, sizeBytes: extents.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
}

/** As `EXPLAIN` shows it. */
export function describePruning(
  table: string,
  snapshot: number,
  { total, byTime, byStats, byFilters, read }: Pruning,
): string {
  const rows: [string, ExtentTotals][] = [
    ["total", total],
    ["pruned by time", byTime],
    ["pruned by min/max", byStats],
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
