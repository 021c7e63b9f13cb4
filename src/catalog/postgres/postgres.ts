import { openPostgres, type PostgresOptions } from "../../db/postgres/open.ts";
import type { CatalogDatabase } from "../catalog-database.ts";
import { schemaNumbersOf } from "../transfer/schema-numbers.ts";
import { PostgresCatalog } from "./postgres-catalog.ts";
import { isCatalogRefusal } from "./refusals.ts";
import { makeFirstSnapshot } from "./snapshots.ts";
import { openTransfer } from "./transfer-read.ts";

/** Opens the catalog, creating it where there is none. Rejects with `StartupError`. */
export async function openPostgresCatalog(options: PostgresOptions): Promise<CatalogDatabase> {
  const { database, signals, upkeep, openSession, close } = await openPostgres(options, {
    seed: (connection) => makeFirstSnapshot(connection, options.nowMs?.()),
    isExplainedByCaller: isCatalogRefusal,
  });
  const openReader = async () => openTransfer(await openSession(), schemaNumbersOf(options.migrations));
  return new PostgresCatalog({ database, signals, upkeep, clock: options.clock, openReader, release: close });
}
