import type { Dialect, Migration } from "../../db/migration.ts";
import type { SchemaNumbers } from "./transfer.ts";

/** How many migrations there are for each database. */
export function schemaNumbersOf(migrations: readonly Migration[]): SchemaNumbers {
  const count = (dialect: Dialect): number => migrations.filter((migration) => migration[dialect] !== undefined).length;
  return { sqlite: count("sqlite"), postgres: count("postgres") };
}
