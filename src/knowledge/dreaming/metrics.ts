import { Counter } from "prom-client";
import { metricSet } from "../../core/metric-set.ts";

/** Of this process. */
export const DREAMING_METRICS = metricSet((registers) => ({
  runs: new Counter({
    name: "engine_dreaming_runs_total",
    help: "Dreams that ended, by what came of them: done, or the code of their error; those that are tried again count too.",
    labelNames: ["outcome"],
    registers,
  }),
  events: new Counter({
    name: "engine_dreaming_events_total",
    help: "Events that dreams read and committed.",
    registers,
  }),
  proposals: new Counter({
    name: "engine_dreaming_proposals_total",
    help: "Proposals of models in dreams: accepted, or why they were refused.",
    labelNames: ["outcome"],
    registers,
  }),
}));

export type DreamingMetrics = ReturnType<typeof DREAMING_METRICS.of>;
