import type { Migration } from "../src/db/migration.ts";
import { migrationsOf } from "../src/feature/collect.ts";
import { FEATURES } from "./features.ts";

/**
 * The tables of the whole program, for tools and tests. Whoever opens the catalog checks that each database's numbers
 * are 1…n.
 */
export const MIGRATIONS: readonly Migration[] = await migrationsOf(FEATURES);
