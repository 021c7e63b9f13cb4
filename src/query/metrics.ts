import { Counter, Histogram } from "prom-client";
import { LATENCY_SECONDS } from "../core/metric-buckets.ts";
import { metricSet } from "../core/metric-set.ts";
import { WatchedGauge } from "../core/watched-gauge.ts";

/** Queries by what became of them, and what they take of the machine. */
export const QUERY_METRICS = metricSet((registers) => ({
  queriesRunning: new WatchedGauge({ name: "engine_queries_running", help: "Queries running now.", registers }),
  queryDuration: new Histogram({
    name: "engine_query_duration_seconds",
    help: "Time of one query by outcome: `ok` or an error code.",
    labelNames: ["outcome"],
    buckets: LATENCY_SECONDS,
    registers,
  }),
  queryRefused: new Counter({
    name: "engine_query_refused_total",
    help: "Queries turned away with 429 by an admission limit: `concurrent`, `tenant`, `memory`, `large`.",
    labelNames: ["reason"],
    registers,
  }),
  queryBudgetKills: new Counter({
    name: "engine_query_budget_kills_total",
    help: "Queries ended by a budget, by budget.",
    labelNames: ["budget"],
    registers,
  }),
  queryRows: new Counter({ name: "engine_query_rows_total", help: "Rows of answers.", registers }),
  queryExtents: new Counter({
    name: "engine_query_extents_total",
    help: "Extents in the time range of queries: `read`, or left out before anything was fetched (`pruned`).",
    labelNames: ["result"],
    registers,
  }),
  queryRestarts: new Counter({
    name: "engine_query_restarts_total",
    help:
      "Times that a query started over: `outgrown` (it became a large one and waited for its turn), `retryable` (its " +
      "process, a cached file or its snapshot was gone).",
    labelNames: ["reason"],
    registers,
  }),
  queriesWaiting: new WatchedGauge({
    name: "engine_queries_waiting",
    help: "Queries that wait for `memory` (or their turn as a large one), or for a `process`.",
    labelNames: ["for"],
    registers,
  }),
  queryMemoryReserved: new WatchedGauge({
    name: "engine_query_memory_reserved_bytes",
    help: "Memory budgets of the queries that run.",
    registers,
  }),
  queryMemoryLimit: new WatchedGauge({
    name: "engine_query_memory_limit_bytes",
    help: "What the memory budgets of running queries may add up to on this node.",
    registers,
  }),
  queryProcesses: new WatchedGauge({
    name: "engine_query_processes",
    help: "Query processes by state: `busy` (with a query, or starting), `idle`.",
    labelNames: ["state"],
    registers,
  }),
  queryProcessesLost: new Counter({
    name: "engine_query_processes_lost_total",
    help: "Query processes that ended under a query without having been told to, which is nearly always for memory.",
    registers,
  }),
  queryHeldSnapshot: new WatchedGauge({
    name: "engine_query_held_snapshot",
    help: "The oldest snapshot that this node keeps from being deleted for its queries; none while it holds none.",
    registers,
  }),
  queryHoldLapses: new Counter({
    name: "engine_query_hold_lapses_total",
    help: "Queries that failed because the catalog could not be told in time which snapshot they read.",
    registers,
  }),
}));
