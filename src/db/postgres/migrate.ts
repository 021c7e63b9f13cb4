import { StartupError } from "../../core/errors.ts";
import { checkSchema, migrationSteps, type Migration, type MigrationStep, type SchemaState } from "../migration.ts";
import type { Connection } from "./connection.ts";
import { checkEncoding } from "./server-check.ts";

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

/** The same with what the migrations are for PostgreSQL. */
type Work = Omit<MigrateOptions, "migrations"> & { steps: readonly MigrationStep[] };

/**
 * Brings the catalog to the newest schema. `engine.meta` counts the migrations that it has seen; all that are missing
 * happen in one transaction, so nobody sees a catalog half made. Safe when many nodes start together: one does it while
 * the others wait for its lock, and then find it done. Removals are counted and left for `removeUnused`, but for those
 * of a new catalog.
 *
 * An administrative command creates a catalog but does not upgrade one: servers of the earlier version may be running.
 * Throws `StartupError` for a database in which `engine` is another program's schema, and for one of a newer version that
 * this program cannot work on. Gives how many migrations the catalog has seen in the end, which are more than this
 * program's in one of a newer version.
 */
export async function migrate(connection: Connection, options: MigrateOptions): Promise<number> {
  const { migrations, ...rest } = options;
  const work: Work = { ...rest, steps: migrationSteps("postgres", migrations) };
  // Whoever finds it done needs no lock.
  const { version } = await checkedState(connection, work);
  if (version >= work.steps.length) return version;
  await connection.script(`SET lock_timeout = '${WAIT_FOR_OTHERS}'; SELECT pg_advisory_lock(${LOCK})`);
  try {
    return await migrateLocked(connection, work);
  } finally {
    // A connection that broke has lost its lock with it.
    if (!connection.isLost) await connection.script(`SELECT pg_advisory_unlock(${LOCK}); RESET lock_timeout`);
  }
}

// The lock comes before the transaction: one that had begun by then might not see what the holder before made.
async function migrateLocked(connection: Connection, work: Work): Promise<number> {
  await connection.script("BEGIN");
  try {
    const { version } = await checkedState(connection, work);
    if (version < work.steps.length) await apply(connection, version, work);
    await connection.script("COMMIT");
    return Math.max(version, work.steps.length);
  } catch (error) {
    if (!connection.isLost) await connection.script("ROLLBACK");
    throw error;
  }
}

async function apply(connection: Connection, version: number, { steps, seed }: Work): Promise<void> {
  const isNew = version === 0;
  if (isNew) await connection.script(BIRTH);
  for (const { removes, text } of steps.slice(version)) if (isNew || !removes) await connection.script(text);
  await connection.query("UPDATE engine.meta SET schema_version = $1", [steps.length]);
  if (isNew) await seed(connection);
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

/** Version 0 where there is no catalog. Throws for one that this program must leave alone. */
async function checkedState(connection: Connection, { name, mayUpgrade, steps }: Work): Promise<SchemaState> {
  const state = await schemaStateOf(connection, name);
  checkSchema("postgres", { catalog: name, state, known: steps.length });
  if (state.version > 0 && state.version < steps.length && !mayUpgrade) {
    throw new StartupError(
      `the catalog ${name} was written by an earlier version of this program (schema ${state.version}; this one writes ` +
        `${steps.length}): start the server once to upgrade it`,
    );
  }
  return state;
}

/** Version 0 where there is no catalog. Throws `StartupError` for the schema of another program. */
export async function schemaStateOf(connection: Connection, name: string): Promise<SchemaState> {
  await checkEncoding(connection, name);
  const [found] = await connection.query(
    "SELECT to_regnamespace('engine') IS NOT NULL AS has_schema, to_regclass('engine.meta') IS NOT NULL AS has_meta",
  );
  if (found?.["has_schema"] !== true) return { version: 0, oldest: undefined };
  const state = found["has_meta"] === true ? await readState(connection) : undefined;
  if (state !== undefined) return state;
  throw new StartupError(
    `the database ${name} has a schema "engine" of another program: choose another database with ENGINE_CATALOG_URL`,
  );
}

/** Of a catalog; undefined for another program's. A row as JSON has the columns that there are. */
export async function readState(connection: Connection): Promise<SchemaState | undefined> {
  const [row] = await connection.query(
    "SELECT to_jsonb(m) ->> 'schema_version' AS version, to_jsonb(m) ->> 'oldest_schema' AS oldest " +
      "FROM engine.meta m WHERE to_jsonb(m) ->> 'id' = '1'",
  );
  const [version, oldest] = [row?.["version"], row?.["oldest"]].map(integerIn);
  return version === undefined ? undefined : { version, oldest };
}

function integerIn(text: unknown): number | undefined {
  return typeof text === "string" && /^[0-9]{1,9}$/.test(text) ? Number(text) : undefined;
}
