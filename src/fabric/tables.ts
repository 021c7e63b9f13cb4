import type { Migration } from "../db/migration.ts";

/**
 * The records of the job fabric, in the vocabulary that both databases share.
 *
 * - `workers`: nodes that hold a token of their own. One that is revoked stays, for jobs name it.
 * - `jobs`: see `fabric/job.ts`. `lane` says whose turn it is and who may claim it (`fabric/lanes.ts`); the index by it
 *   holds only what waits, in the order in which it is due, so a claim costs the same whatever else there is.
 * - Of unfinished jobs of one kind and database, each `dedup_key` has one.
 * - `job_logs`: what handlers said while they ran, numbered from 1 for each job.
 * - `schedules`: what enqueues a job again and again (`fabric/schedules.ts`).
 *
 * `payload`, `progress`, `result`, `labels`, `selector` and `timing` are JSON; `capabilities`, `credentials` and
 * `databases` are JSON arrays, NULL for all of them (no credentials).
 */
const JOB_RECORDS = `
CREATE TABLE workers (
  id text PRIMARY KEY,
  name text NOT NULL,
  token_hash text NOT NULL UNIQUE,
  preview text NOT NULL,
  capabilities text,
  labels text NOT NULL,
  host text,
  drain bigint NOT NULL,
  created_by text NOT NULL,
  created_at_ms bigint NOT NULL,
  registered_at_ms bigint,
  seen_at_ms bigint,
  revoked_at_ms bigint
);

CREATE TABLE jobs (
  id text PRIMARY KEY,
  kind text NOT NULL,
  status text NOT NULL,
  lane text NOT NULL,
  priority bigint NOT NULL,
  run_after_ms bigint NOT NULL,
  database_name text,
  dedup_key text,
  worker_id text,
  selector text,
  payload text NOT NULL,
  credentials text,
  subject text NOT NULL,
  caller_kind text NOT NULL,
  role text NOT NULL,
  databases text,
  trace_context text,
  attempt bigint NOT NULL,
  max_attempts bigint NOT NULL,
  backoff_ms bigint NOT NULL,
  lease_ms bigint NOT NULL,
  fence bigint NOT NULL,
  holder text,
  lease_expires_at_ms bigint,
  cancel_requested bigint NOT NULL,
  progress text,
  result text,
  error text,
  created_at_ms bigint NOT NULL,
  started_at_ms bigint,
  finished_at_ms bigint,
  updated_at_ms bigint NOT NULL
);
CREATE INDEX jobs_queued ON jobs (lane, run_after_ms, id) WHERE status = 'queued';
CREATE INDEX jobs_leased ON jobs (lease_expires_at_ms) WHERE status = 'leased';
CREATE INDEX jobs_held ON jobs (holder) WHERE status = 'leased';
CREATE INDEX jobs_pinned ON jobs (worker_id) WHERE status = 'queued' AND worker_id IS NOT NULL;
CREATE INDEX jobs_by_status ON jobs (status, kind, id);
CREATE UNIQUE INDEX jobs_once ON jobs (kind, coalesce(database_name, ''), dedup_key)
  WHERE dedup_key IS NOT NULL AND status IN ('queued', 'leased');

CREATE TABLE job_logs (
  job_id text NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  seq bigint NOT NULL,
  at_ms bigint NOT NULL,
  level text NOT NULL,
  message text NOT NULL,
  PRIMARY KEY (job_id, seq)
);

CREATE TABLE schedules (
  id text PRIMARY KEY,
  name text NOT NULL UNIQUE,
  kind text NOT NULL,
  payload text NOT NULL,
  database_name text,
  timing text NOT NULL,
  catch_up text NOT NULL,
  jitter_ms bigint NOT NULL,
  enabled bigint NOT NULL,
  next_at_ms bigint,
  last_at_ms bigint,
  last_job_id text,
  subject text NOT NULL,
  caller_kind text NOT NULL,
  role text NOT NULL,
  databases text,
  created_at_ms bigint NOT NULL,
  updated_at_ms bigint NOT NULL
);
CREATE INDEX schedules_due ON schedules (next_at_ms) WHERE enabled = 1;
`;

/** Rows of jobs are changed several times within seconds; dead ones slow claims until they are swept. */
const JOB_TUNING = `
ALTER TABLE jobs SET (
  autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0
);
`;

/** The tables of workers, jobs and schedules. */
export const FABRIC_MIGRATIONS: readonly Migration[] = [
  { name: "jobs", sqlite: 8, postgres: 4, sql: { sqlite: JOB_RECORDS, postgres: JOB_RECORDS + JOB_TUNING } },
];
