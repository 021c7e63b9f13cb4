import type { CatalogDatabase } from "../../src/catalog/catalog-database.ts";
import { MIGRATIONS } from "../../src/catalog/migrations.test-kit.ts";
import { openPostgresCatalog } from "../../src/catalog/postgres/postgres.ts";
import { openSqliteCatalog } from "../../src/catalog/sqlite/sqlite.ts";
import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import { systemRandom } from "../../src/core/random.ts";

/** Opens the catalog in that file as a server does. */
export function openSqlite(path: string): Promise<CatalogDatabase> {
  return openSqliteCatalog({ path, clock: systemClock, log: silentLog, migrations: MIGRATIONS, mode: "server" });
}

/** Opens the catalog in that database as a server does. */
export function openPostgres(url: string, maxConnections = 16): Promise<CatalogDatabase> {
  return openPostgresCatalog({
    url,
    clock: systemClock,
    random: systemRandom,
    migrations: MIGRATIONS,
    mode: "server",
    maxConnections,
    acquireTimeoutMs: 30_000,
  });
}
