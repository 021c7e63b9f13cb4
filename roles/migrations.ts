import { AUTH_MIGRATIONS } from "../src/auth/tables.ts";
import { CATALOG_MIGRATIONS } from "../src/catalog/migrations/migrations.ts";
import type { Migration } from "../src/db/migration.ts";
import { FABRIC_MIGRATIONS } from "../src/fabric/tables.ts";
import { SANDBOX_MIGRATIONS } from "../src/sandbox/control/tables.ts";

/** The tables of the whole program. Whoever opens the catalog checks that each database's numbers are 1…n. */
export const MIGRATIONS: readonly Migration[] = [
  ...CATALOG_MIGRATIONS,
  ...AUTH_MIGRATIONS,
  ...FABRIC_MIGRATIONS,
  ...SANDBOX_MIGRATIONS,
];
