import type { Migration } from "../../db/migration.ts";
import { SQLITE_DELETION } from "./deletion-records.ts";
import { POSTGRES_INFERRED_TYPES, SQLITE_INFERRED_TYPES } from "./inferred-types.ts";
import { POSTGRES_INPUT_POSITIONS, SQLITE_INPUT_POSITIONS } from "./input-positions.ts";
import { LIVE_SERVERS } from "./live-servers.ts";
import { POSTGRES_NANOSECOND_COLUMNS, SQLITE_NANOSECOND_COLUMNS } from "./nanosecond-columns.ts";
import { POSTGRES_OPEN_LAG, SQLITE_OPEN_LAG } from "./open-lag.ts";
import { CLUSTER_COLUMNS as POSTGRES_CLUSTER_COLUMNS } from "./postgres-cluster-columns.ts";
import { POSTGRES_DELETION } from "./postgres-deletion.ts";
import { FUNCTIONS_1 } from "./postgres-functions-1.ts";
import { FUNCTIONS_2 } from "./postgres-functions-2.ts";
import { SCHEMA_1 } from "./postgres-schema.ts";
import { VECTOR_COLUMNS } from "./postgres-vector-columns.ts";
import { POSTGRES_PUBLISHABLE_FILES, SQLITE_PUBLISHABLE_FILES } from "./publishable-files.ts";
import { POSTGRES_UNPUBLISHED_EXTENTS, SQLITE_UNPUBLISHED_EXTENTS } from "./unpublished-extents.ts";
import {
  BACKGROUND_DUTIES,
  CATALOG,
  CLUSTER_COLUMNS,
  COLUMN_SNAPSHOTS,
  FILTERS,
  TIME_TRAVEL,
} from "./sqlite-schema.ts";

/** The tables of the catalog itself. PostgreSQL came when SQLite had six migrations, and began with all but the last. */
export const CATALOG_MIGRATIONS: readonly Migration[] = [
  { name: "catalog", sqlite: 1, postgres: 1, sql: { sqlite: CATALOG, postgres: SCHEMA_1 + FUNCTIONS_1 + FUNCTIONS_2 } },
  { name: "time travel", sqlite: 2, sql: { sqlite: TIME_TRAVEL } },
  { name: "filters", sqlite: 3, sql: { sqlite: FILTERS } },
  { name: "column snapshots", sqlite: 4, sql: { sqlite: COLUMN_SNAPSHOTS } },
  { name: "background duties", sqlite: 5, sql: { sqlite: BACKGROUND_DUTIES } },
  {
    name: "cluster columns",
    sqlite: 6,
    postgres: 2,
    sql: { sqlite: CLUSTER_COLUMNS, postgres: POSTGRES_CLUSTER_COLUMNS },
  },
  { name: "vector columns", postgres: 9, sql: { postgres: VECTOR_COLUMNS } },
  { name: "deletion", sqlite: 14, postgres: 11, sql: { sqlite: SQLITE_DELETION, postgres: POSTGRES_DELETION } },
  {
    name: "inferred types",
    sqlite: 15,
    postgres: 12,
    sql: { sqlite: SQLITE_INFERRED_TYPES, postgres: POSTGRES_INFERRED_TYPES },
  },
  {
    name: "input positions",
    sqlite: 16,
    postgres: 13,
    sql: { sqlite: SQLITE_INPUT_POSITIONS, postgres: POSTGRES_INPUT_POSITIONS },
  },
  LIVE_SERVERS,
  {
    name: "nanosecond columns",
    sqlite: 27,
    postgres: 24,
    sql: { sqlite: SQLITE_NANOSECOND_COLUMNS, postgres: POSTGRES_NANOSECOND_COLUMNS },
  },
  {
    name: "publishable files",
    sqlite: 28,
    postgres: 25,
    sql: { sqlite: SQLITE_PUBLISHABLE_FILES, postgres: POSTGRES_PUBLISHABLE_FILES },
  },
  {
    name: "unpublished extents",
    sqlite: 30,
    postgres: 27,
    sql: { sqlite: SQLITE_UNPUBLISHED_EXTENTS, postgres: POSTGRES_UNPUBLISHED_EXTENTS },
  },
  { name: "open lag", sqlite: 35, postgres: 32, sql: { sqlite: SQLITE_OPEN_LAG, postgres: POSTGRES_OPEN_LAG } },
];
