import { Histogram } from "prom-client";
import { LATENCY_SECONDS } from "../../core/metric-buckets.ts";
import { metricSet } from "../../core/metric-set.ts";

/** Where the time of queries goes. */
export const QUERY_LOG_METRICS = metricSet((registers) => ({
  queryStageDuration: new Histogram({
    name: "engine_query_stage_duration_seconds",
    help: "Time that a query spent in a stage: `queue`, `parse`, `plan`, `fetch`, `scan`, `stream`.",
    labelNames: ["stage"],
    buckets: LATENCY_SECONDS,
    registers,
  }),
}));
