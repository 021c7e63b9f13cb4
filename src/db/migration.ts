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
};

export type Dialect = "sqlite" | "postgres";

/**
 * The texts for one database in the order of their numbers, so that `texts[n - 1]` is migration `n`. Throws unless the
 * numbers are exactly 1…n: a gap or a number given twice would leave databases that count the same and differ.
 */
export function migrationTexts(dialect: Dialect, migrations: readonly Migration[]): string[] {
  const own = migrations.filter((migration) => migration[dialect] !== undefined);
  const ordered = own.toSorted((a, b) => Number(a[dialect]) - Number(b[dialect]));
  return ordered.map((migration, i) => {
    const { name, sql } = migration;
    if (migration[dialect] !== i + 1) {
      throw new Error(`migration "${name}" has number ${migration[dialect]} in ${dialect}, where ${i + 1} is next`);
    }
    const text = typeof sql === "string" ? sql : sql[dialect];
    if (text === undefined) throw new Error(`migration "${name}" has a number in ${dialect} and no text for it`);
    return text;
  });
}
