import type { Catalog } from "../../catalog/catalog.ts";
import type { Log } from "../../core/log.ts";
import type { RecordStore } from "../../db/records.ts";
import { ticksOf } from "../../fabric/cron.ts";
import { readSettings, type MemorySettings } from "../memory/settings.ts";
import type { DreamQueue } from "./queue.ts";
import type { PipelineRuns } from "./runs.ts";

type DreamSchedule = NonNullable<MemorySettings["dreaming"]["schedule"]>;

/** When the next dream of a schedule is due: kept as a watermark, which one node can advance. */
type Due = Pick<DreamSchedule, "cron" | "zone"> & { next_ms: number | null };

export type DreamSchedulesDeps = {
  catalog: Pick<Catalog, "databases" | "nowMs">;
  records: RecordStore;
  runs: PipelineRuns;
  queue: Pick<DreamQueue, "request">;
  log: Log;
};

const WITH_SCHEDULE = `SELECT database_id FROM memory_settings WHERE settings LIKE '%"cron":%' ORDER BY database_id`;

/**
 * Queues the dreams that the settings of memories schedule. A tick makes one dream, whichever node looks and whoever dies,
 * for its place is advanced in the transaction that stores the job. Ticks that nobody was there for make one dream
 * together; a tick that finds a dream under way waits for its end.
 */
export class DreamSchedules {
  readonly #deps: DreamSchedulesDeps;

  constructor(deps: DreamSchedulesDeps) {
    this.#deps = deps;
  }

  /** Resolves to how many dreams it queued. */
  async fireDue(): Promise<number> {
    const { catalog, records, log } = this.#deps;
    const rows = await records.rows(WITH_SCHEDULE);
    if (rows.length === 0) return 0;
    const names = new Map((await catalog.databases()).map(({ id, name }) => [id, name]));
    const nowMs = await catalog.nowMs();
    let queued = 0;
    for (const row of rows) {
      const databaseId = Number(row["database_id"]);
      const database = names.get(databaseId);
      if (database === undefined) continue;
      try {
        if (await this.#fire({ databaseId, database }, nowMs)) queued++;
      } catch (error) {
        // One that cannot be fired must not keep the others from it.
        log.error({ err: error, database }, "the schedule of dreams could not be followed");
      }
    }
    return queued;
  }

  async #fire({ databaseId, database }: { databaseId: number; database: string }, nowMs: number): Promise<boolean> {
    const { records, runs, queue } = this.#deps;
    const { schedule } = (await readSettings(records, databaseId)).dreaming;
    if (schedule === null) return false;
    const { cron, zone, mode } = schedule;
    const from = await runs.watermark(databaseId, "dreaming_schedule");
    const due = from.position as Due | undefined;
    const next: Due = { cron, zone, next_ms: ticksOf({ cron, timeZone: zone }).after(nowMs) ?? null };
    const advance = runs.advanceStatement(databaseId, "dreaming_schedule", from, next);
    // Of a schedule that is new, or was changed, ticks count from now on.
    if (due === undefined || due.cron !== cron || due.zone !== zone) {
      await records.transact([advance]);
      return false;
    }
    if (due.next_ms === null || due.next_ms > nowMs) return false;
    const asked = await queue.request({ databaseId, database, mode, trigger: "schedule", also: [advance] });
    return asked.jobId !== undefined;
  }
}
