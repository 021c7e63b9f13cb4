import { StartupError } from "../../core/errors.ts";
import { checkSchema, migrationSteps, type Migration, type MigrationStep, type SchemaState } from "../migration.ts";
import type { Connection } from "./connection.ts";

/** "ENGC": tells a catalog from the database of another program. */
export const APPLICATION_ID = 0x454e4743;

export type MigrateOptions = {
  /** How the file is called in messages. */
  path: string;
  nowMs: number;
  mayUpgrade: boolean;
  migrations: readonly Migration[];
  /** Writes the first rows of a new database, after its migrations and in their transaction. */
  seed?: (connection: Connection, nowMs: number) => void;
};

/**
 * Brings the file to the newest schema. `user_version` counts the migrations that it has seen; each runs once, in a
 * transaction of its own (in a new file all in one). Safe when several processes do it at once. Removals wait for
 * nobody: a file has one server at a time, which is this one.
 *
 * An administrative command creates a catalog but does not upgrade one: a server of the earlier version may be running
 * beside it. Throws `StartupError` for a file of another program, or of a newer version that this one cannot work on.
 * Gives how many migrations the file has seen in the end, which are more than this program's in one of a newer version.
 */
export function migrate(connection: Connection, options: MigrateOptions): number {
  const { path, mayUpgrade } = options;
  const steps = migrationSteps("sqlite", options.migrations);
  for (;;) {
    const state = schemaStateOf(connection, path);
    const { version } = state;
    if (version >= steps.length) {
      checkSchema("sqlite", { catalog: path, state, known: steps.length });
      return version;
    }
    if (version > 0 && !mayUpgrade) {
      throw new StartupError(
        `the catalog ${path} was written by an earlier version of this program (schema ${version}; this one writes ` +
          `${steps.length}): start the server once to upgrade it`,
      );
    }
    connection.write(() => step(connection, version, steps, options));
  }
}

/**
 * One migration, unless another process has just done it. A new catalog gets all at once: nobody sees it as one of an
 * earlier version.
 */
function step(connection: Connection, version: number, steps: readonly MigrationStep[], options: MigrateOptions): void {
  if (connection.pragma("user_version") !== version) return;
  const next = version === 0 ? steps.length : version + 1;
  if (version === 0) connection.db.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
  for (const { text } of steps.slice(version, next)) connection.db.exec(text);
  if (version === 0) options.seed?.(connection, options.nowMs);
  connection.db.exec(`PRAGMA user_version = ${next}`);
}

/** Version 0 for an empty file. Throws `StartupError` for one of another program. */
export function schemaStateOf(connection: Connection, path: string): SchemaState {
  const version = versionOf(connection, path);
  const has = connection.get("SELECT 1 FROM pragma_table_info('meta') WHERE name = 'oldest_schema'");
  const oldest = has && Number(connection.get("SELECT oldest_schema AS n FROM meta")?.["n"]);
  return { version, oldest };
}

/** How many migrations the file has seen; 0 for an empty file. */
export function versionOf(connection: Connection, path: string): number {
  return connection.read(() => {
    const applicationId = connection.pragma("application_id");
    const objects = Number(connection.get("SELECT count(*) AS n FROM sqlite_schema")?.["n"]);
    const version = connection.pragma("user_version");
    if (applicationId === APPLICATION_ID || (applicationId === 0 && objects === 0 && version === 0)) return version;
    throw new StartupError(
      `${path} is no catalog but an SQLite database of another program: choose another file with ENGINE_LOCAL_DB`,
    );
  });
}
