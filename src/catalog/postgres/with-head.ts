import type { Connection } from "../../db/postgres/connection.ts";

/** A transaction in which nobody else commits. */
export async function withHead<T>(connection: Connection, work: () => Promise<T>): Promise<T> {
  await connection.script("BEGIN");
  try {
    await connection.query("SELECT 1 FROM engine.head FOR UPDATE");
    const value = await work();
    await connection.script("COMMIT");
    return value;
  } catch (error) {
    if (!connection.isLost) await connection.script("ROLLBACK");
    throw error;
  }
}
