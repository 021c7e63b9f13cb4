import { findPostgresPrograms } from "../../src/db/postgres/server-programs.ts";
import { startTestServer, type TestServer } from "../../src/catalog/postgres/postgres.test-kit.ts";

/** A PostgreSQL of this machine's packages, on a folder of its own, as it comes: fsync on, every commit synced. */
export type PostgresServer = Pick<TestServer, "port" | "pid" | "createDatabase" | "stop">;

/** The same; rejects with a sentence, for the benchmark of that name, where PostgreSQL is not installed. */
export async function requiredPostgres(name: string): Promise<PostgresServer> {
  const server = await startPostgres();
  if (server === undefined) throw new Error(`${name} needs PostgreSQL on this machine (Debian: postgresql)`);
  return server;
}

/** With the superuser `bench`. Undefined, with a line, where PostgreSQL is not installed. */
export async function startPostgres(): Promise<PostgresServer | undefined> {
  const programs = findPostgresPrograms()?.folder;
  if (programs === undefined) {
    console.log("postgres: skipped, it is not installed (Debian: postgresql)");
    return undefined;
  }
  return startTestServer(programs, { fsync: "on", log_min_messages: "fatal" }, [], "bench");
}
