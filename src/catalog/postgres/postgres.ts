import { openPostgres, type PostgresOptions } from "../../db/postgres/open.ts";
import type { CatalogDatabase } from "../catalog-database.ts";
import { PostgresCatalog } from "./postgres-catalog.ts";
import { isCatalogRefusal } from "./refusals.ts";
import { makeFirstSnapshot } from "./snapshots.ts";

/** Opens the catalog, creating it where there is none. Rejects with `StartupError`. */
export async function openPostgresCatalog(options: PostgresOptions): Promise<CatalogDatabase> {
  const { database, signals, upkeep, close } = await openPostgres(options, {
    seed: (connection) => makeFirstSnapshot(connection, options.nowMs?.()),
    isExplainedByCaller: isCatalogRefusal,
  });
  return new PostgresCatalog({ database, signals, upkeep, clock: options.clock, release: close });
}
