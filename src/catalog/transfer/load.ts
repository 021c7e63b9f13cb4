import type { Clock } from "../../core/clock.ts";
import { EngineError } from "../../core/errors.ts";
import { migrationTexts, type Dialect, type Migration } from "../../db/migration.ts";
import type { TransferSource } from "./transfer.ts";

/** What a load takes, whichever database it makes the catalog in. */
export type LoadOptions = {
  source: TransferSource;
  /** Those of the whole program. */
  migrations: readonly Migration[];
  clock: Clock;
  /** Aborted: nothing is loaded. */
  signal?: AbortSignal;
};

/** Tables whose rows a server leaves by itself; any other row makes a catalog one that is in use. */
export const LEFT_BY_SERVERS: readonly string[] = [
  "leases",
  "input_states",
  "commits",
  "snapshot_holds",
  "sandbox_gateways",
];

/** The texts that make the catalog as the backup's program had it, and those that bring it up to date. */
export function stepsOf(
  dialect: Dialect,
  { source, migrations }: Pick<LoadOptions, "source" | "migrations">,
): { before: string[]; after: string[] } {
  const texts = migrationTexts(dialect, migrations);
  const seen = source.schema[dialect];
  if (seen > texts.length) {
    const what = `the backup is of schema ${seen}; this program knows ${texts.length}`;
    throw new EngineError("conflict", `${what}: restore it with a newer version of the program`);
  }
  return { before: texts.slice(0, seen), after: texts.slice(seen) };
}

/** Why nothing is restored. */
export function notEmpty(name: string, table: string): EngineError {
  const what = `the catalog ${name} is not empty: its table ${table} has rows`;
  return new EngineError("conflict", `${what}. A backup is restored into a new catalog: name another one`);
}
