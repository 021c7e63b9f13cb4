import type { Migration } from "../db/migration.ts";
import { ownerByAuditSql, ownerSql } from "./owner-sql.ts";
import { SANDBOX_OWNERS } from "./sandbox-owners-migration.ts";

/**
 * Owners of records (`auth/owner.ts`), in the vocabulary that both databases share. Records that exist already belong to
 * whoever made them where that is known, otherwise to the admins.
 *
 * - `credentials.shared`: others may use it, too.
 * - `jobs.owner`: also the last part of `lane`, for workers claim the jobs of their owner.
 * - `schedules`: a name is taken among those of one owner. Neither database can drop a constraint as the other does, so
 *   the table is made anew.
 * - `workers.admitted`: kinds of which the worker may have everybody's jobs, a JSON array; NULL for all of its
 *   capabilities. Workers of users who are admins keep taking everybody's jobs; the others must be admitted.
 */
const ENGINE_OWNERS = `
CREATE INDEX audit_log_by_target ON audit_log (target, action);

ALTER TABLE credentials ADD COLUMN owner text NOT NULL DEFAULT 'admins:';
ALTER TABLE credentials ADD COLUMN shared bigint NOT NULL DEFAULT 0;
UPDATE credentials SET owner = ${ownerByAuditSql({ action: "credential.create", target: "credentials.id", subject: "credentials.created_by" })};
CREATE INDEX credentials_by_owner ON credentials (owner, id);
CREATE INDEX credentials_shared ON credentials (id) WHERE shared = 1;

ALTER TABLE oauth_flows ADD COLUMN owner text NOT NULL DEFAULT 'admins:';
UPDATE oauth_flows SET owner = ${ownerSql("started_by", "started_kind")};

ALTER TABLE oauth_device_flows ADD COLUMN owner text NOT NULL DEFAULT 'admins:';
UPDATE oauth_device_flows SET owner = ${ownerSql("started_by", "started_kind")};

ALTER TABLE workers ADD COLUMN owner text NOT NULL DEFAULT 'admins:';
ALTER TABLE workers ADD COLUMN admitted text DEFAULT '[]';
UPDATE workers SET owner = ${ownerByAuditSql({ action: "worker.create", target: "workers.id", subject: "workers.created_by" })};
UPDATE workers SET admitted = NULL WHERE owner = 'local' OR EXISTS (SELECT 1 FROM users WHERE users.name = workers.owner AND users.role = 'admin');
CREATE INDEX workers_by_owner ON workers (owner);

ALTER TABLE jobs ADD COLUMN owner text NOT NULL DEFAULT 'admins:';
UPDATE jobs SET owner = ${ownerSql("subject", "caller_kind")};
UPDATE jobs SET owner = coalesce((SELECT workers.owner FROM workers WHERE workers.id = jobs.worker_id), 'admins:')
  WHERE caller_kind = 'worker';
UPDATE jobs SET lane = substr(lane, 1, length(lane) - 1) || ',"' ||
  replace(replace(owner, '\\', '\\\\'), '"', '\\"') || '"]';
CREATE INDEX jobs_by_owner ON jobs (owner, status, kind, id);
DROP INDEX jobs_once;
CREATE UNIQUE INDEX jobs_once ON jobs (owner, kind, coalesce(database_name, ''), dedup_key)
  WHERE dedup_key IS NOT NULL AND status IN ('queued', 'leased');

CREATE TABLE owned_schedules (
  id text PRIMARY KEY,
  name text NOT NULL,
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
  updated_at_ms bigint NOT NULL,
  owner text NOT NULL DEFAULT 'admins:'
);
INSERT INTO owned_schedules SELECT id, name, kind, payload, database_name, timing, catch_up, jitter_ms, enabled,
  next_at_ms, last_at_ms, last_job_id, subject, caller_kind, role, databases, created_at_ms, updated_at_ms,
  ${ownerSql("subject", "caller_kind")} FROM schedules;
DROP TABLE schedules;
ALTER TABLE owned_schedules RENAME TO schedules;
CREATE UNIQUE INDEX schedules_by_owner ON schedules (owner, name);
CREATE INDEX schedules_by_name ON schedules (name, id);
CREATE INDEX schedules_due ON schedules (next_at_ms) WHERE enabled = 1;
`;

const DONE = `
DROP INDEX audit_log_by_target;
`;

/**
 * One migration for the tables of every feature that had some, because all owners come in one transaction and all are
 * found by one rule, which is this folder's.
 */
export const OWNERS_MIGRATION: Migration = {
  name: "owners",
  sqlite: 11,
  postgres: 7,
  sql: ENGINE_OWNERS + SANDBOX_OWNERS + DONE,
};
