import { existsSync } from "node:fs";
import { CliError } from "../../client/failure.ts";
import type { CatalogUrl } from "../../config/kinds.ts";
import { messageOf } from "../../core/errors.ts";
import { DatabaseSync } from "../../db/sqlite/driver.ts";
import type { Release } from "../release/manifest.ts";

/** @throws CliError where the release could not open the catalog of this machine */
export function checkCatalog(catalogUrl: CatalogUrl, { version, catalog }: Release): void {
  if (catalogUrl.kind !== "sqlite" || !existsSync(catalogUrl.path)) return;
  const { path } = catalogUrl;
  const found = schemaOf(path);
  const { reads_from: oldest, writes: newest } = catalog.sqlite;
  if (found > newest) {
    throw new CliError(
      `${version} cannot open ${path}: the catalog has schema ${found}, and that version knows ${newest}; ` +
        "stay with this version, or restore a backup from before",
    );
  }
  if (found >= oldest || found === 0) return;
  throw new CliError(
    `${version} cannot open ${path}: the catalog has schema ${found}, and that version reads from ${oldest} on; ` +
      "update to a version in between first (--version), and start it once",
  );
}

/** How many migrations the file has seen. */
function schemaOf(path: string): number {
  try {
    const database = new DatabaseSync(path, { readOnly: true });
    try {
      return Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
    } finally {
      database.close();
    }
  } catch (error) {
    throw new CliError(`cannot read the catalog ${path}: ${messageOf(error)}; name another with ENGINE_LOCAL_DB`, 1, {
      cause: error,
    });
  }
}
