import { join } from "node:path";
import type { CatalogDatabase } from "../../src/catalog/catalog-database.ts";
import { systemClock } from "../../src/core/clock.ts";
import { Connection } from "../../src/db/postgres/connection.ts";
import { parsePostgresUrl } from "../../src/db/postgres/url.ts";
import type { BenchCluster } from "../support/bench-cluster.ts";
import { openPostgres, openSqlite } from "../support/open-catalog.ts";
import { cpuSecondsOf } from "../support/process-stats.ts";

/** A catalog of its own that this process opens, and what it has cost so far. */
export type MeasuredCatalog = {
  kind: "sqlite" | "postgres";
  catalog: CatalogDatabase;
  /** Of this process, with all its threads. */
  ownCpuSeconds: () => number;
  /** Of PostgreSQL; 0 where the catalog is SQLite, which is part of the process. */
  databaseCpuSeconds: () => number;
  walBytes: () => Promise<number | null>;
};

/** Runs the task with a new catalog in SQLite below `folder`. */
export async function withSqlite<T>(
  folder: string,
  name: string,
  task: (on: MeasuredCatalog) => Promise<T>,
): Promise<T> {
  const catalog = await openSqlite(join(folder, `${name}.db`));
  try {
    return await task({ kind: "sqlite", catalog, ownCpuSeconds, databaseCpuSeconds: () => 0, walBytes: noWal });
  } finally {
    await catalog.close();
  }
}

/** Runs the task with a new database of the cluster's PostgreSQL. Nothing else may use that server meanwhile. */
export async function withPostgres<T>(
  cluster: BenchCluster,
  name: string,
  task: (on: MeasuredCatalog) => Promise<T>,
): Promise<T> {
  const catalog = await openPostgres(await newDatabase(cluster.local.catalogUrl, name));
  const pid = cluster.pids.get("postgres") ?? 0;
  try {
    return await task({
      kind: "postgres",
      catalog,
      ownCpuSeconds,
      databaseCpuSeconds: () => cpuSecondsOf(pid),
      walBytes: async () => (await cluster.counts()).walBytes,
    });
  } finally {
    await catalog.close();
  }
}

async function newDatabase(serverUrl: string, name: string): Promise<string> {
  const session = { clock: systemClock, connectTimeoutMs: 10_000, lockTimeoutMs: 10_000 };
  const connection = await Connection.open(parsePostgresUrl(serverUrl), session);
  try {
    await connection.query(`CREATE DATABASE ${name}`);
  } finally {
    await connection.close();
  }
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

function noWal(): Promise<null> {
  return Promise.resolve(null);
}

function ownCpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
