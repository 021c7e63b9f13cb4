import type { Clock } from "../../core/clock.ts";
import { uuidV7Source } from "../../core/ids.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { Random } from "../../core/random.ts";
import type { CatalogDatabase } from "../catalog-database.ts";
import { Connection, type SessionOptions } from "./connection.ts";
import { Database } from "./database.ts";
import { toStartupError } from "./errors.ts";
import { migrate, type Migration } from "./migrations.ts";
import { Pool, type PoolOptions } from "./pool.ts";
import { PostgresCatalog } from "./postgres-catalog.ts";
import { PostgresSignals } from "./signals.ts";
import { parsePostgresUrl, showAddress, type ServerAddress } from "./url.ts";

export type PostgresCatalogOptions = {
  /** `postgres://…`: see `parsePostgresUrl`. */
  url: string;
  clock: Clock;
  random: Random;
  /** A server upgrades a catalog of an earlier version. */
  mode: "server" | "admin";
  maxConnections: number;
  /** How long a call waits for a connection. */
  acquireTimeoutMs: number;
  metrics?: Metrics;
  /** For tests: what the time is, in place of the database's own clock. */
  nowMs?: () => number;
  /** For tests: other migrations than the program's. */
  migrations?: readonly Migration[];
};

/** What a write waits for another's lock before it is rolled back and tried again. */
const LOCK_TIMEOUT_MS = 10_000;
/** Writes of a node at a time: they wait for the head's lock one after the other, and more of them gain nothing. */
const MAX_WRITERS = 4;

/** Opens the catalog, creating it where there is none. Rejects with `StartupError`. */
export async function openPostgresCatalog(options: PostgresCatalogOptions): Promise<CatalogDatabase> {
  const { clock, random, nowMs, metrics } = options;
  const address = parsePostgresUrl(options.url);
  const pools = poolsTo(address, options);
  try {
    const migration = {
      name: showAddress(address),
      nowMs: nowMs?.(),
      mayUpgrade: options.mode === "server",
      ...(options.migrations !== undefined && { migrations: options.migrations }),
    };
    await pools.writers.run((connection) => migrate(connection, migration));
  } catch (error) {
    await closePools(pools);
    throw toStartupError(error, address);
  }
  const newCommitId = uuidV7Source(clock, random);
  const database = new Database({ ...pools, clock, random, newCommitId, nowMs, metrics });
  const session = sessionOf(options);
  const signals = new PostgresSignals({
    database,
    clock,
    open: (onNotify) => Connection.open(address, { ...session, onNotify }),
  });
  return new PostgresCatalog(database, signals, async () => {
    await signals.close();
    await closePools(pools);
  });
}

type Pools = { readers: Pool; writers: Pool };

function poolsTo(address: ServerAddress, options: PostgresCatalogOptions): Pools {
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

function sessionOf({ clock, acquireTimeoutMs }: PostgresCatalogOptions): SessionOptions {
  return { clock, connectTimeoutMs: acquireTimeoutMs, lockTimeoutMs: LOCK_TIMEOUT_MS };
}

async function closePools({ readers, writers }: Pools): Promise<void> {
  await Promise.all([readers.close(), writers.close()]);
}
