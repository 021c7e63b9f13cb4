import type { Migration } from "../db/migration.ts";

/**
 * What people keep of their own. An `owner` is what `ownerOf` gives.
 *
 * - `saved_queries`: texts with a name. `shared` ones are everybody's to read who may use their database.
 * - `query_history`: what a person ran, by the word of the page where they did.
 * - `user_settings`: one JSON object of an owner's (`kept_for`), in which pages keep how they like it. It is not handed over
 *   with what the owner has.
 */
const WORKBENCH = `
CREATE TABLE saved_queries (
  id text PRIMARY KEY,
  owner text NOT NULL,
  shared bigint NOT NULL,
  name text NOT NULL,
  description text NOT NULL,
  language text NOT NULL,
  query_text text NOT NULL,
  query_database text NOT NULL,
  created_at_ms bigint NOT NULL,
  updated_at_ms bigint NOT NULL
);
CREATE INDEX saved_queries_by_owner ON saved_queries (owner, id);

CREATE TABLE query_history (
  owner text NOT NULL,
  id text NOT NULL,
  ran_at_ms bigint NOT NULL,
  language text NOT NULL,
  query_text text NOT NULL,
  query_database text NOT NULL,
  outcome text NOT NULL,
  row_count bigint,
  elapsed_ms bigint,
  PRIMARY KEY (owner, id)
);

CREATE TABLE user_settings (
  kept_for text PRIMARY KEY,
  value text NOT NULL,
  updated_at_ms bigint NOT NULL
);
`;

export const WORKBENCH_MIGRATIONS: readonly Migration[] = [
  { name: "workbench", sqlite: 36, postgres: 33, sql: WORKBENCH },
];
