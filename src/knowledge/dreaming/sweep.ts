import type { Catalog } from "../../catalog/catalog.ts";
import type { RecordStore } from "../../db/records.ts";
import { deleteSome } from "../memory/sweep/delete-some.ts";
import { droppedOf } from "../memory/sweep/dropped.ts";
import { sweepRemoteStatement } from "./remote/store.ts";
import { settleStaleStatement } from "./runs.ts";

type SweepDeps = { catalog: Pick<Catalog, "databases">; records: RecordStore };

const RUNS_AT_ONCE = 100;
/** A run of a duty takes a minute or two; it is not looked at again after that. */
const STALE_MS = 15 * 60_000;
/** Runs that have ended, of each database and kind. */
const KEPT_RUNS = 1_000;
/** Older ones that one sweep deletes; the next goes on. */
const OLD_RUNS_AT_ONCE = 1_000;

const DATABASES =
  "SELECT database_id FROM dreaming_runs UNION SELECT database_id FROM dreaming_watermarks ORDER BY database_id";
const ENDED = "status IN ('done', 'failed', 'cancelled')";

/**
 * Ends runs whose process is gone, and deletes old runs, and those of dropped databases; resolves to how many of the last
 * that were.
 */
export async function sweepDroppedRuns({ catalog, records }: SweepDeps, signal: AbortSignal): Promise<number> {
  await records.write(settleStaleStatement(STALE_MS));
  await records.write(sweepRemoteStatement());
  const swept = await sweepDropped({ catalog, records }, signal);
  await sweepOld(records, signal);
  return swept;
}

async function sweepDropped({ catalog, records }: SweepDeps, signal: AbortSignal): Promise<number> {
  const known = (await records.rows(DATABASES)).map((row) => Number(row["database_id"]));
  let swept = 0;
  for (const databaseId of await droppedOf(catalog, known)) {
    for (;;) {
      const sql = "SELECT id FROM dreaming_runs WHERE database_id = ? ORDER BY id LIMIT ?";
      const ids = (await records.rows(sql, [databaseId, RUNS_AT_ONCE])).map((row) => String(row["id"]));
      for (const id of ids) await deleteRun(records, id, signal);
      swept += ids.length;
      if (ids.length < RUNS_AT_ONCE) break;
    }
    await records.write({ sql: "DELETE FROM dreaming_watermarks WHERE database_id = ?", values: [databaseId] });
  }
  return swept;
}

/** Keeps the newest runs of each database and kind. */
async function sweepOld(records: RecordStore, signal: AbortSignal): Promise<void> {
  const many = "SELECT database_id, kind FROM dreaming_runs GROUP BY database_id, kind HAVING count(*) > ?";
  // What is not kept, oldest first, is what comes before the oldest one that is.
  const old =
    `SELECT id FROM dreaming_runs WHERE database_id = ? AND kind = ? AND ${ENDED} AND id < (SELECT id FROM dreaming_runs ` +
    `WHERE database_id = ? AND kind = ? AND ${ENDED} ORDER BY id DESC LIMIT 1 OFFSET ?) ORDER BY id LIMIT ?`;
  let left = OLD_RUNS_AT_ONCE;
  for (const { database_id: id, kind: kindName } of await records.rows(many, [KEPT_RUNS])) {
    if (left === 0) return;
    const group = [Number(id), String(kindName)];
    const runs = await records.rows(old, [...group, ...group, KEPT_RUNS - 1, left]);
    for (const run of runs) await deleteRun(records, String(run["id"]), signal);
    left -= runs.length;
  }
}

/** What is known of its changes goes first: a sweep that dies meanwhile finds the run again. */
async function deleteRun(records: RecordStore, id: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const changes = { table: "dreaming_changes", key: ["record_kind", "record_id"], where: { run_id: id } };
  while ((await deleteSome(records, changes)).isMore) signal.throwIfAborted();
  await records.write({ sql: "DELETE FROM dreaming_runs WHERE id = ?", values: [id] });
}
