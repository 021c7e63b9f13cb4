import type { Clock } from "../../../core/clock.ts";
import type { Random } from "../../../core/random.ts";
import type { RecordStore, RecordValue } from "../../../db/records.ts";
import type { CatalogUrl } from "../../../config/kinds.ts";
import type { Connection as PostgresConnection } from "../../../db/postgres/connection.ts";

/** Rows by column name, and rows as arrays where there are very many. */
export type RecordReader = Pick<RecordStore, "rows"> & {
  values(sql: string, values?: readonly RecordValue[]): Promise<unknown[][]>;
};

/**
 * Reads records on a thread of its own: with a connection to the file, or with sessions of the server, that are this
 * thread's alone. Nothing is written through it.
 */
export async function openRecordSource(
  source: RecordSource,
  { clock, random }: { clock: Clock; random: Random },
): Promise<RecordReader> {
  if (source.catalog.kind === "sqlite") return await openFile(source.catalog.path, clock);
  return await openServer(source.catalog.url, source.acquireTimeoutMs, { clock, random });
}

export type RecordSource = { catalog: CatalogUrl; acquireTimeoutMs: number };

const BUSY_TIMEOUT_MS = 1_000;

async function openFile(path: string, clock: Clock): Promise<RecordReader> {
  const { openConnection } = await import("../../../db/sqlite/open.ts");
  const { readRecords, readRecordValues } = await import("../../../db/sqlite/records.ts");
  const { toDatabaseError } = await import("../../../db/sqlite/errors.ts");
  const connection = openConnection({ path, part: "reader", busyTimeoutMs: BUSY_TIMEOUT_MS });
  const guarded = <T>(read: () => T): T => {
    try {
      return read();
    } catch (error) {
      throw toDatabaseError(error, path);
    }
  };
  return {
    rows: async (sql, values = []) => guarded(() => readRecords(connection, clock.nowMs(), { sql, values })),
    values: async (sql, values = []) => guarded(() => readRecordValues(connection, clock.nowMs(), { sql, values })),
  };
}

/** One reads pages while an index is built, the others answer. */
const SESSIONS = 3;
const LOCK_TIMEOUT_MS = 10_000;
/** Of one statement. */
const CALL_LIMIT_MS = 60_000;

async function openServer(
  url: string,
  acquireTimeoutMs: number,
  { clock, random }: { clock: Clock; random: Random },
): Promise<RecordReader> {
  const { Connection } = await import("../../../db/postgres/connection.ts");
  const { readThrough } = await import("../../../db/postgres/database.ts");
  const { toDatabaseError } = await import("../../../db/postgres/errors.ts");
  const { Pool } = await import("../../../db/postgres/pool.ts");
  const { translate } = await import("../../../db/postgres/records.ts");
  const { parsePostgresUrl } = await import("../../../db/postgres/url.ts");
  const address = parsePostgresUrl(url);
  const session = { clock, connectTimeoutMs: acquireTimeoutMs, lockTimeoutMs: LOCK_TIMEOUT_MS };
  const open = () => Connection.open(address, session);
  const pool = new Pool({ open, maxConnections: SESSIONS, acquireTimeoutMs, clock, random, name: "read" });
  const run = async <T>(read: (connection: PostgresConnection) => Promise<T>): Promise<T> =>
    await readThrough(pool, read, { limitMs: CALL_LIMIT_MS, told: toDatabaseError });
  return {
    rows: async (sql, values = []) => {
      const { text, parameters } = translate({ sql, values }, null);
      return await run((connection) => connection.query(text, parameters));
    },
    values: async (sql, values = []) => {
      const { text, parameters } = translate({ sql, values }, null);
      return await run((connection) => connection.values(text, parameters));
    },
  };
}
