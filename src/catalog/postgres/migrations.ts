import { StartupError } from "../../core/errors.ts";
import { AGENT_RECORDS } from "../agent-schema.ts";
import { AWAITED_IMAGES } from "../awaited-image-schema.ts";
import { JOB_RECORDS } from "../jobs-schema.ts";
import { OWNER_RECORDS } from "../owner-schema.ts";
import { POSTGRES_SANDBOX_QUOTAS } from "../sandbox-quota-schema.ts";
import { SANDBOX_RECORDS } from "../sandbox-schema.ts";
import { ACCESS_RECORDS } from "../records-schema.ts";
import type { Connection } from "./connection.ts";
import { CLUSTER_COLUMNS } from "./cluster-columns-schema.ts";
import { DELETION } from "./deletion-functions.ts";
import { FUNCTIONS_1 } from "./functions-1.ts";
import { FUNCTIONS_2 } from "./functions-2.ts";
import { SCHEMA_1 } from "./schema-1.ts";
import { VECTOR_COLUMNS } from "./vector-columns-functions.ts";

/**
 * The schema of a catalog. `engine.meta` counts the migrations that it has seen; all that are missing happen in one
 * transaction, so nobody sees a catalog half made. A published migration never changes: a correction is a new one.
 */
export type Migration = string;

/** Rows of jobs are changed several times within seconds; dead ones slow claims until they are swept. */
const JOB_TUNING = `
ALTER TABLE jobs SET (
  autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0
);
`;

export const MIGRATIONS: readonly Migration[] = [
  SCHEMA_1 + FUNCTIONS_1 + FUNCTIONS_2,
  CLUSTER_COLUMNS,
  ACCESS_RECORDS,
  JOB_RECORDS + JOB_TUNING,
  SANDBOX_RECORDS,
  AGENT_RECORDS,
  OWNER_RECORDS,
  AWAITED_IMAGES,
  VECTOR_COLUMNS,
  POSTGRES_SANDBOX_QUOTAS,
  DELETION,
];

/** Any number that no other program on the database is likely to lock: "engine" in ASCII. */
const LOCK = 0x656e67696e65n;
/** How long a node waits for another one that migrates. */
const WAIT_FOR_OTHERS = "5min";

type MigrateOptions = {
  /** How the catalog is called in messages. */
  name: string;
  /** The time of the first snapshot; undefined is the database's own. */
  nowMs: number | undefined;
  mayUpgrade: boolean;
  migrations?: readonly Migration[];
};

/**
 * Brings the catalog to the newest schema. Safe when many nodes start together: one does it while the others wait for
 * its lock, and then find it done.
 *
 * An administrative command creates a catalog but does not upgrade one: servers of the earlier version may be running.
 * Throws `StartupError` for a database in which `engine` is another program's schema, and for a newer version.
 */
export async function migrate(connection: Connection, options: MigrateOptions): Promise<void> {
  const { migrations = MIGRATIONS } = options;
  // Whoever finds it done needs no lock.
  if ((await checkedVersion(connection, options)) === migrations.length) return;
  await connection.script(`SET lock_timeout = '${WAIT_FOR_OTHERS}'; SELECT pg_advisory_lock(${LOCK})`);
  try {
    await migrateLocked(connection, options);
  } finally {
    // A connection that broke has lost its lock with it.
    if (!connection.isLost) await connection.script(`SELECT pg_advisory_unlock(${LOCK}); RESET lock_timeout`);
  }
}

// The lock comes before the transaction: one that had begun by then might not see what the holder before made.
async function migrateLocked(connection: Connection, options: MigrateOptions): Promise<void> {
  await connection.script("BEGIN");
  try {
    const version = await checkedVersion(connection, options);
    if (version < (options.migrations ?? MIGRATIONS).length) await apply(connection, version, options);
    await connection.script("COMMIT");
  } catch (error) {
    if (!connection.isLost) await connection.script("ROLLBACK");
    throw error;
  }
}

async function apply(connection: Connection, version: number, options: MigrateOptions): Promise<void> {
  const { nowMs, migrations = MIGRATIONS } = options;
  if (version === 0) await connection.script(BIRTH);
  for (const migration of migrations.slice(version)) await connection.script(migration);
  await connection.query("UPDATE engine.meta SET schema_version = $1", [migrations.length]);
  if (version > 0) return;
  await connection.query(
    "WITH born AS (SELECT engine.now_ms($1::bigint) AS ms), " +
      "snapshot AS (INSERT INTO engine.snapshots (id, committed_at_ms) SELECT 0, ms FROM born) " +
      "INSERT INTO engine.head (id, snapshot_id, committed_at_ms, last_seq, schema_generation) " +
      "SELECT 1, 0, ms, 0, 0 FROM born",
    [nowMs ?? null],
  );
  await connection.query("INSERT INTO engine.horizon (id, oldest_snapshot) VALUES (1, 0)");
}

/** Not a migration: what tells how many there were. */
const BIRTH = `
CREATE SCHEMA engine;
CREATE TABLE engine.meta (
  id integer PRIMARY KEY CHECK (id = 1),
  schema_version integer NOT NULL
);
INSERT INTO engine.meta VALUES (1, 0);
`;

/** How many migrations the catalog has seen: 0 where there is none. Throws for one that this program must leave alone. */
async function checkedVersion(connection: Connection, options: MigrateOptions): Promise<number> {
  const { name, mayUpgrade, migrations = MIGRATIONS } = options;
  const version = await versionOf(connection, name);
  const versions = (knows: string) => `(schema ${version}; this one ${knows} ${migrations.length})`;
  if (version > migrations.length) {
    throw new StartupError(
      `the catalog ${name} was written by a newer version of this program ${versions("knows")}: use the newer ` +
        "program, or another catalog",
    );
  }
  if (version > 0 && version < migrations.length && !mayUpgrade) {
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
