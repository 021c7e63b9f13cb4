import type { Migration } from "../db/migration.ts";
import { OWNERS_MIGRATION } from "./owners-migration.ts";

/**
 * The tables of who may do what, and of secrets, in the vocabulary that both databases share. Times are ms since 1970,
 * flags 0 or 1, `databases` a JSON array of folded names or NULL for all of them, `details` and `metadata` JSON objects.
 *
 * Who may do what:
 * - `users`: those who sign in with a password, and those whom an identity provider vouched for (`source`, `subject`),
 *   with the role of its newest token, which it issued at `vouched_at_ms`.
 * - `sessions`: one for each sign-in; deleting it ends all its tokens. A refresh token that was used stays, so that its
 *   second use is noticed.
 * - Of tokens only a hash is kept.
 * - `audit_log`: only ever added to.
 *
 * Secrets (`src/credentials/`), in the same migration since it was published with them: each is sealed with a key of its
 * own, which is sealed with the operator's key `key_id`.
 */
const ACCESS_RECORDS = `
CREATE TABLE users (
  id text PRIMARY KEY,
  name text NOT NULL,
  folded_name text NOT NULL UNIQUE,
  role text NOT NULL,
  source text NOT NULL,
  subject text,
  vouched_at_ms bigint,
  password_hash text,
  created_at_ms bigint NOT NULL,
  updated_at_ms bigint NOT NULL,
  UNIQUE (source, subject)
);

CREATE TABLE sessions (
  id text PRIMARY KEY,
  user_id text NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  address text NOT NULL,
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at_ms);

CREATE TABLE refresh_tokens (
  hash text PRIMARY KEY,
  session_id text NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  expires_at_ms bigint NOT NULL,
  used_at_ms bigint
);
CREATE INDEX refresh_tokens_by_session ON refresh_tokens (session_id);

CREATE TABLE access_tokens (
  hash text PRIMARY KEY,
  session_id text NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX access_tokens_by_session ON access_tokens (session_id);
CREATE INDEX access_tokens_by_expiry ON access_tokens (expires_at_ms);

CREATE TABLE api_tokens (
  id text PRIMARY KEY,
  hash text NOT NULL UNIQUE,
  name text NOT NULL,
  preview text NOT NULL,
  owner text NOT NULL,
  user_id text REFERENCES users (id) ON DELETE CASCADE,
  role text NOT NULL,
  databases text,
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint,
  last_used_at_ms bigint
);
CREATE INDEX api_tokens_by_user ON api_tokens (user_id);
CREATE INDEX api_tokens_by_owner ON api_tokens (owner);

CREATE TABLE audit_log (
  id text PRIMARY KEY,
  at_ms bigint NOT NULL,
  actor text NOT NULL,
  actor_kind text NOT NULL,
  action text NOT NULL,
  target text NOT NULL,
  outcome text NOT NULL,
  address text NOT NULL,
  request_id text NOT NULL,
  details text NOT NULL
);
CREATE INDEX audit_log_by_time ON audit_log (at_ms);

CREATE TABLE credentials (
  id text PRIMARY KEY,
  label text NOT NULL,
  kind text NOT NULL,
  preview text NOT NULL,
  metadata text NOT NULL,
  databases text,
  status text NOT NULL,
  status_detail text,
  version bigint NOT NULL,
  key_id text NOT NULL,
  sealed_key text NOT NULL,
  sealed_value text NOT NULL,
  created_by text NOT NULL,
  created_at_ms bigint NOT NULL,
  updated_at_ms bigint NOT NULL,
  expires_at_ms bigint
);
CREATE INDEX credentials_by_key ON credentials (key_id);

CREATE TABLE oauth_flows (
  state_hash text PRIMARY KEY,
  browser_hash text NOT NULL,
  provider text NOT NULL,
  source_type text NOT NULL,
  label text NOT NULL,
  started_by text NOT NULL,
  started_kind text NOT NULL,
  databases text,
  status text NOT NULL,
  detail text,
  credential_id text,
  key_id text NOT NULL,
  sealed_key text NOT NULL,
  sealed_value text NOT NULL,
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX oauth_flows_by_expiry ON oauth_flows (expires_at_ms);
`;

/**
 * `web_sessions`: one for each sign-in of a browser (`web/web-sessions.ts`); `hash` is that of its cookie, `principal` says
 * whose it is, `voucher` and `detail` who vouches (`web/voucher.ts`): the version of a password, the hash of a static token,
 * or JSON of what an issuer said. Of the last, `asked_at_ms` is when the issuer was last asked, and `asking_until_ms` how
 * long nobody else asks; the sealed value is its refresh token.
 */
const WEB_SESSIONS = `
CREATE TABLE web_sessions (
  id text PRIMARY KEY,
  hash text NOT NULL UNIQUE,
  principal text NOT NULL,
  subject text NOT NULL,
  caller_kind text NOT NULL,
  voucher text NOT NULL,
  user_id text REFERENCES users (id) ON DELETE CASCADE,
  token_id text REFERENCES api_tokens (id) ON DELETE CASCADE,
  detail text NOT NULL,
  address text NOT NULL,
  user_agent text NOT NULL,
  created_at_ms bigint NOT NULL,
  last_used_at_ms bigint NOT NULL,
  ends_at_ms bigint,
  asked_at_ms bigint,
  asking_until_ms bigint,
  key_id text,
  sealed_key text,
  sealed_value text
);
CREATE INDEX web_sessions_by_principal ON web_sessions (principal, last_used_at_ms);
CREATE INDEX web_sessions_by_user ON web_sessions (user_id);
CREATE INDEX web_sessions_by_token ON web_sessions (token_id);
CREATE INDEX web_sessions_by_use ON web_sessions (last_used_at_ms);
`;

/** The tables of users, sessions, tokens, the audit log and credentials; and the owners of everybody's records. */
export const AUTH_MIGRATIONS: readonly Migration[] = [
  { name: "access", sqlite: 7, postgres: 3, sql: ACCESS_RECORDS },
  OWNERS_MIGRATION,
  { name: "web sessions", sqlite: 34, postgres: 31, sql: WEB_SESSIONS },
];
