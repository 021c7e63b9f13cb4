import { resolve } from "node:path";
import type { CatalogDatabase } from "../catalog-database.ts";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { schemaNumbersOf } from "../transfer/schema-numbers.ts";
import type { Migration } from "../../db/migration.ts";
import type { Connection } from "../../db/sqlite/connection.ts";
import { toStartupError } from "../../db/sqlite/errors.ts";
import { LogFile } from "../../db/sqlite/log-file.ts";
import { acquireServerLock, type ServerLock } from "../../db/sqlite/lock.ts";
import type { MigrateOptions } from "../../db/sqlite/migrate.ts";
import { openConnection, prepareFile, prepareSchema, sqliteUpkeep } from "../../db/sqlite/open.ts";
import type { Reader } from "./reader.ts";
import { SqliteCatalog, type OpenShared, type Parts } from "./sqlite-catalog.ts";
import { ThreadClient, type ThreadKind } from "../../db/sqlite/thread-client.ts";
import { makeFirstSnapshot } from "./snapshots.ts";
import { CATALOG_ERRORS } from "./thread-errors.ts";
import type { Writer } from "./writer.ts";

/**
 * The embedded catalog: one SQLite file in WAL mode.
 *
 *     caller's thread    point look-ups, and a few rows that somebody waits for: tens of microseconds, the fsync not counted
 *     writer's thread    every other write, one transaction per call, fsynced before it is answered
 *     reader's thread    what may be large: lists of tables and of extents
 *
 * `verify` has a thread of its own for as long as it runs. An administrative process may write beside the server; what
 * it commits is seen at once, since every look-up reads the file and what is cached is keyed by a version read from it.
 */
export type SqliteCatalogOptions = {
  /** The file, made with its folder unless it exists. `-wal`, `-shm`, `.lock` and `.pid` lie beside it. */
  path: string;
  clock: Clock;
  log: Log;
  /** Those of the whole program. */
  migrations: readonly Migration[];
  /** A server takes the lock that keeps a second one out, and upgrades a catalog of an earlier version. */
  mode: "server" | "admin";
  /** How long a write waits for another process's. */
  busyTimeoutMs?: number;
  /** Called once when a thread of the catalog dies, or cannot sync; every call fails from then on. */
  onFailure?: (reason: Error) => void;
};

const CATALOG_THREAD: ThreadKind = {
  file: new URL("catalog-thread.ts", import.meta.url),
  isolate: "catalog",
  errors: CATALOG_ERRORS,
};

const BUSY_TIMEOUT_MS = 15_000;

/** What a look-up on the caller's thread waits at most; in WAL mode it waits only while another process recovers the log. */
const LOOKUP_BUSY_TIMEOUT_MS = 1_000;
/** Opens the catalog, creating it where there is none. Rejects with `StartupError`. */
export async function openSqliteCatalog(options: SqliteCatalogOptions): Promise<CatalogDatabase> {
  return (await openSqliteParts(options)).catalog;
}

type ThreadParts = Parts & { writer: ThreadClient<Writer>; reader: ThreadClient<Reader> };

/** The catalog with its parts, for tests that break one. */
export async function openSqliteParts(
  options: SqliteCatalogOptions,
): Promise<{ catalog: CatalogDatabase; parts: ThreadParts }> {
  let path = resolve(options.path);
  let lock: ServerLock | undefined;
  let catalog: SqliteCatalog | undefined;
  const onDeath = (reason: Error) => {
    options.log.fatal({ err: reason, path }, "the catalog has failed");
    catalog?.fail(reason);
    options.onFailure?.(reason);
  };
  try {
    path = prepareFile(options.path);
    if (options.mode === "server") lock = acquireServerLock(path);
    const open: OpenShared = { path, busyTimeoutMs: options.busyTimeoutMs ?? BUSY_TIMEOUT_MS };
    const schema: MigrateOptions = {
      path,
      nowMs: options.clock.nowMs(),
      mayUpgrade: options.mode === "server",
      migrations: options.migrations,
      seed: makeFirstSnapshot,
    };
    const parts = await openParts(open, schema, lock, onDeath);
    catalog = new SqliteCatalog(parts, options.clock, onDeath);
    return { catalog, parts };
  } catch (error) {
    lock?.release();
    throw toStartupError(error, path);
  }
}

// The threads start while this one makes the file what they expect. Its connection stays until theirs are there: the
// last one to close would fold the log into the file.
async function openParts(
  open: OpenShared,
  schema: MigrateOptions,
  lock: ServerLock | undefined,
  onDeath: (reason: Error) => void,
): Promise<ThreadParts> {
  const writer = new ThreadClient<Writer>("catalog-writer", CATALOG_THREAD, onDeath);
  const reader = new ThreadClient<Reader>("catalog-reader", CATALOG_THREAD, onDeath);
  let first: Connection | undefined;
  try {
    first = openConnection({ ...open, part: "writer" });
    const found = prepareSchema(first, schema);
    await writer.open({ ...open, part: "writer" });
    await reader.open({ ...open, part: "reader" });
    const local = openConnection({ ...open, part: "caller", busyTimeoutMs: LOOKUP_BUSY_TIMEOUT_MS });
    const log = new LogFile(open.path);
    const numbers = schemaNumbersOf(schema.migrations);
    const upkeep = sqliteUpkeep(schema.migrations, found);
    return { open, lock, writer, reader, local, log, schema: numbers, openVerifier: () => openVerifier(open), upkeep };
  } catch (error) {
    await Promise.all([reader.terminate(), writer.terminate()]);
    throw error;
  } finally {
    first?.close();
  }
}

async function openVerifier(open: OpenShared): Promise<ThreadClient<Reader>> {
  const verifier = new ThreadClient<Reader>("catalog-verifier", CATALOG_THREAD, () => undefined);
  try {
    await verifier.open({ ...open, part: "reader" });
    return verifier;
  } catch (error) {
    await verifier.terminate();
    throw error;
  }
}
