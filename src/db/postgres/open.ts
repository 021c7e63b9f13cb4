import type { Clock } from "../../core/clock.ts";
import { uuidV7Source } from "../../core/ids.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { Random } from "../../core/random.ts";
import { migrationSteps, type Migration } from "../migration.ts";
import type { SchemaUpkeep } from "../schema-upkeep.ts";
import type { Signals } from "../signals.ts";
import { Connection, type SessionOptions } from "./connection.ts";
import { Database, type DatabaseOptions } from "./database.ts";
import { toStartupError, unavailable } from "./errors.ts";
import { migrate, type MigrateOptions } from "./migrate.ts";
import { removeUnused } from "./removals.ts";
import { Pool, type PoolOptions } from "./pool.ts";
import { PostgresSignals } from "./signals.ts";
import { parsePostgresUrl, showAddress, type ServerAddress } from "./url.ts";

export type PostgresOptions = {
  /** `postgres://…`: see `parsePostgresUrl`. */
  url: string;
  clock: Clock;
  random: Random;
  /** A server upgrades a database of an earlier version. */
  mode: "server" | "admin";
  maxConnections: number;
  /** How long a call waits for a connection. */
  acquireTimeoutMs: number;
  /** Those of the whole program. */
  migrations: readonly Migration[];
  metrics?: Metrics;
  /** For tests: what the time is, in place of the database's own clock. */
  nowMs?: () => number;
};

/** What the owner of the database's first tables adds. */
export type FirstTables = Pick<MigrateOptions, "seed"> & Pick<DatabaseOptions, "isExplainedByCaller">;

export type OpenedPostgres = {
  database: Database;
  signals: Signals;
  /** A session of the caller's own, beside the pools. Rejects with `unavailable`. */
  openSession: () => Promise<Connection>;
  upkeep: SchemaUpkeep;
  close: () => Promise<void>;
};

/** What a write waits for another's lock before it is rolled back and tried again. */
const LOCK_TIMEOUT_MS = 10_000;
/** Writes of a node at a time: they wait for the head's lock one after the other, and more of them gain nothing. */
const MAX_WRITERS = 4;

/** Opens the database, creating its schema where there is none. Rejects with `StartupError`. */
export async function openPostgres(options: PostgresOptions, first: FirstTables): Promise<OpenedPostgres> {
  const { clock, random, nowMs, metrics, migrations } = options;
  const address = parsePostgresUrl(options.url);
  const pools = poolsTo(address, options);
  let found: number;
  try {
    const migration = {
      name: showAddress(address),
      mayUpgrade: options.mode === "server",
      migrations,
      seed: first.seed,
    };
    found = await pools.writers.run((connection) => migrate(connection, migration));
  } catch (error) {
    await closePools(pools);
    throw toStartupError(error, address);
  }
  const newCommitId = uuidV7Source(clock, random);
  const { isExplainedByCaller } = first;
  const database = new Database({ ...pools, clock, random, newCommitId, nowMs, metrics, isExplainedByCaller });
  const session = sessionOf(options);
  const signals = new PostgresSignals({
    database,
    clock,
    open: (onNotify) => Connection.open(address, { ...session, onNotify }),
  });
  const close = async () => {
    await signals.close();
    await closePools(pools);
  };
  const openSession = async (): Promise<Connection> => {
    try {
      return await Connection.open(address, session);
    } catch (error) {
      throw unavailable(error);
    }
  };
  const steps = migrationSteps("postgres", migrations);
  const upkeep: SchemaUpkeep = {
    known: steps.length,
    found,
    hasRemovals: steps.some(({ removes }) => removes),
    removeUnused: (isAlive) => pools.writers.run((connection) => removeUnused(connection, steps, isAlive)),
  };
  return { database, signals, upkeep, openSession, close };
}

type Pools = { readers: Pool; writers: Pool };

function poolsTo(address: ServerAddress, options: PostgresOptions): Pools {
  const { clock, random, acquireTimeoutMs, maxConnections, metrics } = options;
  const session = sessionOf(options);
  const open = () => Connection.open(address, session);
  const common = { open, acquireTimeoutMs, clock, random, metrics };
  const poolOf = (name: PoolOptions["name"], most: number) => new Pool({ ...common, name, maxConnections: most });
  if (maxConnections === 1) {
    const only = poolOf("all", 1);
    return { readers: only, writers: only };
  }
  const most = Math.min(MAX_WRITERS, Math.floor(maxConnections / 2));
  return { readers: poolOf("read", maxConnections - most), writers: poolOf("write", most) };
}

function sessionOf({ clock, acquireTimeoutMs }: PostgresOptions): SessionOptions {
  return { clock, connectTimeoutMs: acquireTimeoutMs, lockTimeoutMs: LOCK_TIMEOUT_MS };
}

async function closePools({ readers, writers }: Pools): Promise<void> {
  await Promise.all([readers.close(), writers.close()]);
}
