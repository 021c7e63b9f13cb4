import { accessSync, closeSync, constants, fsyncSync, mkdirSync, openSync, realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { StartupError, systemCodeOf } from "../../core/errors.ts";
import { migrationSteps, type Migration } from "../migration.ts";
import type { SchemaUpkeep } from "../schema-upkeep.ts";
import { configureCaller, configureWriter, Connection } from "./connection.ts";
import { isBusy } from "./errors.ts";
import { migrate, versionOf, type MigrateOptions } from "./migrate.ts";

export type OpenOptions = {
  path: string;
  part: "writer" | "caller" | "reader";
  busyTimeoutMs: number;
};

/** Opens the connection of one part to a file that `prepareSchema` has prepared. */
export function openConnection(options: OpenOptions): Connection {
  const readOnly = options.part === "reader";
  const connection = new Connection(options.path, { readOnly, busyTimeoutMs: options.busyTimeoutMs });
  try {
    if (options.part === "writer") configureWriter(connection);
    if (options.part === "caller") configureCaller(connection);
    // From its first read on a connection keeps the log there, whoever else closes.
    connection.pragma("user_version");
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Makes the file what the parts expect, on the connection of a writer. Gives what `migrate` gives. */
export function prepareSchema(connection: Connection, options: MigrateOptions): number {
  versionOf(connection, options.path); // before anything is changed: the file may be another program's
  switchToWal(connection);
  return migrate(connection, options);
}

/** No removal waits: `migrate` has run them all. */
export function sqliteUpkeep(migrations: readonly Migration[], found: number): SchemaUpkeep {
  const known = migrationSteps("sqlite", migrations).length;
  return { known, found, hasRemovals: false, removeUnused: () => Promise.resolve({ removed: [] }) };
}

/** SQLite does not wait for its lock in every step of this change, so a second process that opens may meet it. */
function switchToWal(connection: Connection): void {
  for (let attempt = 1; ; attempt++) {
    try {
      connection.db.exec("PRAGMA journal_mode = WAL");
      // A file that may only be read opens well and even begins a transaction; a write tells.
      const version = connection.pragma("user_version");
      connection.db.exec(`BEGIN IMMEDIATE; PRAGMA user_version = ${version}; ROLLBACK`);
      return;
    } catch (error) {
      if (connection.db.isTransaction) connection.db.exec("ROLLBACK");
      if (!isBusy(error) || attempt >= 10) throw error;
    }
  }
}

/**
 * Makes the folder (mode 0700) and the file (0600) unless they exist, and returns the file's real path: two names of one
 * catalog must find the same lock. Throws `StartupError` for what is no file, and the system's error for what may not
 * be accessed.
 */
export function prepareFile(givenPath: string): string {
  const folder = dirname(resolve(givenPath));
  makeFolder(folder);
  createFile(resolve(givenPath));
  const path = realpathSync(givenPath);
  const kind = statSync(path);
  if (!kind.isFile()) {
    const what = kind.isDirectory() ? "a folder" : "no file";
    throw new StartupError(`the catalog ${path} is ${what}: choose another path with ENGINE_LOCAL_DB`);
  }
  // SQLite keeps its log beside the file. Access is asked for, not tried: closing a file in this process would drop
  // the locks that a catalog opened earlier holds on it (POSIX locks belong to the process).
  accessSync(path, constants.R_OK | constants.W_OK);
  accessSync(dirname(path), constants.R_OK | constants.W_OK | constants.X_OK);
  return path;
}

function makeFolder(folder: string): void {
  const firstMade = mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (firstMade === undefined) return;
  // A new folder lives in its parent, which must be synced for it to outlast a power cut.
  for (let made = folder; ; made = dirname(made)) {
    syncFolder(dirname(made));
    if (made === firstMade || made === dirname(made)) return;
  }
}

function syncFolder(folder: string): void {
  const fd = openSync(folder, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Makes an empty file for its owner alone, unless there is one. Files that SQLite adds to a database have its mode. */
export function createFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if (systemCodeOf(error) !== "EEXIST") throw error;
  }
}
