import { join } from "node:path";
import type { CatalogDatabase } from "../../src/catalog/catalog-database.ts";
import { MIGRATIONS } from "../../src/catalog/migrations.test-kit.ts";
import { openSqliteCatalog } from "../../src/catalog/sqlite/sqlite.ts";
import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";

/** Opens the catalog of a home for as long as the task takes. One that a server uses is opened as `admin`. */
export async function withCatalog<T>(
  home: string,
  task: (catalog: CatalogDatabase) => Promise<T>,
  mode: "server" | "admin" = "server",
): Promise<T> {
  const catalog = await openSqliteCatalog({
    path: join(home, "catalog.db"),
    clock: systemClock,
    log: silentLog,
    migrations: MIGRATIONS,
    mode,
    onFailure: (reason) => {
      throw reason;
    },
  });
  try {
    return await task(catalog);
  } finally {
    await catalog.close();
  }
}
