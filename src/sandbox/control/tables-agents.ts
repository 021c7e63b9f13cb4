import type { Migration } from "../../db/migration.ts";

/**
 * The records of agents in sandboxes, of workspaces and of images, in the vocabulary that both databases share.
 *
 * - `sandbox_sessions`: conversations with the agent of a sandbox. `turn_id` is the turn that is under way, whose user
 *   message is the last of the session, and whose events come after `turn_event_seq`; `is_interrupted` says that it is to
 *   end. `agent_session_id` is the agent's own name for the session.
 * - `sandbox_messages`: what was said, numbered from 1 in each session. `error`: why the turn that it ends failed.
 * - `workspaces`: definitions of environments; `sandboxes.workspace_id` says which one a sandbox was launched from.
 * - `image_builds`, `machine_images`: how images came to be, and those that there are. `deleted_at_ms`: no new sandbox
 *   may have it. `sandboxes.image_id` is the built image of a sandbox.
 *
 * - `oauth_device_flows`, which belongs to credentials and was published with these: accounts that are connected without
 *   a browser. `code_hash` is the hash of the code that the caller asks with; the provider's own code is sealed, and
 *   deleted when the flow ends. Until `next_poll_at_ms` nobody asks the provider.
 *
 * `metadata`, `content`, `spec`, `labels`, `request` and `manifest` are JSON.
 */
const AGENT_RECORDS = `
CREATE TABLE sandbox_sessions (
  id text PRIMARY KEY,
  sandbox_id text NOT NULL,
  tenant text NOT NULL,
  state text NOT NULL,
  metadata text NOT NULL,
  turn_id text,
  turn_event_seq bigint NOT NULL,
  is_interrupted bigint NOT NULL,
  agent_session_id text,
  error text,
  last_message bigint NOT NULL,
  created_at_ms bigint NOT NULL,
  updated_at_ms bigint NOT NULL
);
CREATE INDEX sandbox_sessions_by_sandbox ON sandbox_sessions (sandbox_id, created_at_ms);
CREATE INDEX sandbox_sessions_busy ON sandbox_sessions (sandbox_id) WHERE turn_id IS NOT NULL;

CREATE TABLE sandbox_messages (
  session_id text NOT NULL,
  seq bigint NOT NULL,
  id text NOT NULL,
  turn_id text NOT NULL,
  role text NOT NULL,
  content text NOT NULL,
  error text,
  created_at_ms bigint NOT NULL,
  PRIMARY KEY (session_id, seq)
);

CREATE TABLE workspaces (
  id text PRIMARY KEY,
  tenant text NOT NULL,
  name text NOT NULL,
  description text,
  spec text NOT NULL,
  labels text NOT NULL,
  version bigint NOT NULL,
  created_at_ms bigint NOT NULL,
  updated_at_ms bigint NOT NULL
);
CREATE INDEX workspaces_by_tenant ON workspaces (tenant, name, id);

CREATE TABLE image_builds (
  id text PRIMARY KEY,
  tenant text NOT NULL,
  status text NOT NULL,
  provider text NOT NULL,
  region text NOT NULL,
  instance_type text NOT NULL,
  request text NOT NULL,
  job_id text,
  image_id text,
  error text,
  created_at_ms bigint NOT NULL,
  started_at_ms bigint,
  completed_at_ms bigint
);
CREATE INDEX image_builds_by_tenant ON image_builds (tenant, created_at_ms);

CREATE TABLE machine_images (
  id text PRIMARY KEY,
  tenant text NOT NULL,
  provider text NOT NULL,
  region text NOT NULL,
  status text NOT NULL,
  build_id text NOT NULL,
  content_hash text NOT NULL,
  size_bytes bigint NOT NULL,
  manifest text NOT NULL,
  created_at_ms bigint NOT NULL,
  deleted_at_ms bigint
);
CREATE INDEX machine_images_by_tenant ON machine_images (tenant, created_at_ms);

CREATE TABLE oauth_device_flows (
  code_hash text PRIMARY KEY,
  provider text NOT NULL,
  label text NOT NULL,
  started_by text NOT NULL,
  started_kind text NOT NULL,
  databases text,
  status text NOT NULL,
  detail text,
  credential_id text,
  interval_ms bigint NOT NULL,
  next_poll_at_ms bigint NOT NULL,
  key_id text NOT NULL,
  sealed_key text NOT NULL,
  sealed_value text NOT NULL,
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX oauth_device_flows_by_expiry ON oauth_device_flows (expires_at_ms);

ALTER TABLE sandboxes ADD COLUMN workspace_id text;
ALTER TABLE sandboxes ADD COLUMN image_id text;
CREATE INDEX sandboxes_by_image ON sandboxes (image_id) WHERE image_id IS NOT NULL;
CREATE INDEX sandboxes_by_workspace ON sandboxes (workspace_id) WHERE workspace_id IS NOT NULL;
`;

export const AGENTS_MIGRATION: Migration = { name: "agents", sqlite: 10, postgres: 6, sql: AGENT_RECORDS };
