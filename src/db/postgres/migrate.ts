import { StartupError } from "../../core/errors.ts";
import { migrationTexts, type Migration } from "../migration.ts";
import type { Connection } from "./connection.ts";

/** Any number that no other program on the database is likely to lock: "engine" in ASCII. */
export const LOCK = 0x656e67696e65n;
/** How long a node waits for another one that migrates. */
const WAIT_FOR_OTHERS = "5min";

export type MigrateOptions = {
  /** How the catalog is called in messages. */
  name: string;
  mayUpgrade: boolean;
  migrations: readonly Migration[];
  /** Writes the first rows of a new catalog, after its migrations and in their transaction. */
  seed: (connection: Connection) => Promise<void>;
};

/** The same with the texts that the migrations have for PostgreSQL. */
type Steps = Omit<MigrateOptions, "migrations"> & { texts: readonly string[] };

/**
 * Brings the catalog to the newest schema. `engine.meta` counts the migrations that it has seen; all that are missing
 * happen in one transaction, so nobody sees a catalog half made. Safe when many nodes start together: one does it while
 * the others wait for its lock, and then find it done.
 *
 * An administrative command creates a catalog but does not upgrade one: servers of the earlier version may be running.
 * Throws `StartupError` for a database in which `engine` is another program's schema, and for a newer version.
 */
export async function migrate(connection: Connection, options: MigrateOptions): Promise<void> {
  const { migrations, ...rest } = options;
  const steps: Steps = { ...rest, texts: migrationTexts("postgres", migrations) };
  // Whoever finds it done needs no lock.
  if ((await checkedVersion(connection, steps)) === steps.texts.length) return;
  await connection.script(`SET lock_timeout = '${WAIT_FOR_OTHERS}'; SELECT pg_advisory_lock(${LOCK})`);
  try {
    await migrateLocked(connection, steps);
  } finally {
    // A connection that broke has lost its lock with it.
    if (!connection.isLost) await connection.script(`SELECT pg_advisory_unlock(${LOCK}); RESET lock_timeout`);
  }
}

// The lock comes before the transaction: one that had begun by then might not see what the holder before made.
async function migrateLocked(connection: Connection, steps: Steps): Promise<void> {
  await connection.script("BEGIN");
  try {
    const version = await checkedVersion(connection, steps);
    if (version < steps.texts.length) await apply(connection, version, steps);
    await connection.script("COMMIT");
  } catch (error) {
    if (!connection.isLost) await connection.script("ROLLBACK");
    throw error;
  }
}

async function apply(connection: Connection, version: number, { texts, seed }: Steps): Promise<void> {
  if (version === 0) await connection.script(BIRTH);
  for (const text of texts.slice(version)) await connection.script(text);
  await connection.query("UPDATE engine.meta SET schema_version = $1", [texts.length]);
  if (version === 0) await seed(connection);
}

/** Not a migration: what tells how many there were. */
export const BIRTH = `
CREATE SCHEMA engine;
CREATE TABLE engine.meta (
  id integer PRIMARY KEY CHECK (id = 1),
  schema_version integer NOT NULL
);
INSERT INTO engine.meta VALUES (1, 0);
`;

/** How many migrations the catalog has seen: 0 where there is none. Throws for one that this program must leave alone. */
async function checkedVersion(connection: Connection, { name, mayUpgrade, texts }: Steps): Promise<number> {
  const version = await versionOf(connection, name);
  const versions = (knows: string) => `(schema ${version}; this one ${knows} ${texts.length})`;
  if (version > texts.length) {
    throw new StartupError(
      `the catalog ${name} was written by a newer version of this program ${versions("knows")}: use the newer ` +
        "program, or another catalog",
    );
  }
  if (version > 0 && version < texts.length && !mayUpgrade) {
    throw new StartupError(
      `the catalog ${name} was written by an earlier version of this program ${versions("writes")}: start the server ` +
        "once to upgrade it",
    );
  }
  return version;
}

async function versionOf(connection: Connection, name: string): Promise<number> {
  const [found] = await connection.query(
    "SELECT to_regnamespace('engine') IS NOT NULL AS has_schema, to_regclass('engine.meta') IS NOT NULL AS has_meta, " +
      "current_setting('server_encoding') AS encoding",
  );
  if (found?.["encoding"] !== "UTF8") {
    const text = `the database ${name} is not in UTF-8 but ${String(found?.["encoding"])}: create one with ENCODING 'UTF8'`;
    throw new StartupError(text);
  }
  if (found["has_schema"] !== true) return 0;
  if (found["has_meta"] === true) {
    const [row] = await connection.query("SELECT schema_version FROM engine.meta WHERE id = 1");
    if (typeof row?.["schema_version"] === "number") return row["schema_version"];
  }
  throw new StartupError(
    `the database ${name} has a schema "engine" of another program: choose another database with ENGINE_CATALOG_URL`,
  );
}
