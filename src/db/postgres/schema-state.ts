import type { Clock } from "../../core/clock.ts";
import type { SchemaState } from "../migration.ts";
import { Connection } from "./connection.ts";
import { toStartupError } from "./errors.ts";
import { schemaStateOf } from "./migrate.ts";
import { parsePostgresUrl, showAddress } from "./url.ts";

const TIMEOUT_MS = 10_000;

/** What the catalog at `postgres://…` says of its schema; changes nothing. Rejects with `StartupError`. */
export async function readSchemaState(url: string, clock: Clock): Promise<SchemaState> {
  const address = parsePostgresUrl(url);
  try {
    const session = { clock, connectTimeoutMs: TIMEOUT_MS, lockTimeoutMs: TIMEOUT_MS };
    const connection = await Connection.open(address, session);
    try {
      return await schemaStateOf(connection, showAddress(address));
    } finally {
      await connection.close();
    }
  } catch (error) {
    throw toStartupError(error, address);
  }
}
