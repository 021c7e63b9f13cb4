import type { Catalog, TableRecord } from "../catalog/catalog.ts";
import type { Log } from "../core/log.ts";
import type { Metrics } from "../core/metrics.ts";
import type { Duty, DutyTurn } from "../feature/lease-loop.ts";
import { COMPACTION_METRICS } from "./metrics.ts";

/**
 * Retention: extents whose rows are all older than their table keeps them are soft-deleted. Whole extents only, so a row
 * stays for as long as its extent has one that is young enough; by the catalog's time, so that no node's clock deletes
 * anything early. `deletion.ts` frees the bytes later.
 */
export type RetentionPorts = {
  catalog: Pick<Catalog, "allTables" | "nowMs" | "expiredExtents" | "endExtents">;
  log: Log;
  metrics: Metrics;
};

const DAY_MS = 86_400_000;
/** Ended in one transaction and with one snapshot. */
const BATCH_EXTENTS = 500;

export function createRetention(ports: RetentionPorts): Duty {
  return async (turn) => {
    const nowMs = await ports.catalog.nowMs();
    for (const table of await ports.catalog.allTables()) {
      const { retentionDays } = table;
      if (retentionDays === undefined) continue;
      await endExpired(ports, table, nowMs - retentionDays * DAY_MS, turn);
    }
  };
}

async function endExpired(
  { catalog, log, metrics }: RetentionPorts,
  table: TableRecord,
  beforeMs: number,
  { lease, signal }: DutyTurn,
): Promise<void> {
  let extents = 0;
  let rows = 0;
  for (let more = true; more;) {
    signal.throwIfAborted();
    const expired = await catalog.expiredExtents(table.id, beforeMs, BATCH_EXTENTS);
    const ids = expired.map(({ id }) => id);
    // What a merge replaced meanwhile is not alive and stays out; its successor is found in the next round.
    const ended = await catalog.endExtents(table.id, ids, lease);
    extents += ended.length;
    rows += ended.reduce((sum, extent) => sum + extent.rows, 0);
    COMPACTION_METRICS.of(metrics).retentionExtents.inc(ended.length);
    more = expired.length === BATCH_EXTENTS;
  }
  if (extents === 0) return;
  const { database, name, retentionDays } = table;
  log.info({ database, table: name, retentionDays, extents, rows }, "extents are past their retention");
}
