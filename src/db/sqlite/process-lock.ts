import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "./driver.ts";
import { isBusy } from "./errors.ts";
import { createFile } from "./open.ts";

/**
 * A lock that this process holds until it is released or the process ends, however that ends: none goes stale. It is an
 * exclusive transaction on an empty database: SQLite holds it with the operating system's file locks, and it works
 * between two holders in one process too. (Node has no call of its own for such locks.)
 */
export type ProcessLock = { release(): void };

/** Undefined while another one holds it. The file and the folders above it are made where there are none. */
export function tryLock(file: string): ProcessLock | undefined {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  createFile(file);
  const database = new DatabaseSync(file);
  try {
    if (takeWhole(database)) return { release: () => database.close() };
  } catch (error) {
    database.close();
    throw error;
  }
  database.close();
  return undefined;
}

/** Whether the database is this connection's alone now, until it is closed. */
export function takeWhole(database: InstanceType<typeof DatabaseSync>): boolean {
  try {
    database.exec("PRAGMA journal_mode = MEMORY");
    database.exec("BEGIN EXCLUSIVE");
    // On a file that may only be read the statement above succeeds and locks nothing; a write tells.
    database.exec("PRAGMA user_version = 1");
    return true;
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  }
}
