import { Counter, Gauge, Histogram } from "prom-client";
import { LATENCY_SECONDS } from "../../core/metric-buckets.ts";
import { metricSet } from "../../core/metric-set.ts";
import { WatchedGauge } from "../../core/watched-gauge.ts";

/** Sandboxes. What is told of all of them comes from the server with the duty `sandboxes`, and from no other. */
export const SANDBOX_METRICS = metricSet((registers) => ({
  sandboxesExisting: new Gauge({
    name: "engine_sandboxes_existing",
    help:
      "Sandboxes by state, all nodes together, those that are deleted and not put away yet among them; as the server with " +
      "the duty `sandboxes` counted last.",
    labelNames: ["state"],
    registers,
  }),
  sandboxNodes: new Gauge({
    name: "engine_sandbox_nodes",
    help:
      "Nodes that run sandboxes: `live`, or `silent` for so long that nothing new is placed there; as the server with the " +
      "duty `sandboxes` counted last.",
    labelNames: ["status"],
    registers,
  }),
  sandboxNodesConnected: new WatchedGauge({
    name: "engine_sandbox_nodes_connected",
    help: "Nodes that keep a connection to this process, a node in it left out.",
    registers,
  }),
  sandboxMachines: new WatchedGauge({
    name: "engine_sandbox_machines",
    help: "Machines that are up on the node in this process: `running` or `paused`.",
    labelNames: ["state"],
    registers,
  }),
  sandboxCreates: new Counter({
    name: "engine_sandbox_creates_total",
    help: "Sandboxes that were to be created through this process: `ok` or an error code.",
    labelNames: ["outcome"],
    registers,
  }),
  sandboxFailures: new Counter({
    name: "engine_sandbox_failures_total",
    help:
      "Sandboxes that became `failed`, as this process wrote it: `no_room` (no node had any in time), `making` (it could not " +
      "be made, or a script failed), `ended` (its machine ended by itself), `node_lost`.",
    labelNames: ["reason"],
    registers,
  }),
  sandboxMakingDuration: new Histogram({
    name: "engine_sandbox_making_duration_seconds",
    help: "Time from when a node began with a sandbox until it was running, scripts included.",
    buckets: LATENCY_SECONDS,
    registers,
  }),
  sandboxCalls: new Counter({
    name: "engine_sandbox_calls_total",
    help: "Calls of this process to nodes about what lives in sandboxes: `ok` (an answer was begun) or an error code.",
    labelNames: ["method", "outcome"],
    registers,
  }),
  sandboxStreamsOpen: new Gauge({
    name: "engine_sandbox_streams_open",
    help:
      "Answers of nodes that this process is passing on: output of commands (`exec`, `exec.attach`), terminals (`shell`), " +
      "requests and WebSockets to ports (`connect`), files (`files.get`).",
    labelNames: ["method"],
    registers,
  }),
  sandboxTurns: new Counter({
    name: "engine_sandbox_turns_total",
    help:
      "Messages to agents whose turn has ended, as this process wrote it: `completed`, `interrupted`, or `failed` (the agent " +
      "failed, or its sandbox was stopped or lost).",
    labelNames: ["outcome"],
    registers,
  }),
  sandboxFollowers: new WatchedGauge({
    name: "engine_sandbox_followers",
    help: "Clients of this process that follow events or logs of sandboxes.",
    registers,
  }),
}));
