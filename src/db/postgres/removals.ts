import { waitingRemovals, type MigrationStep } from "../migration.ts";
import { serverRow, type HeldRemoval, type RemovalOutcome, type ServerRow } from "../schema-upkeep.ts";
import type { Connection } from "./connection.ts";
import { LOCK, readState } from "./migrate.ts";

/** A removal waits no longer for those who use its tables: whoever comes later would wait behind it. It is tried again. */
const LOCK_TIMEOUT_MS = 2_000;

type IsAlive = (server: ServerRow) => boolean;

/**
 * `SchemaUpkeep.removeUnused`. A server that starts writes its row first and then reads which programs may run; here the
 * table of servers is locked first and then read: so either the row is seen here, or the removal there.
 */
export async function removeUnused(
  connection: Connection,
  steps: readonly MigrationStep[],
  isAlive: IsAlive,
): Promise<RemovalOutcome> {
  if ((await waiting(connection, steps)).length === 0) return { removed: [] };
  await connection.script(`BEGIN; SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
  try {
    const outcome = await removeLocked(connection, steps, isAlive);
    await connection.script("COMMIT");
    return outcome;
  } catch (error) {
    if (!connection.isLost) await connection.script("ROLLBACK");
    throw error;
  }
}

async function removeLocked(
  connection: Connection,
  steps: readonly MigrationStep[],
  isAlive: IsAlive,
): Promise<RemovalOutcome> {
  // Not in the way of a server that migrates, nor behind it.
  const [lock] = await connection.query(`SELECT pg_try_advisory_xact_lock(${LOCK}) AS taken`);
  if (lock?.["taken"] !== true) return { removed: [] };
  await connection.script("LOCK TABLE engine.servers IN SHARE ROW EXCLUSIVE MODE");
  const servers = (await connection.query("SELECT * FROM engine.servers ORDER BY id")).map(serverRow);
  const removed: string[] = [];
  for (const step of await waiting(connection, steps)) {
    const held = heldBy(step, servers, isAlive);
    if (held !== undefined) return { removed, held };
    await connection.script(step.text);
    removed.push(step.name);
  }
  return { removed };
}

function heldBy(step: MigrationStep, servers: readonly ServerRow[], isAlive: IsAlive): HeldRemoval | undefined {
  const older = servers.filter((server) => server.knownSchema < step.number && isAlive(server));
  return older.length === 0 ? undefined : { migration: step.name, servers: older };
}

async function waiting(connection: Connection, steps: readonly MigrationStep[]): Promise<MigrationStep[]> {
  const state = await readState(connection);
  if (state === undefined) throw new Error("the catalog no longer says which schema it has");
  return waitingRemovals(steps, state);
}
