import { startPostgres, type PostgresServer } from "../peers/postgres-server.ts";

/** Rejects with a sentence where there is none. */
export async function requiredPostgres(name: string): Promise<PostgresServer> {
  const server = await startPostgres();
  if (server === undefined) throw new Error(`${name} needs PostgreSQL on this machine (Debian: postgresql)`);
  return server;
}
