import { chmodSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "../db/sqlite/driver.ts";
import { isBusy } from "../db/sqlite/errors.ts";

/** A lock that this process holds until it is released or the process ends, however that ends: none goes stale. */
export type ProcessLock = { release(): void };

/** Undefined while another process holds it. SQLite takes the lock by the operating system's means. */
export function tryLock(file: string): ProcessLock | undefined {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const database = new DatabaseSync(file);
  try {
    database.exec("BEGIN EXCLUSIVE");
    chmodSync(file, 0o600);
  } catch (error) {
    database.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
  return { release: () => database.close() };
}
