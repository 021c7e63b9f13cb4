/**
 * The records of sandboxes (`sandbox/`), in the vocabulary that both databases share; a migration, which never changes
 * once published.
 *
 * - `sandboxes`: one for each, until it is deleted and its node has put everything away. `state` is what it is, `wanted`
 *   what it is to become (`sandbox/contract/states.ts`); `version` grows with every change of either. `job_id` is the job that a
 *   node holds for as long as it has the sandbox: what the node writes carries the job's fence. `recorded_fence` and
 *   `recorded_batch` name the newest report that was taken, so that one that is sent again is not taken twice.
 * - `sandbox_events`: numbered from 1 for each sandbox, without gaps up to `last_seq`; those below `first_seq` were
 *   cut. They outlive their sandbox until retention takes them.
 * - `sandbox_nodes`: machines that run sandboxes; `id` is the holder of their jobs.
 * - `sandbox_gateways`: processes that answer the routes of sandboxes, by the address where nodes reach them.
 * - `sandbox_volumes`: named storage of a tenant; it lies on one node.
 *
 * `spec`, `labels`, `capacity`, `images`, `stats` and `data` are JSON.
 */
export const SANDBOX_RECORDS = `
CREATE TABLE sandboxes (
  id text PRIMARY KEY,
  tenant text NOT NULL,
  name text,
  agent_provider text NOT NULL,
  persistence text NOT NULL,
  spec text NOT NULL,
  labels text NOT NULL,
  subject text NOT NULL,
  caller_kind text NOT NULL,
  role text NOT NULL,
  databases text,
  state text NOT NULL,
  wanted text NOT NULL,
  version bigint NOT NULL,
  reason text,
  node_id text,
  job_id text,
  cpu_millis bigint NOT NULL,
  memory_mb bigint NOT NULL,
  disk_mb bigint NOT NULL,
  stats text,
  recorded_fence bigint NOT NULL,
  recorded_batch bigint NOT NULL,
  first_seq bigint NOT NULL,
  last_seq bigint NOT NULL,
  created_at_ms bigint NOT NULL,
  updated_at_ms bigint NOT NULL,
  state_since_ms bigint NOT NULL,
  expires_at_ms bigint,
  deleted_at_ms bigint
);
CREATE INDEX sandboxes_by_tenant ON sandboxes (tenant, id);
CREATE INDEX sandboxes_by_node ON sandboxes (node_id) WHERE node_id IS NOT NULL;
CREATE INDEX sandboxes_by_job ON sandboxes (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX sandboxes_waiting ON sandboxes (created_at_ms) WHERE node_id IS NULL AND state = 'pending';
CREATE UNIQUE INDEX sandboxes_by_name ON sandboxes (tenant, name) WHERE name IS NOT NULL AND deleted_at_ms IS NULL;

CREATE TABLE sandbox_events (
  sandbox_id text NOT NULL,
  seq bigint NOT NULL,
  tenant text NOT NULL,
  at_ms bigint NOT NULL,
  event_type text NOT NULL,
  session_id text,
  data text NOT NULL,
  PRIMARY KEY (sandbox_id, seq)
);
CREATE INDEX sandbox_events_by_time ON sandbox_events (at_ms);
CREATE INDEX sandbox_events_by_tenant ON sandbox_events (tenant, at_ms);

CREATE TABLE sandbox_nodes (
  id text PRIMARY KEY,
  name text NOT NULL,
  runtime text NOT NULL,
  labels text NOT NULL,
  images text NOT NULL,
  capacity text NOT NULL,
  drain bigint NOT NULL,
  boot_id text NOT NULL,
  seen_at_ms bigint NOT NULL
);

CREATE TABLE sandbox_gateways (
  id text PRIMARY KEY,
  url text NOT NULL,
  seen_at_ms bigint NOT NULL
);

CREATE TABLE sandbox_volumes (
  tenant text NOT NULL,
  name text NOT NULL,
  node_id text NOT NULL,
  size_mb bigint NOT NULL,
  created_at_ms bigint NOT NULL,
  PRIMARY KEY (tenant, name)
);
`;
