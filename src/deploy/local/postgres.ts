import { CliError } from "../../client/failure.ts";
import { OLDEST_POSTGRES } from "../../db/postgres/server-check.ts";
import { findPostgresPrograms, type PostgresPrograms } from "../../db/postgres/server-programs.ts";

export const POSTGRES_USER = "engine";
export const POSTGRES_SETTINGS = { max_connections: "300" } as const;

/** @throws CliError that says what to install */
export function requirePostgresPrograms(path: string): PostgresPrograms {
  const found = findPostgresPrograms(path);
  const otherwise = "or name a server by ENGINE_CATALOG_URL when the deployment is made (`engine deploy init`)";
  if (found === undefined) {
    throw new CliError(
      `no PostgreSQL was found in PATH or /usr/lib/postgresql: install it (Debian: apt-get install postgresql), ${otherwise}`,
    );
  }
  if (found.major >= OLDEST_POSTGRES) return found;
  throw new CliError(
    `PostgreSQL in ${found.folder} is of version ${found.major}: install version ${OLDEST_POSTGRES} or newer, ${otherwise}`,
  );
}
