import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { LATENCY_SECONDS } from "./metric-buckets.ts";
import { WatchedGauge } from "./watched-gauge.ts";

/** What every node has, whatever its roles. */
export function nodeMetrics(registers: Registry[]) {
  return {
    buildInfo: new Gauge({
      name: "engine_build_info",
      help: "Always 1; the labels say which version runs, and as what.",
      labelNames: ["version", "roles"],
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

/** How a write gets from its request into the catalog. */
export function writePathMetrics(registers: Registry[]) {
  return {
    ingestQueuedLimit: new WatchedGauge({
      name: "engine_ingest_queued_bytes_limit",
      help: "Bytes of bodies from which on this node answers 429: `ENGINE_INGEST_MAX_INFLIGHT_BYTES`.",
      registers,
    }),
    flushDuration: new Histogram({
      name: "engine_ingest_flush_duration_seconds",
      help: "Time of one flush from its start until all its requests are answered: seal, upload and, in sync mode, commit.",
      buckets: LATENCY_SECONDS,
      registers,
    }),
    uploadDuration: new Histogram({
      name: "engine_ingest_upload_duration_seconds",
      help: "Time to write the extents of one flush, or its staged object, to the object store.",
      buckets: LATENCY_SECONDS,
      registers,
    }),
    extentBytesCommitted: new Counter({
      name: "engine_extents_committed_bytes_total",
      help: "Bytes of extents that ingest has committed.",
      registers,
    }),
    stagedWrittenObjects: new Counter({
      name: "engine_staged_written_objects_total",
      help: "Staged objects that this node has written and acknowledged.",
      registers,
    }),
    stagedWrittenBytes: new Counter({
      name: "engine_staged_written_bytes_total",
      help: "Bytes of the staged objects that this node has written and acknowledged.",
      registers,
    }),
  };
}

/** What the background does, beyond its outcomes. Gauges are of the node's last run: who has the lease, knows. */
export function backgroundMetrics(registers: Registry[]) {
  return {
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

/** Requests to a remote object store, beyond their outcomes. */
export function objectStoreEffortMetrics(registers: Registry[]) {
  return {
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

/** What stands for names that have no label of their own; no database can be called so. */
export const OTHER_NAMES = "_other";

/** Names of which only the first so many have a label of their own: who sends requests may make up any number. */
export class BoundedLabel {
  readonly #known = new Set<string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** The name, or `OTHER_NAMES`. */
  of(name: string): string {
    if (this.#known.has(name)) return name;
    if (this.#known.size >= this.#most) return OTHER_NAMES;
    this.#known.add(name);
    return name;
  }
}
