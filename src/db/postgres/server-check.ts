import { StartupError } from "../../core/errors.ts";
import type { Clock } from "../../core/clock.ts";
import { Connection } from "./connection.ts";
import { toStartupError } from "./errors.ts";
import { parsePostgresUrl, showAddress, type ServerAddress } from "./url.ts";

/** The oldest version that PostgreSQL's makers still mended when this was written. */
export const OLDEST_POSTGRES = 14;

type Session = Pick<Connection, "query">;

/** @throws StartupError for a database in another encoding than UTF-8; `name` says which one it is */
export async function checkEncoding(session: Session, name: string): Promise<void> {
  const [row] = await session.query("SELECT current_setting('server_encoding') AS encoding");
  const encoding = String(row?.["encoding"]);
  if (encoding === "UTF8") return;
  throw new StartupError(
    `the database ${name} is not in UTF-8 but ${encoding}: create one with ENCODING 'UTF8' TEMPLATE template0`,
  );
}

/** @throws StartupError for a server that is older than `OLDEST_POSTGRES` */
export async function checkVersion(session: Session, name: string): Promise<void> {
  const [row] = await session.query("SELECT current_setting('server_version') AS version");
  const version = String(row?.["version"]);
  if (Number.parseInt(version, 10) >= OLDEST_POSTGRES) return;
  throw new StartupError(
    `the server of ${name} is PostgreSQL ${version}: name one of version ${OLDEST_POSTGRES} or newer`,
  );
}

async function checkRights(session: Session, address: ServerAddress): Promise<void> {
  const [row] = await session.query(
    "SELECT has_database_privilege(current_database(), 'CREATE') OR to_regnamespace('engine') IS NOT NULL AS may",
  );
  if (row?.["may"] === true) return;
  const { user, database } = address;
  throw new StartupError(
    `the catalog ${showAddress(address)} may not be changed by ${user}: let the user create schemas ` +
      `(GRANT CREATE ON DATABASE ${database} TO ${user})`,
  );
}

/** Looks whether a catalog may be kept there, and changes nothing. @throws StartupError that says what to do */
export async function checkServer(url: string, options: { clock: Clock; timeoutMs: number }): Promise<void> {
  const address = parsePostgresUrl(url);
  const { clock, timeoutMs } = options;
  try {
    const session = await Connection.open(address, {
      clock,
      connectTimeoutMs: timeoutMs,
      lockTimeoutMs: timeoutMs,
    });
    try {
      await checkVersion(session, showAddress(address));
      await checkEncoding(session, showAddress(address));
      await checkRights(session, address);
    } finally {
      await session.close();
    }
  } catch (error) {
    throw toStartupError(error, address);
  }
}
