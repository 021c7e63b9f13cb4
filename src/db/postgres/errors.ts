import { EngineError, messageOf, StartupError, systemCodeOf } from "../../core/errors.ts";
import { showAddress, type ServerAddress } from "./url.ts";

/** The connection broke while something was under way on it, so what the server did is not known. */
export class ConnectionLost extends Error {
  constructor(cause: unknown) {
    super(`the connection to PostgreSQL was lost: ${messageOf(cause)}`, { cause });
    this.name = "ConnectionLost";
  }
}

/** The server answers but only reads: it is a standby, and what it shows may be old. */
export class NotPrimary extends Error {
  constructor() {
    super("the server is a standby: name the primary");
    this.name = "NotPrimary";
  }
}

/** SQLSTATE codes (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const DISK_FULL = "53100";
const READ_ONLY = "25006";
const LOCK_NOT_AVAILABLE = "55P03";
const CONFLICTS = new Set(["40001", "40P01", LOCK_NOT_AVAILABLE]);
const ABORTED = "25P02";
const INVALID_DATABASE = "3D000";
const INSUFFICIENT_PRIVILEGE = "42501";
/** At the start of a session: a setting that the server does not know. */
const UNDEFINED_OBJECT = "42704";
/** The server ends the session: it is told to stop, it crashed, or it is starting. */
const ENDED = new Set(["57P01", "57P02", "57P03", "57P05", "25P03"]);

/** The SQLSTATE of an error that the server sent; undefined for any other. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== "PostgresError") return undefined;
  return systemCodeOf(error);
}

/** Whether the server ended the session, or will. */
export function endsSession(error: unknown): boolean {
  return ENDED.has(sqlStateOf(error) ?? "");
}

/** Whether the server rolled the transaction back in favour of another one, so that it may be repeated. */
export function isConflict(error: unknown): boolean {
  return CONFLICTS.has(sqlStateOf(error) ?? "");
}

/** Whether a statement would have left rows that a constraint forbids (class 23). */
export function violatesConstraint(error: unknown): boolean {
  return sqlStateOf(error)?.startsWith("23") === true;
}

/** Whether a statement was not run, since one before it in its transaction failed. */
export function isOfAborted(error: unknown): boolean {
  return sqlStateOf(error) === ABORTED;
}

/** Whether another transaction kept its lock for longer than a statement waits. */
export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === LOCK_NOT_AVAILABLE;
}

/** Whether trying again will not help: what the server says about who connects, and to what. */
export function isRefusal(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state !== undefined && (state.startsWith("28") || state === INVALID_DATABASE);
}

/**
 * What a caller sees for an error of PostgreSQL. An error that the server sent is one after which the transaction was
 * rolled back, so nothing was stored; a lost connection is not.
 */
export function toDatabaseError(error: unknown): unknown {
  const state = sqlStateOf(error);
  if (state === undefined) return error;
  const reason = messageOf(error);
  const options = { cause: error };
  if (state === DISK_FULL || state === READ_ONLY) {
    return new EngineError("insufficient_storage", `the catalog cannot be written: ${reason}`, options);
  }
  if (isLockTimeout(error)) {
    return new EngineError("unavailable", "another node holds the catalog's lock; try again", options);
  }
  if (isConflict(error) || endsSession(error) || isRefusal(error) || state.startsWith("53")) return unavailable(error);
  return new Error(`the catalog failed: ${reason} (SQLSTATE ${state})`, options);
}

/** For a call of which the server has seen nothing, or nothing that matters. */
export function unavailable(cause: unknown): EngineError {
  return new EngineError("unavailable", `the catalog is not available: ${messageOf(cause)}`, { cause });
}

/** Why a catalog cannot be opened, in a sentence that names the database and what to do. */
export function toStartupError(error: unknown, address: ServerAddress): StartupError {
  if (error instanceof StartupError) return error;
  const root = error instanceof EngineError && error.details.cause !== undefined ? error.details.cause : error;
  const problem = startupProblem(root, address);
  return new StartupError(`the catalog ${showAddress(address)} ${problem} [${messageOf(root)}]`, 1, error);
}

function startupProblem(error: unknown, { user, database }: ServerAddress): string {
  const state = sqlStateOf(error);
  if (state?.startsWith("28") === true) return `refuses the user ${user}: check the user and the password`;
  if (state === INVALID_DATABASE) return `does not exist: create it (CREATE DATABASE ${database})`;
  if (state === INSUFFICIENT_PRIVILEGE) {
    return `may not be changed by ${user}: let the user create schemas (GRANT CREATE ON DATABASE ${database} TO ${user})`;
  }
  if (state === UNDEFINED_OBJECT)
    return "is on a server that is too old, or behind a pooler: name a newer server directly";
  if (state === DISK_FULL) return "has no disk space left: free some";
  if (error instanceof NotPrimary || state === READ_ONLY) return "cannot be written: name the primary";
  return "cannot be opened: check that the server runs and that ENGINE_CATALOG_URL names it";
}
