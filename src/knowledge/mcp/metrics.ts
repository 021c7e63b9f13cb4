import { Counter, Histogram } from "prom-client";
import { LATENCY_SECONDS } from "../../core/metric-buckets.ts";
import { metricSet } from "../../core/metric-set.ts";
import { WatchedGauge } from "../../core/watched-gauge.ts";

/** Of this process. */
export const MCP_METRICS = metricSet((registers) => ({
  calls: new Counter({
    name: "engine_mcp_calls_total",
    help: "Calls of MCP tools, by tool and outcome: ok, refused (the caller can mend it) or failed.",
    labelNames: ["tool", "outcome"],
    registers,
  }),
  callDuration: new Histogram({
    name: "engine_mcp_call_duration_seconds",
    help: "How long calls of MCP tools took.",
    buckets: LATENCY_SECONDS,
    registers,
  }),
  streams: new WatchedGauge({
    name: "engine_mcp_streams",
    help: "Open streams of changes to the lists of MCP.",
    registers,
  }),
}));
