import { Counter } from "prom-client";
import type { FlushCommit, TableRecord } from "../catalog/catalog.ts";
import { metricSet } from "../core/metric-set.ts";
import { formatColumnType, sameColumnType } from "../format/types.ts";

/** Types that come from data, and what did not fit them. Each is counted by the node that commits. */
export const INGEST_METRICS = metricSet((registers) => ({
  misfits: new Counter({
    name: "engine_ingest_misfits_total",
    help: "Values that were kept in `props` because they did not fit their column, as they were committed.",
    registers,
  }),
  inferredColumns: new Counter({
    name: "engine_ingest_inferred_columns_total",
    help: "New columns whose type was taken from values, by type; flushes that bring one at a time each count it.",
    labelNames: ["type"],
    registers,
  }),
  widened: new Counter({
    name: "engine_ingest_widened_total",
    help: "Columns that became `real` because a fraction came to what was inferred as `long`; nodes that ask at once each count.",
    registers,
  }),
}));

type Registered = Parameters<typeof INGEST_METRICS.of>[0];

/** Counts the columns that became wider when this node asked for it. */
export function countWidened(metrics: Registered, before: TableRecord, after: TableRecord): void {
  const types = new Map(before.columns.map(({ id, type }) => [id, type]));
  for (const { id, type } of after.columns) {
    const earlier = types.get(id);
    if (earlier !== undefined && !sameColumnType(earlier, type)) INGEST_METRICS.of(metrics).widened.inc();
  }
}

/** Counts what a flush has brought, once it is committed. */
export function countCommitted(metrics: Registered, flush: FlushCommit): void {
  const { misfits, inferredColumns } = INGEST_METRICS.of(metrics);
  for (const { stats } of flush.extents) {
    for (const { misfits: own = 0 } of stats) if (own > 0) misfits.inc(own);
  }
  for (const { type, inferred } of flush.newColumns) {
    if (inferred === true) inferredColumns.inc({ type: formatColumnType(type) });
  }
}
