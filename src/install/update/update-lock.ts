import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { CliError } from "../../client/failure.ts";
import { DatabaseSync } from "../../db/sqlite/driver.ts";
import { isBusy } from "../../db/sqlite/errors.ts";

/**
 * Runs a task while no other update of this home runs. SQLite holds the lock by the system's, so that it ends with the
 * process, however that ends. @throws CliError where another one runs
 */
export async function alone<T>(home: string, task: () => Promise<T>): Promise<T> {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const lock = new DatabaseSync(join(home, "update.lock"));
  try {
    try {
      lock.exec("BEGIN EXCLUSIVE");
    } catch (error) {
      if (isBusy(error)) throw new CliError("another `engine update` is running: wait for it to end");
      throw error;
    }
    return await task();
  } finally {
    lock.close();
  }
}
