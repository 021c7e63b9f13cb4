import { join } from "node:path";
import { CliError } from "../../client/failure.ts";
import { tryLock } from "../../db/sqlite/process-lock.ts";

/** Runs a task while no other update of this home runs. @throws CliError where another one runs */
export async function alone<T>(home: string, task: () => Promise<T>): Promise<T> {
  const lock = tryLock(join(home, "update.lock"));
  if (lock === undefined) throw new CliError("another `engine update` is running: wait for it to end");
  try {
    return await task();
  } finally {
    lock.release();
  }
}
