import { existsSync } from "node:fs";
import type { Catalog, DatabaseRecord, TableRecord } from "../catalog/catalog.ts";
import type { CatalogDatabase } from "../catalog/catalog-database.ts";
import type { Config } from "../config/options.ts";
import { createLog, type Log } from "../core/log.ts";
import { nearest } from "../core/nearest.ts";
import { systemRandom } from "../core/random.ts";
import type { CliContext, ContextDeps } from "./context.ts";
import { CliError } from "./failure.ts";

export type CatalogFlags = { catalogUrl?: string };

export const CATALOG_FLAG = ["--catalog-url <url>", "catalog to work on (ENGINE_CATALOG_URL)"] as const;

/**
 * Runs a task on the catalog itself, beside a server that may be running on it and sees the changes at once.
 * A command that only reads makes no catalog where there is none.
 */
export async function withCatalog<T>(
  context: CliContext,
  flags: CatalogFlags,
  access: "read" | "write",
  task: (catalog: CatalogDatabase) => Promise<T>,
): Promise<T> {
  const { config, origins } = await context.loadConfig({ catalogUrl: flags.catalogUrl });
  // A command tells by its exit and its message how it went; who wants the log as well asks for it.
  const log = createLog(origins.logLevel === "default" ? "silent" : config.logLevel);
  const catalog = await openCatalog(config, context.deps, log, access);
  try {
    return await task(catalog);
  } finally {
    await catalog.close();
  }
}

async function openCatalog(
  config: Config,
  deps: Pick<ContextDeps, "clock" | "migrations">,
  log: Log,
  access: "read" | "write",
): Promise<CatalogDatabase> {
  const { catalogUrl } = config;
  const { clock } = deps;
  if (catalogUrl.kind === "postgres") {
    const { openPostgresCatalog } = await import("../catalog/postgres/postgres.ts");
    const { url } = catalogUrl;
    const acquireTimeoutMs = config.catalogAcquireTimeoutSecs * 1000;
    // One connection reads, one writes.
    return openPostgresCatalog({
      url,
      clock,
      random: systemRandom,
      migrations: await deps.migrations(),
      mode: "admin",
      maxConnections: 2,
      acquireTimeoutMs,
    });
  }
  if (access === "read" && !existsSync(catalogUrl.path)) {
    const next = "start an engine with `engine serve`, or name another with --catalog-url";
    throw new CliError(`there is no catalog at ${catalogUrl.path}; ${next}`);
  }
  const { openSqliteCatalog } = await import("../catalog/sqlite/sqlite.ts");
  return openSqliteCatalog({ path: catalogUrl.path, clock, log, migrations: await deps.migrations(), mode: "admin" });
}

/** @throws CliError naming the database that was perhaps meant. */
export async function requireDatabase(catalog: Catalog, name: string): Promise<DatabaseRecord> {
  const database = await catalog.database(name);
  if (database !== undefined) return database;
  const known = (await catalog.databases()).map((record) => record.name);
  throw new CliError(`there is no database ${name}${hint(name, known, "engine create-database NAME")}`);
}

/** @throws CliError naming the table that was perhaps meant. */
export async function requireTable(catalog: Catalog, database: string, name: string): Promise<TableRecord> {
  await requireDatabase(catalog, database);
  const table = await catalog.table(database, name);
  if (table !== undefined) return table;
  const known = (await catalog.tables(database)).map((record) => record.name);
  throw new CliError(`there is no table ${name} in ${database}${hint(name, known, "engine create-table")}`);
}

function hint(name: string, known: readonly string[], create: string): string {
  const meant = nearest(name, known);
  return meant === undefined ? `; \`${create}\` makes one` : `; did you mean ${meant}?`;
}
