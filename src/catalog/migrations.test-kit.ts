import { MIGRATIONS as OF_PROGRAM } from "../../roles/migrations.ts";
import type { Dialect, Migration } from "../db/migration.ts";

/** Every migration of the program, for tests and benches that open a catalog. */
export const MIGRATIONS: readonly Migration[] = OF_PROGRAM;

/** Those of a catalog that has not seen the named one: an earlier version. */
export function migrationsBefore(name: string, dialect: Dialect): readonly Migration[] {
  const end = numberOf(migrationNamed(name), dialect);
  return MIGRATIONS.filter((migration) => migration[dialect] !== undefined && numberOf(migration, dialect) < end);
}

/** The text of the named migration in SQLite. */
export function sqliteText(name: string): string {
  const { sql } = migrationNamed(name);
  return typeof sql === "string" ? sql : (sql.sqlite ?? "");
}

function migrationNamed(name: string): Migration {
  const found = MIGRATIONS.find((migration) => migration.name === name);
  if (found === undefined) throw new Error(`there is no migration "${name}"`);
  return found;
}

function numberOf(migration: Migration, dialect: Dialect): number {
  const number = migration[dialect];
  if (number === undefined) throw new Error(`migration "${migration.name}" has no number in ${dialect}`);
  return number;
}
