import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";
import { LATENCY_SECONDS } from "./metric-buckets.ts";
import { treeCpuSeconds } from "./tree-cpu.ts";
import { WatchedGauge } from "./watched-gauge.ts";

/**
 * The metrics of one process, made once by the role and passed down; features add theirs by `metricSet`.
 * Names and labels are part of the contract.
 */
export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics(options: { process: boolean } = { process: false }) {
  const registry = new Registry();
  if (options.process) collectDefaultMetrics({ register: registry, prefix: "engine_" });
  const registers = [registry];
  return {
    registry,
    httpDuration: new Histogram({
      name: "engine_http_request_duration_seconds",
      help: "Time from the request's headers to the end of the response.",
      labelNames: ["method", "route", "status"],
      buckets: LATENCY_SECONDS,
      registers,
    }),
    grpcDuration: new Histogram({
      name: "engine_grpc_call_duration_seconds",
      help: "Time from a call's request message to the end of its answer, over gRPC and gRPC-web, by method and status (`OK`, `NOT_FOUND`, …).",
      labelNames: ["method", "status"],
      buckets: LATENCY_SECONDS,
      registers,
    }),
    ...dutyMetrics(registers),
    ...objectStoreMetrics(registers),
    ...edgeMetrics(registers),
    ...nodeMetrics(registers),
    ...catalogMetrics(registers),
  };
}

/** What an edge forwards. `upstream` is the kind of peers (`query`, `ingest`), `peer` one address of them. */
function edgeMetrics(registers: Registry[]) {
  const labelNames = ["upstream", "peer"] as const;
  return {
    edgeRequests: new Counter({
      name: "engine_edge_requests_total",
      help:
        "Requests sent to peers by outcome: `answered`, `cut` (in the middle of the answer), `unreachable` (nothing " +
        "was sent), `broken` (before the answer), `cancelled` (by the client, or for another peer).",
      labelNames: [...labelNames, "outcome"],
      registers,
    }),
    edgeRetries: new Counter({
      name: "engine_edge_retries_total",
      help: "Requests sent again, to another peer, by the outcome of the try before.",
      labelNames: ["upstream", "after"],
      registers,
    }),
    edgeNoPeer: new Counter({
      name: "engine_edge_no_peer_total",
      help: "Requests answered with 503 because no peer could take them.",
      labelNames: ["upstream"],
      registers,
    }),
    edgeEjections: new Counter({
      name: "engine_edge_ejections_total",
      help: "Times that a peer was taken out because it could not be reached or was not healthy.",
      labelNames,
      registers,
    }),
    edgeBytes: new Counter({
      name: "engine_edge_bytes_total",
      help: "Bytes of bodies sent to peers (`out`, those sent again included) and of their answers (`in`).",
      labelNames: ["upstream", "direction"],
      registers,
    }),
    edgeInFlight: new Gauge({
      name: "engine_edge_in_flight",
      help: "Requests that a peer is answering.",
      labelNames,
      registers,
    }),
    edgePeerUsable: new Gauge({
      name: "engine_edge_peer_usable",
      help: "1 while new requests go to the peer, 0 while it is draining or ejected.",
      labelNames,
      registers,
    }),
  };
}

/** Requests to a remote object store: they are what it is paid for. */
function objectStoreMetrics(registers: Registry[]) {
  return {
    objstoreRequests: new Counter({
      name: "engine_objstore_requests_total",
      help: "Requests to the object store, each attempt counted, by kind (`put`, `get`, `head`, `list`, `delete`, `multipart`) and outcome.",
      labelNames: ["kind", "outcome"],
      registers,
    }),
    objstoreBytes: new Counter({
      name: "engine_objstore_bytes_total",
      help: "Bytes of objects received from (`in`) and sent to (`out`) the object store.",
      labelNames: ["direction"],
      registers,
    }),
    objstoreDuration: new Histogram({
      name: "engine_objstore_request_duration_seconds",
      help: "Time of one request to the object store, body included, waiting for a connection not.",
      labelNames: ["kind"],
      buckets: LATENCY_SECONDS,
      registers,
    }),
    objstoreInFlight: new Gauge({
      name: "engine_objstore_requests_in_flight",
      help: "Requests to the object store under way; at 64 others wait.",
      registers,
    }),
    objstoreRetries: new Counter({
      name: "engine_objstore_retries_total",
      help: "Requests to the object store that repeat one that failed.",
      labelNames: ["kind"],
      registers,
    }),
    objstoreGivenUp: new Counter({
      name: "engine_objstore_given_up_total",
      help: "Operations on the object store that failed for good, all their attempts used; what is absent is not counted.",
      labelNames: ["kind"],
      registers,
    }),
  };
}

/** What one node of a cluster does at a time, by a lease. Gauges are of the node's last run: who has the lease, knows. */
function dutyMetrics(registers: Registry[]) {
  return {
    dutyHeld: new Gauge({
      name: "engine_duty_held",
      help: "1 while this node holds the lease of a background duty, by duty.",
      labelNames: ["duty"],
      registers,
    }),
    dutyRuns: new Counter({
      name: "engine_duty_runs_total",
      help: "Runs of background duties by outcome: `ok`, `error`, `stopped` (the lease was lost, or the server stopped).",
      labelNames: ["duty", "outcome"],
      registers,
    }),
    dutyFence: new Gauge({
      name: "engine_duty_fence",
      help: "The fence of the lease that this node holds, or held last: the highest of all nodes is the valid one.",
      labelNames: ["duty"],
      registers,
    }),
    dutySucceededAt: new Gauge({
      name: "engine_duty_last_success_timestamp_seconds",
      help: "When this node has last finished a run of the duty without an error.",
      labelNames: ["duty"],
      registers,
    }),
    dutyDuration: new Histogram({
      name: "engine_duty_run_duration_seconds",
      help: "Time of one run of a background duty.",
      labelNames: ["duty"],
      buckets: LATENCY_SECONDS,
      registers,
    }),
  };
}

/** What every node has, whatever its roles. */
function nodeMetrics(registers: Registry[]) {
  return {
    buildInfo: new Gauge({
      name: "engine_build_info",
      help: "Always 1; the labels say which version runs, and as what.",
      labelNames: ["version", "roles"],
      registers,
    }),
    cpu: cpuSeconds(registers),
    cores: new Gauge({
      name: "engine_cpu_cores",
      help: "Cores that this process may use.",
      registers,
    }),
    httpInFlight: new Gauge({
      name: "engine_http_requests_in_flight",
      help: "Requests that are being answered, those about the process itself left out.",
      registers,
    }),
    tlsCertificateExpiry: new WatchedGauge({
      name: "engine_tls_certificate_expiry_timestamp_seconds",
      help: "When the certificate expires that this server shows, in seconds since 1970; only with `ENGINE_TLS_CERT`.",
      registers,
    }),
    diskFree: new WatchedGauge({
      name: "engine_disk_free_bytes",
      help: "Bytes that this process may still write to the disk of a folder: `home` (spilled data, SQLite), `data`, `cache`.",
      labelNames: ["folder"],
      registers,
    }),
    diskSize: new WatchedGauge({
      name: "engine_disk_size_bytes",
      help: "Size of the disk of a folder, as above.",
      labelNames: ["folder"],
      registers,
    }),
  };
}

/** Counted when it is asked for. */
function cpuSeconds(registers: Registry[]): Counter {
  let seen = 0;
  return new Counter({
    name: "engine_cpu_seconds_total",
    help: "CPU seconds of this process and of those that it has started, which `engine_process_cpu_seconds_total` leaves out.",
    registers,
    collect() {
      const now = treeCpuSeconds();
      if (now > seen) this.inc(now - seen);
      seen = Math.max(seen, now);
    },
  });
}

/** What a node asks of its catalog. `pool` is `read` or `write`, or `all` where both share one connection. */
function catalogMetrics(registers: Registry[]) {
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
  };
}
