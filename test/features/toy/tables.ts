import { MIGRATIONS } from "../../../roles/migrations.ts";
import { migrationTexts, type Dialect, type Migration } from "../../../src/db/migration.ts";

/** A published migration has its numbers for ever; a toy's are whatever comes next. */
const next = (dialect: Dialect): number => migrationTexts(dialect, MIGRATIONS).length + 1;

export const TOY_MIGRATIONS: readonly Migration[] = [
  {
    name: "toys",
    sqlite: next("sqlite"),
    postgres: next("postgres"),
    sql: "CREATE TABLE toys (id text PRIMARY KEY, name text NOT NULL UNIQUE, colour text);",
  },
];
