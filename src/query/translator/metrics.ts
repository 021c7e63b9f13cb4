import { Counter, Histogram } from "prom-client";
import { LATENCY_SECONDS } from "../../core/metric-buckets.ts";
import { metricSet } from "../../core/metric-set.ts";
import { WatchedGauge } from "../../core/watched-gauge.ts";

/** The translator of KQL. */
export const TRANSLATOR_METRICS = metricSet((registers) => ({
  kqlDuration: new Histogram({
    name: "engine_kql_translation_duration_seconds",
    help: "Time of the translator with one text, without the wait for it: `names` of tables, then the text (`translate`).",
    labelNames: ["stage"],
    buckets: LATENCY_SECONDS,
    registers,
  }),
  kqlWaiting: new WatchedGauge({
    name: "engine_kql_waiting",
    help: "KQL queries that wait for the translator.",
    registers,
  }),
  kqlStarts: new Counter({
    name: "engine_kql_translator_starts_total",
    help: "Starts of the translator process by type: from a start-up `snapshot`, or from the `sources` of the library.",
    labelNames: ["type"],
    registers,
  }),
}));
