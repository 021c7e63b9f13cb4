import type { Migration } from "../../db/migration.ts";

/**
 * Dashboards. `created_by`, `updated_by` and `saved_by` are what `ownerOf` gives, and give no right.
 *
 * - `dashboards`: what lists show. `version` is the current one, whose document is in `dashboard_versions`.
 * - `dashboard_versions`: `document` is JSON, a `DashboardDocument`; `databases` a JSON array of folded names. The
 *   document comes last, so that SQLite reads what is before it without its pages.
 * - `dashboard_databases`: the databases of the current version, by folded name, for lists of callers who may not use all.
 */
const DASHBOARDS = `
CREATE TABLE dashboards (
  id text PRIMARY KEY,
  name text NOT NULL,
  description text,
  panel_count bigint NOT NULL,
  version bigint NOT NULL,
  created_at_ms bigint NOT NULL,
  created_by text NOT NULL,
  updated_at_ms bigint NOT NULL,
  updated_by text NOT NULL
);
CREATE INDEX dashboards_by_name ON dashboards (name, id);

CREATE TABLE dashboard_versions (
  dashboard_id text NOT NULL,
  version bigint NOT NULL,
  databases text NOT NULL,
  saved_at_ms bigint NOT NULL,
  saved_by text NOT NULL,
  document text NOT NULL,
  PRIMARY KEY (dashboard_id, version)
);

CREATE TABLE dashboard_databases (
  dashboard_id text NOT NULL,
  folded_name text NOT NULL,
  PRIMARY KEY (dashboard_id, folded_name)
);
`;

export const DASHBOARD_MIGRATIONS: readonly Migration[] = [
  { name: "dashboards", sqlite: 33, postgres: 30, sql: DASHBOARDS },
];
