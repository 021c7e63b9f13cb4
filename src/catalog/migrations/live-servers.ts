import { FIRST_WITH_OLDEST, type Migration } from "../../db/migration.ts";

/**
 * Which programs may run on the catalog (`Migration.removes`), and the servers that do. `oldest_schema` begins with this
 * migration's own number: programs without it refuse a newer catalog in any case.
 */
const servers = (key: string): string => `(
  id ${key} PRIMARY KEY,
  name text NOT NULL,
  roles text NOT NULL,
  version text NOT NULL,
  known_schema bigint NOT NULL,
  started_at_ms bigint NOT NULL,
  seen_at_ms bigint NOT NULL,
  beats bigint NOT NULL
)`;

const { sqlite, postgres } = FIRST_WITH_OLDEST;

export const LIVE_SERVERS: Migration = {
  name: "live servers",
  sqlite,
  postgres,
  sql: {
    sqlite: `ALTER TABLE meta ADD COLUMN oldest_schema INTEGER NOT NULL DEFAULT ${sqlite};
CREATE TABLE servers ${servers("text")};`,
    postgres: `ALTER TABLE engine.meta ADD COLUMN oldest_schema integer NOT NULL DEFAULT ${postgres};
CREATE TABLE engine.servers ${servers('text COLLATE "C"')};`,
  },
};
