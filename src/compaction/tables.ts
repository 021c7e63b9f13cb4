import type { Migration } from "../db/migration.ts";

/**
 * `publish_requests`: tables of which somebody wants published what is not yet: see `publish-requests.ts`. `whole` is 1
 * where that includes files that are finished by their size.
 */
const PUBLISH_REQUESTS = `
CREATE TABLE publish_requests (
  table_id bigint NOT NULL,
  whole bigint NOT NULL,
  up_to bigint NOT NULL,
  until_ms bigint NOT NULL,
  PRIMARY KEY (table_id, whole)
);
`;

export const COMPACTION_MIGRATIONS: readonly Migration[] = [
  { name: "publish requests", sqlite: 31, postgres: 28, sql: PUBLISH_REQUESTS },
];
