import { EngineError } from "../core/errors.ts";
import type { StorageDeps } from "../feature/feature.ts";
import type { Duty } from "../feature/lease-loop.ts";
import { openTablesOf } from "./open-tables.ts";

/** Tables that were loaded within it are kept ready. */
const FOLLOWED_MS = 86_400_000;

/** Lists the files of tables that clients load as merges change them, so that no client waits for it. */
export function createFollower(deps: StorageDeps): Duty {
  const tables = openTablesOf(deps);
  return async ({ signal }) => {
    const { catalog, log } = deps;
    const ids = new Set(await tables.announced.tablesLoadedSince((await catalog.nowMs()) - FOLLOWED_MS));
    if (ids.size === 0) return { isIdle: true };
    let isIdle = true;
    for (const table of await catalog.allTables()) {
      if (!ids.has(table.id)) continue;
      signal.throwIfAborted();
      try {
        if (await tables.follow(table, signal)) isIdle = false;
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof EngineError && error.code === "table_not_found") continue;
        log.warn({ err: error, table: `${table.database}.${table.name}` }, "the files of an open table are not listed");
      }
    }
    return { isIdle };
  };
}
