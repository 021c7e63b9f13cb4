import type { Migration } from "../../db/migration.ts";

/**
 * - `query_engines`: programs of others that run queries. `user_name` is who this program is there, unless the credential
 *   says it.
 * - `remote_queries`: what jobs have begun there and not ended, for whoever has the job next.
 */
const QUERY_ENGINES = `
CREATE TABLE query_engines (
  name text PRIMARY KEY,
  kind text NOT NULL,
  url text NOT NULL,
  default_catalog text NOT NULL,
  user_name text,
  credential_id text,
  created_by text NOT NULL,
  created_at_ms bigint NOT NULL
);

CREATE TABLE remote_queries (
  job_id text NOT NULL,
  query_id text NOT NULL,
  engine text NOT NULL,
  begun_at_ms bigint NOT NULL,
  PRIMARY KEY (job_id, query_id)
);
`;

export const QUERY_MIGRATIONS: readonly Migration[] = [
  { name: "query engines", sqlite: 32, postgres: 29, sql: QUERY_ENGINES },
];
