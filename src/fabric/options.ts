import * as kinds from "../config/kinds.ts";
import { derived, option, optional } from "../config/option.ts";

/** Most jobs that one server runs at once; past this the machine, not the number, is the limit. */
const MAX_WORKERS = 256;

/** The options of jobs, and of the nodes that run them. */
export const FABRIC_OPTIONS = {
  dataSourceWorkers: option({
    env: "ENGINE_DATA_SOURCE_WORKERS",
    toml: "fabric.data_source_workers",
    kind: kinds.integer({ min: 1, max: MAX_WORKERS }),
    default: 4,
    side: "S",
    doc: "Jobs that a server with the role `worker` runs at once when ENGINE_FABRIC_WORKERS is not set.",
  }),
  fabricWorkers: derived({
    env: "ENGINE_FABRIC_WORKERS",
    toml: "fabric.workers",
    kind: kinds.integer({ min: 1, max: MAX_WORKERS }),
    defaultOf: ({ values }) => values["dataSourceWorkers"] as number,
    defaultShown: "$ENGINE_DATA_SOURCE_WORKERS",
    derivedFrom: "dataSourceWorkers",
    side: "S",
    doc: "Jobs that a server with the role `worker` runs at once.",
  }),
  fabricLeaseSecs: option({
    env: "ENGINE_FABRIC_LEASE_SECS",
    toml: "fabric.lease_secs",
    kind: kinds.integer({ min: 10, max: 3_600 }),
    default: 300,
    side: "S",
    doc:
      "Seconds that whoever runs a job may be silent before the job is given to another, where the kind of job does not " +
      "say. Long jobs renew their lease meanwhile.",
  }),
  fabricSweepSecs: option({
    env: "ENGINE_FABRIC_SWEEP_SECS",
    toml: "fabric.sweep_secs",
    kind: kinds.integer({ min: 1, max: 3_600 }),
    default: 30,
    side: "S",
    doc: "Seconds between two searches for jobs whose lease has ended.",
  }),
  fabricOfflineSecs: option({
    env: "ENGINE_FABRIC_OFFLINE_SECS",
    toml: "fabric.offline_secs",
    kind: kinds.integer({ min: 1, max: 86_400 }),
    default: 90,
    side: "S",
    doc: "Seconds without a heartbeat after which a node is shown as offline.",
  }),
  fabricRetentionSecs: option({
    env: "ENGINE_FABRIC_RETENTION_SECS",
    toml: "fabric.retention_secs",
    kind: kinds.integer({ min: 3_600, max: 315_360_000 }),
    default: 604_800,
    side: "S",
    doc:
      "Seconds after which a finished job, its result and its log expire; ENGINE_ARTIFACT_GC_GRACE_SECS says when they go. " +
      "Longer than a statement can be under way, for one that comes late must find the job that it would store again.",
  }),
  workerToken: optional({
    env: "ENGINE_WORKER_TOKEN",
    toml: "client.worker_token",
    flag: "--token",
    kind: kinds.bearerToken,
    whenUnset: "`engine worker run` does not start",
    side: "C",
    secret: true,
    doc: "Token of this node for `engine worker run`, from `engine worker create`.",
  }),
  workerInsecure: option({
    env: "ENGINE_WORKER_INSECURE",
    toml: "client.worker_insecure",
    kind: kinds.bool,
    default: false,
    side: "C",
    doc:
      "Lets `engine worker run` talk to a server without TLS. Its token, and the credentials of its jobs, can then be " +
      "read on the way.",
  }),
} as const;
