import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { LATENCY_SECONDS } from "./metric-buckets.ts";
import { WatchedGauge } from "./watched-gauge.ts";

/** What a node asks of its catalog. `pool` is `read` or `write`, or `all` where both share one connection. */
export function catalogMetrics(registers: Registry[]) {
  const labelNames = ["pool"] as const;
  return {
    catalogWait: new Histogram({
      name: "engine_catalog_wait_duration_seconds",
      help: "Time that a call waited for a connection to a PostgreSQL catalog, opening one included.",
      labelNames,
      buckets: LATENCY_SECONDS,
      registers,
    }),
    catalogCall: new Histogram({
      name: "engine_catalog_call_duration_seconds",
      help: "Time that a call held its connection to a PostgreSQL catalog.",
      labelNames,
      buckets: LATENCY_SECONDS,
      registers,
    }),
    catalogConnections: new WatchedGauge({
      name: "engine_catalog_connections",
      help: "Connections to a PostgreSQL catalog by state: `busy` (with a call, or being opened), `idle`.",
      labelNames: ["pool", "state"],
      registers,
    }),
    catalogConnectionsLimit: new WatchedGauge({
      name: "engine_catalog_connections_limit",
      help: "Connections that this node opens at most: its part of `ENGINE_CATALOG_MAX_CONNS`.",
      labelNames,
      registers,
    }),
    catalogWaiting: new WatchedGauge({
      name: "engine_catalog_waiting",
      help: "Calls that wait for a connection to a PostgreSQL catalog.",
      labelNames,
      registers,
    }),
    catalogFailures: new Counter({
      name: "engine_catalog_failures_total",
      help:
        "Connections to a PostgreSQL catalog by what failed: `connect` (one try to open it), `lost` (it broke under a " +
        "call), `timeout` (a call got none in time).",
      labelNames: ["pool", "kind"],
      registers,
    }),
    catalogRetries: new Counter({
      name: "engine_catalog_retries_total",
      help: "Writes to a PostgreSQL catalog that were sent again, after a conflict with others or a lost connection.",
      registers,
    }),
    commitsGivenUp: new Counter({
      name: "engine_catalog_commits_given_up_total",
      help: "Commits given up because they met others again and again; nothing was stored, and the client got an error.",
      registers,
    }),
    ledgerSwept: new Counter({
      name: "engine_ledger_swept_total",
      help: "Expired idempotency keys that were taken out of the catalog.",
      registers,
    }),
    ledgerSweepFailures: new Counter({
      name: "engine_ledger_sweep_failures_total",
      help: "Sweeps of expired idempotency keys that failed.",
      registers,
    }),
    ledgerSweptAt: new Gauge({
      name: "engine_ledger_last_sweep_timestamp_seconds",
      help: "When this node has last swept expired idempotency keys; 0 before.",
      registers,
    }),
  };
}
