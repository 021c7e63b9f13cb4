import { readFileSync, rmSync, writeFileSync } from "node:fs";

import { messageOf, StartupError, systemCodeOf } from "../../core/errors.ts";
import { DatabaseSync } from "./driver.ts";
import { createFile } from "./open.ts";
import { takeWhole } from "./process-lock.ts";

/**
 * One server per catalog. The lock (`process-lock.ts`) is on an empty database beside the catalog. The number in the `.pid` file serves only
 * the message of the server that is refused; a stale one is harmless.
 *
 * The lock is not taken on the catalog itself: administrative commands write there while the server runs.
 */
export type ServerLock = { release(): void };

/** Another server has the catalog. */
export class CatalogInUse extends StartupError {}

const ATTEMPTS = 10;
const ATTEMPT_TIMEOUT_MS = 100;

/** Throws `CatalogInUse` naming the holder's process id when another server has the catalog. */
export function acquireServerLock(catalogPath: string): ServerLock {
  const lockPath = `${catalogPath}.lock`;
  const pidPath = `${catalogPath}.pid`;
  createFile(lockPath);
  const lock = new DatabaseSync(lockPath, { timeout: ATTEMPT_TIMEOUT_MS });
  try {
    hold(lock, catalogPath, pidPath);
    writeFileSync(pidPath, `${process.pid}\n`, { mode: 0o600 });
  } catch (error) {
    lock.close();
    if (error instanceof StartupError) throw error;
    const advice = "make both and their folder writable for this user, or choose another file with ENGINE_LOCAL_DB";
    throw new StartupError(`${lockPath} or ${pidPath} cannot be written: ${advice} [${messageOf(error)}]`, 1, error);
  }
  return {
    release() {
      // While the lock is still held: the next server's file must not be the one that goes.
      rmSync(pidPath, { force: true });
      lock.close();
    },
  };
}

// The winner of a race may not have written its number yet, so the loser tries for a while before it gives up; SQLite
// waits within each attempt.
function hold(lock: InstanceType<typeof DatabaseSync>, catalogPath: string, pidPath: string): void {
  for (let attempt = 1; ; attempt++) {
    if (takeWhole(lock)) return;
    const pid = runningPid(pidPath);
    if (pid === undefined && attempt < ATTEMPTS) continue;
    const holder = pid === undefined ? "another server" : `the server with process id ${pid}`;
    throw new CatalogInUse(
      `the catalog ${catalogPath} is in use by ${holder}: stop that server, or choose another file with ENGINE_LOCAL_DB`,
    );
  }
}

function runningPid(pidPath: string): number | undefined {
  const pid = pidIn(pidPath);
  return pid !== undefined && isRunning(pid) ? pid : undefined;
}

function pidIn(pidPath: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(pidPath, "utf8"), 10);
    return pid > 0 ? pid : undefined;
  } catch {
    // Not written yet, or not readable for this user: then the message does without.
    return undefined;
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCodeOf(error) === "EPERM"; // there, but another user's
  }
}
