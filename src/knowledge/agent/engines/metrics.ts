import { Counter } from "prom-client";
import { metricSet } from "../../../core/metric-set.ts";

/** Of this process. */
export const ENGINE_METRICS = metricSet((registers) => ({
  menuFailures: new Counter({
    name: "engine_agent_menu_failures_total",
    help: "Lists of models that a provider did not give, so that the built-in one was shown, by kind of engine.",
    labelNames: ["kind"],
    registers,
  }),
}));

export type EngineMetrics = ReturnType<typeof ENGINE_METRICS.of>;
