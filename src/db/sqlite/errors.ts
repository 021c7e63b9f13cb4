import { EngineError, messageOf, StartupError, systemCodeOf } from "../../core/errors.ts";

/** Result codes of SQLite (https://www.sqlite.org/rescode.html). An extended code carries its primary in 8 bits. */
const SQLITE_PERM = 3;
const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_NOTADB = 26;
/** The index of the write-ahead log could not grow: the disk is full. */
const SQLITE_IOERR_SHMSIZE = SQLITE_IOERR | (19 << 8);
const SQLITE_CONSTRAINT_UNIQUE = 2067;

/** The (extended) result code of an error that `node:sqlite` threw, or undefined for any other error. */
function resultCodeOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error)) return undefined;
  return typeof error.errcode === "number" ? error.errcode : undefined;
}

function primaryCodeOf(error: unknown): number | undefined {
  const code = resultCodeOf(error);
  return code === undefined ? undefined : code & 0xff;
}

export function isUniqueViolation(error: unknown): boolean {
  return resultCodeOf(error) === SQLITE_CONSTRAINT_UNIQUE;
}

export function isBusy(error: unknown): boolean {
  return primaryCodeOf(error) === SQLITE_BUSY;
}

/**
 * What a caller of the catalog sees for an error of SQLite. Only errors after which nothing can have been stored become
 * an `EngineError`: SQLite reports a full or read-only disk before the last frame of a commit is in the log, and a lock
 * before anything is. A failed fsync is none of these: the frames may still be found by a recovery.
 */
export function toDatabaseError(error: unknown, path: string): unknown {
  const code = resultCodeOf(error);
  if (code === undefined) return error;
  const reason = messageOf(error);
  const options = { cause: error };
  const primary = code & 0xff;
  if (primary === SQLITE_FULL || primary === SQLITE_READONLY || code === SQLITE_IOERR_SHMSIZE) {
    return new EngineError("insufficient_storage", `the catalog cannot be written: ${reason}`, options);
  }
  if (primary === SQLITE_BUSY) {
    return new EngineError("unavailable", "another process holds the catalog's lock; try again", options);
  }
  return new Error(`the catalog ${path} failed: ${reason} (SQLite result code ${code})`, options);
}

/** Why a catalog cannot be opened, in a sentence that names the file and what to do. */
export function toStartupError(error: unknown, path: string): StartupError {
  if (error instanceof StartupError) return error;
  return new StartupError(`${startupProblem(error, path)} [${messageOf(error)}]`, 1, error);
}

const CHOOSE = "or choose another file with ENGINE_LOCAL_DB";

function startupProblem(error: unknown, path: string): string {
  const system = systemCodeOf(error);
  const primary = primaryCodeOf(error);
  if (system === "ENOSPC" || primary === SQLITE_FULL) {
    return `the disk of the catalog ${path} is full: free some space, ${CHOOSE}`;
  }
  if (primary === SQLITE_NOTADB) {
    return `${path} is not a catalog: the file is no SQLite database; move it away ${CHOOSE}`;
  }
  if (primary === SQLITE_CORRUPT) {
    return `the catalog ${path} is damaged: restore it from a backup, ${CHOOSE}`;
  }
  if (primary === SQLITE_BUSY) {
    return `the catalog ${path} is locked by another process: stop that process and try again`;
  }
  if (system === "EROFS" || primary === SQLITE_READONLY) {
    return `the catalog ${path} is read-only: make it and its folder writable, ${CHOOSE}`;
  }
  if (system === "ENOTDIR" || system === "EEXIST") {
    return `the folder of the catalog ${path} cannot be made, for a file is in its way: remove that file, ${CHOOSE}`;
  }
  const refused = system === "EACCES" || system === "EPERM" || primary === SQLITE_PERM || primary === SQLITE_CANTOPEN;
  if (refused) {
    return `the catalog ${path} cannot be opened: make it and its folder readable and writable for this user, ${CHOOSE}`;
  }
  return `the catalog ${path} cannot be opened: check the disk, ${CHOOSE}`;
}
