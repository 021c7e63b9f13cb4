import type { Migration } from "../../db/migration.ts";

/**
 * The ledger of pipelines that write memories. `database_id` is the catalog's.
 *
 * - `dreaming_runs`: one row per run of any kind. `job_id` names the job that carries it out; while it is neither done nor
 *   given up, that job says whether it waits or runs. A run without a job belongs to a duty that one process has at a
 *   time. `stats` and `progress` are JSON.
 * - `dreaming_watermarks`: how far each pipeline has read; `position` is JSON, in whatever form suits the pipeline.
 * - `dreaming_changes`: the records that a run wrote, one row per record, with the versions before (null where there was
 *   none) and after. Rows with the same `proposal` are taken back together, or not at all; `reverted` is 1 for those.
 */
const DREAMING = `
CREATE TABLE dreaming_runs (
  id text PRIMARY KEY,
  database_id bigint NOT NULL,
  kind text NOT NULL,
  status text NOT NULL,
  mode text,
  focus text,
  started_by text NOT NULL,
  requested_by text,
  engine text,
  model text,
  created_at_ms bigint NOT NULL,
  started_at_ms bigint,
  finished_at_ms bigint,
  events_scanned bigint NOT NULL,
  memories_written bigint NOT NULL,
  error_code text,
  error_message text,
  job_id text,
  session_id text,
  agent_run_id text,
  worker_id text,
  stats text NOT NULL,
  progress text,
  reverted_at_ms bigint
);
CREATE INDEX dreaming_runs_by_database ON dreaming_runs (database_id, id);
CREATE INDEX dreaming_runs_by_kind ON dreaming_runs (database_id, kind, id);
CREATE INDEX dreaming_runs_unfinished ON dreaming_runs (database_id, kind) WHERE status IN ('queued', 'running');

CREATE TABLE dreaming_watermarks (
  database_id bigint NOT NULL,
  kind text NOT NULL,
  position text NOT NULL,
  updated_at_ms bigint NOT NULL,
  PRIMARY KEY (database_id, kind)
);

CREATE TABLE dreaming_changes (
  run_id text NOT NULL,
  record_kind text NOT NULL,
  record_id text NOT NULL,
  proposal bigint NOT NULL,
  version_before bigint,
  version_after bigint NOT NULL,
  reverted bigint NOT NULL,
  PRIMARY KEY (run_id, record_kind, record_id)
);
`;

/** `dreaming_remote`: dreams whose model a worker asks, a row for each job that one holds under a fence; `state` is JSON. */
const DREAMING_REMOTE = `
CREATE TABLE dreaming_remote (
  job_id text PRIMARY KEY,
  fence bigint NOT NULL,
  version bigint NOT NULL,
  started_at_ms bigint NOT NULL,
  state text NOT NULL
);
`;

export const DREAMING_MIGRATIONS: readonly Migration[] = [
  { name: "dreaming", sqlite: 23, postgres: 20, sql: DREAMING },
  { name: "dreaming on workers", sqlite: 26, postgres: 23, sql: DREAMING_REMOTE },
];
