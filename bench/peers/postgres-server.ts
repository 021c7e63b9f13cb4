import { findPostgresPrograms } from "../../src/db/postgres/server-programs.ts";
import { startTestServer, type TestServer } from "../../src/catalog/postgres/postgres.test-kit.ts";

/** A PostgreSQL of this machine's packages, on a folder of its own, as it comes: fsync on, every commit synced. */
export type PostgresServer = Pick<TestServer, "port" | "pid" | "createDatabase" | "stop">;

/** With the superuser `bench`. Undefined, with a line, where PostgreSQL is not installed. */
export async function startPostgres(): Promise<PostgresServer | undefined> {
  const programs = findPostgresPrograms()?.folder;
  if (programs === undefined) {
    console.log("postgres: skipped, it is not installed (Debian: postgresql)");
    return undefined;
  }
  return startTestServer(programs, { fsync: "on", log_min_messages: "fatal" }, [], "bench");
}
