import { Counter, Histogram } from "prom-client";
import { metricSet } from "../../core/metric-set.ts";
import { WatchedGauge } from "../../core/watched-gauge.ts";

/** Of this process. */
export const AGENT_METRICS = metricSet((registers) => ({
  runs: new Counter({
    name: "engine_agent_runs_total",
    help: "Runs of the agent that ended, by what came of them: done, or the code of their error.",
    labelNames: ["outcome"],
    registers,
  }),
  running: new WatchedGauge({
    name: "engine_agent_runs_running",
    help: "Runs of the agent that are under way.",
    registers,
  }),
  refused: new Counter({
    name: "engine_agent_refusals_total",
    help: "Questions that were refused, because too many were being answered.",
    registers,
  }),
  duration: new Histogram({
    name: "engine_agent_run_duration_seconds",
    help: "How long runs of the agent took, from admission to their end.",
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 45, 60],
    registers,
  }),
  tools: new Counter({
    name: "engine_agent_tool_calls_total",
    help: "Calls of tools by runs of the agent.",
    labelNames: ["tool", "outcome"],
    registers,
  }),
  tokens: new Counter({
    name: "engine_agent_tokens_total",
    help: "Tokens that providers counted, of what they were sent (input) and what they said (output).",
    labelNames: ["kind"],
    registers,
  }),
  menuFailures: new Counter({
    name: "engine_agent_menu_failures_total",
    help: "Lists of models that a provider did not give, so that the built-in one was shown, by kind of engine.",
    labelNames: ["kind"],
    registers,
  }),
}));

export type AgentMetrics = ReturnType<typeof AGENT_METRICS.of>;
