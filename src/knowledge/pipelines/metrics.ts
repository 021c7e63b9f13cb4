import { Counter } from "prom-client";
import { metricSet } from "../../core/metric-set.ts";

/** Of this process. */
export const PIPELINE_METRICS = metricSet((registers) => ({
  links: new Counter({
    name: "engine_pipelines_links_total",
    help: "Links between memories that consolidation made, by their relation.",
    labelNames: ["relation"],
    registers,
  }),
  verdicts: new Counter({
    name: "engine_pipelines_verdicts_total",
    help: "Pairs of memories that a language model was asked about, by what it said of them: `failed` is no usable answer.",
    labelNames: ["outcome"],
    registers,
  }),
  events: new Counter({
    name: "engine_pipelines_events_total",
    help: "Rows of the firehose that were looked through for failures.",
    registers,
  }),
  failures: new Counter({
    name: "engine_pipelines_failures_total",
    help: "Failures among them.",
    registers,
  }),
  learnings: new Counter({
    name: "engine_pipelines_learnings_total",
    help: "Learnings about failures that repeat, by what came of saving them.",
    labelNames: ["outcome"],
    registers,
  }),
}));

export type PipelineMetrics = ReturnType<typeof PIPELINE_METRICS.of>;
