import { StartupError } from "../core/errors.ts";

/**
 * One step of the schema. Each folder defines those of its own tables, `roles/migrations.ts` lists them all, and
 * whoever opens the database is given the list. Every database counts the migrations that it has seen, so a published
 * one never changes and keeps its number for ever: a correction is a new migration.
 */
export type Migration = {
  /** For humans and tests; no database stores it. */
  name: string;
  /** Its number in an SQLite database; absent from a migration that SQLite does without. */
  sqlite?: number;
  /** Its number in a PostgreSQL database; absent from a migration that PostgreSQL does without. */
  postgres?: number;
  /** The statements: one text in the vocabulary that both databases share, or a text for each. */
  sql: string | Partial<Record<Dialect, string>>;
  /**
   * Takes away what programs without this migration use; every other one only adds, and they run on its outcome. The
   * release that brings it must not depend on it, nor may later migrations: it comes at least one release after the
   * last use of what it removes, and waits until no server without it is alive.
   */
  removes?: true;
};

export type Dialect = "sqlite" | "postgres";

/** A migration as one database sees it. */
export type MigrationStep = { name: string; number: number; removes: boolean; text: string };

/**
 * The migrations of one database in the order of their numbers, so that `steps[n - 1]` is migration `n`. Throws unless
 * the numbers are exactly 1…n: a gap or a number given twice would leave databases that count the same and differ.
 */
export function migrationSteps(dialect: Dialect, migrations: readonly Migration[]): MigrationStep[] {
  const own = migrations.filter((migration) => migration[dialect] !== undefined);
  const ordered = own.toSorted((a, b) => Number(a[dialect]) - Number(b[dialect]));
  return ordered.map((migration, i) => {
    const { name, sql, removes = false } = migration;
    const number = i + 1;
    if (migration[dialect] !== number) {
      throw new Error(`migration "${name}" has number ${migration[dialect]} in ${dialect}, where ${number} is next`);
    }
    const text = typeof sql === "string" ? sql : sql[dialect];
    if (text === undefined) throw new Error(`migration "${name}" has a number in ${dialect} and no text for it`);
    return { name, number, removes, text: removes ? text + raiseOldest(dialect, number) : text };
  });
}

/** The texts of `migrationSteps`. */
export function migrationTexts(dialect: Dialect, migrations: readonly Migration[]): string[] {
  return migrationSteps(dialect, migrations).map(({ text }) => text);
}

/** Part of the text, so that whoever runs a removal records it in the same transaction. */
function raiseOldest(dialect: Dialect, number: number): string {
  const table = dialect === "postgres" ? "engine.meta" : "meta";
  return `;\nUPDATE ${table} SET oldest_schema = ${number};\n`;
}

/** What a catalog says of its schema. */
export type SchemaState = {
  /** How many migrations it has seen; of removals, some may still wait. */
  version: number;
  /** How many a program must know to work on it; absent from catalogs that have not seen `FIRST_WITH_OLDEST`. */
  oldest: number | undefined;
};

/** The migration with which catalogs began to say which programs may run on them. */
export const FIRST_WITH_OLDEST: Readonly<Record<Dialect, number>> = { sqlite: 18, postgres: 15 };

/** The earliest schemas that catalogs have: today's migrations begin with them, and tests open such catalogs. */
export const OLDEST_OPENED: Readonly<Record<Dialect, number>> = { sqlite: 1, postgres: 1 };

/** How many migrations a program must know to work on the catalog: those before say nothing, and have no later ones run. */
export function oldestProgram(dialect: Dialect, { version, oldest = FIRST_WITH_OLDEST[dialect] }: SchemaState): number {
  return Math.min(version, oldest);
}

/** Throws `StartupError` where a program that knows so many migrations cannot work on the catalog, or would harm it. */
export function checkSchema(
  dialect: Dialect,
  { catalog, state, known }: { catalog: string; state: SchemaState; known: number },
): void {
  const oldest = oldestProgram(dialect, state);
  if (oldest <= known) return;
  const { version } = state;
  throw new StartupError(
    `the catalog ${catalog} was written by a newer version of this program (schema ${version}, for programs that know ` +
      `${oldest}; this one knows ${known}): use the newer program, or another catalog`,
  );
}

/** Removals that a catalog of that state has not seen: they run in order, and each raises `oldest`. */
export function waitingRemovals(
  steps: readonly MigrationStep[],
  { version, oldest = 0 }: SchemaState,
): MigrationStep[] {
  return steps.filter(({ removes, number }) => removes && number <= version && number > oldest);
}
