import { Counter } from "prom-client";
import { metricSet } from "../../core/metric-set.ts";
import { WatchedGauge } from "../../core/watched-gauge.ts";

export const TAIL_METRICS = metricSet((registers) => ({
  tails: new WatchedGauge({ name: "engine_query_tails", help: "Live tails of this node.", registers }),
  rows: new Counter({
    name: "engine_query_tail_rows_total",
    help: "Rows that scans found for live tails; one that several tails show counts once.",
    registers,
  }),
  scans: new Counter({
    name: "engine_query_tail_scans_total",
    help: "Scans for live tails. `shared` ones had the filters of several.",
    labelNames: ["kind"],
    registers,
  }),
  ended: new Counter({
    name: "engine_query_tails_ended_total",
    help: "Live tails that this node ended, by the code that they were given.",
    labelNames: ["code"],
    registers,
  }),
}));
