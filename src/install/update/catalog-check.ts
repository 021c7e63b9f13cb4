import { existsSync } from "node:fs";
import { CliError } from "../../client/failure.ts";
import type { CatalogUrl } from "../../config/kinds.ts";
import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { oldestProgram, type SchemaState } from "../../db/migration.ts";
import { Connection } from "../../db/sqlite/connection.ts";
import { schemaStateOf } from "../../db/sqlite/migrate.ts";
import type { Release } from "../release/manifest.ts";

/**
 * Refuses a release that could not open the catalog of the configuration, by the rule of the program itself: a catalog
 * that is newer than the release says which programs may run on it (`src/db/migration.ts`).
 * @throws CliError
 */
export async function checkCatalog(catalogUrl: CatalogUrl, { version, catalog }: Release, clock: Clock): Promise<void> {
  const { kind } = catalogUrl;
  const state = await stateOf(catalogUrl, version, clock);
  if (state.version === 0) return;
  const name = kind === "sqlite" ? catalogUrl.path : "the catalog in PostgreSQL";
  const { reads_from: readsFrom, writes } = catalog[kind];
  const needed = oldestProgram(kind, state);
  if (needed > writes) {
    throw new CliError(
      `${version} cannot open ${name}: the catalog has schema ${state.version}, which needs a program that knows ` +
        `${needed}, and that version knows ${writes}; stay with this version, or restore a backup from before`,
    );
  }
  if (state.version >= readsFrom) return;
  throw new CliError(
    `${version} cannot open ${name}: the catalog has schema ${state.version}, and that version reads from ${readsFrom} ` +
      "on; update to a version in between first (--version), and start it once",
  );
}

/** Version 0 where there is no catalog yet. */
async function stateOf(catalogUrl: CatalogUrl, version: string, clock: Clock): Promise<SchemaState> {
  try {
    if (catalogUrl.kind === "sqlite") return existsSync(catalogUrl.path) ? stateOfFile(catalogUrl.path) : NONE;
    const { readSchemaState } = await import("../../db/postgres/schema-state.ts");
    return await readSchemaState(catalogUrl.url, clock);
  } catch (error) {
    const where = catalogUrl.kind === "sqlite" ? `${catalogUrl.path}: ` : "";
    const other = catalogUrl.kind === "sqlite" ? "; name another catalog with ENGINE_LOCAL_DB" : "";
    const why = `cannot tell whether ${version} may run on the catalog: ${where}${messageOf(error)}${other}`;
    throw new CliError(why, 1, { cause: error });
  }
}

const NONE: SchemaState = { version: 0, oldest: undefined };
const BUSY_TIMEOUT_MS = 5_000;

function stateOfFile(path: string): SchemaState {
  const connection = new Connection(path, { readOnly: true, busyTimeoutMs: BUSY_TIMEOUT_MS });
  try {
    return schemaStateOf(connection, path);
  } finally {
    connection.close();
  }
}
