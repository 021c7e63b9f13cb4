import type { Migration } from "../../db/migration.ts";

/**
 * The records of the agent. An `owner` is what `ownerOf` gives.
 *
 * - `agent_settings`: `engine` and `skills`, each one JSON value of the installation.
 * - `agent_sessions`: conversations. `running_run` is the run that has the session now; `summarized_turns` says how many
 *   turns `rolling_summary` tells of.
 * - `agent_turns`: what was asked and answered in them, from `turn_index` 0 on.
 * - `agent_runs`: one row per question. While it is `running` its `holder` extends `lease_until_ms`; whoever finds that
 *   past ends it. `session_id` is null where the session was deleted. `usage` and `queries` are JSON.
 * - `agent_run_events`: what its client was sent, in the order of `seq`; `data` is JSON.
 */
const AGENT = `
CREATE TABLE agent_settings (
  key text PRIMARY KEY,
  value text NOT NULL,
  updated_by text NOT NULL,
  updated_at_ms bigint NOT NULL
);

CREATE TABLE agent_sessions (
  id text PRIMARY KEY,
  owner text NOT NULL,
  database text NOT NULL,
  title text NOT NULL,
  source text,
  rolling_summary text,
  summarized_turns bigint NOT NULL,
  turn_count bigint NOT NULL,
  running_run text,
  created_at_ms bigint NOT NULL,
  last_active_ms bigint NOT NULL
);
CREATE INDEX agent_sessions_by_owner ON agent_sessions (owner, last_active_ms);
CREATE INDEX agent_sessions_by_activity ON agent_sessions (last_active_ms);

CREATE TABLE agent_turns (
  session_id text NOT NULL,
  turn_index bigint NOT NULL,
  role text NOT NULL,
  content text NOT NULL,
  run_id text,
  created_at_ms bigint NOT NULL,
  PRIMARY KEY (session_id, turn_index)
);

CREATE TABLE agent_runs (
  id text PRIMARY KEY,
  session_id text,
  owner text NOT NULL,
  database text NOT NULL,
  question text NOT NULL,
  engine_kind text NOT NULL,
  model text NOT NULL,
  status text NOT NULL,
  error_code text,
  error_message text,
  answer text,
  prompt_hash text,
  tool_calls bigint NOT NULL,
  usage text NOT NULL,
  queries text NOT NULL,
  holder text NOT NULL,
  lease_until_ms bigint NOT NULL,
  started_at_ms bigint NOT NULL,
  finished_at_ms bigint
);
CREATE INDEX agent_runs_by_session ON agent_runs (session_id);
CREATE INDEX agent_runs_by_status ON agent_runs (status, lease_until_ms);

CREATE TABLE agent_run_events (
  run_id text NOT NULL,
  seq bigint NOT NULL,
  event text NOT NULL,
  data text NOT NULL,
  at_ms bigint NOT NULL,
  PRIMARY KEY (run_id, seq)
);
`;

export const AGENT_MIGRATIONS: readonly Migration[] = [{ name: "agent", sqlite: 22, postgres: 19, sql: AGENT }];
